// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/redis/session.hpp"

#include <algorithm>

#include "backends/redis/scripts/scripts.hpp"
#include "tests/simulation/redis/server.hpp"
#include "tests/simulation/redis/sim_stream.hpp"

namespace dlock::simulation::redis {
namespace {

/// After this long a server ends a connection whose other end is gone without a word
/// (tcp-keepalive; shorter than usual, so that runs are).
constexpr seconds kKeepAlive{3};

std::string script_name(const std::string& sha) {
  const auto& all = production::scripts();
  if (sha == all.acquire.sha) return "acquire";
  if (sha == all.renew.sha) return "renew";
  if (sha == all.release.sha) return "release";
  const auto& readers = production::reader_scripts();
  if (sha == readers.acquire.sha) return "acquire to read";
  if (sha == readers.renew.sha) return "renew to read";
  if (sha == readers.release.sha) return "release to read";
  if (sha == readers.withdraw.sha) return "withdraw";
  return "script " + sha.substr(0, 8);
}

/// Of an exported grant: a digest of what no seed decides.
bool is_proof(const std::string& word) {
  return word.size() == 64 && word.find_first_not_of("0123456789abcdef") == word.npos;
}

std::string kind_of(const Command& command) {
  const bool is_script = command.front() == "EVALSHA" && command.size() > 1;
  return is_script ? script_name(command[1]) : command.front();
}

/// As it is sent.
std::size_t size_of(const Command& command) {
  std::size_t bytes = fmt::formatted_size("*{}\r\n", command.size());
  for (const auto& word : command) {
    bytes += fmt::formatted_size("${}\r\n\r\n", word.size()) + word.size();
  }
  return bytes;
}

std::size_t size_of(const Reply& reply) {
  std::string bytes;
  append_reply(reply, bytes);
  return bytes.size();
}

/// For a trace.
std::string words(const Command& command) {
  std::string text = command.front();
  std::size_t from = 1;
  if (text == "EVALSHA" && command.size() > 3) {
    text = script_name(command[1]);
    from = 3;
  }
  if (text == "EVAL" || text == "SCRIPT") return text;
  for (auto i = from; i < command.size(); ++i) {
    text += is_proof(command[i]) ? " (proof)" : " " + command[i].substr(0, 60);
  }
  return text;
}

std::string in_brief(const Reply& reply) {
  auto text = to_text(reply);
  return text.size() > 120 ? text.substr(0, 120) + "..." : text;
}

}  // namespace

Session::Session(World& world, std::weak_ptr<Server> server, const std::shared_ptr<Client>& client,
                 std::weak_ptr<SimStream> stream)
    : world_(world),
      server_(std::move(server)),
      client_(client),
      stream_(std::move(stream)),
      name_(client->process.name()) {
  const auto cut = [weak = client_] {
    const auto sender = weak.lock();
    // What a crashed process has sent is on its way.
    return sender && !sender->crashed && sender->is_cut();
  };
  requests_ = std::make_shared<Wire>(world, cut);
  replies_ = std::make_shared<Wire>(world, cut);
}

bool Session::is_of(const Process& process) const {
  const auto client = client_.lock();
  return client && &client->process == &process;
}

std::string Session::who() const { return fmt::format("{}#{}", name_, id_); }

bool Session::take_off(Command command, const Fate& fate) {
  const auto self = weak_from_this();
  if (fate.request == Fate::Break::lost) {
    world_.trace("redis: {} sends {}, lost", who(), words(command));
    requests_->fall_silent();
    return true;
  }
  if (fate.request == Fate::Break::reset) {
    world_.trace("redis: {} sends {}, reset", who(), words(command));
    stream_.reset();
    end();
    return false;
  }
  if (fate.overtaken) {
    world_.trace("redis: {} sends {}, reset, but it is on its way", who(), words(command));
    stream_.reset();
    requests_->send(*fate.overtaken, [self, command = std::move(command)] {
      if (const auto session = self.lock()) session->arrive(command, {});
    });
    hang_up_later({});
    return false;
  }
  requests_->send(fate.there, [self, command = std::move(command), fate] {
    if (const auto session = self.lock()) session->arrive(command, fate);
  });
  return true;
}

void Session::hang_up_later(Duration travels) {
  const auto hang_up = [self = weak_from_this()] {
    if (const auto session = self.lock()) session->end();
  };
  if (requests_->is_silent()) {
    world_.after(kKeepAlive, hang_up);
  } else {
    requests_->send(travels, hang_up);
  }
}

void Session::arrive(const Command& command, const Fate& fate) {
  const auto self = shared_from_this();
  const auto server = server_.lock();
  if (!open_ || !server) return;
  const auto reply = server->serve(*this, command);
  if (server->on_served) server->on_served(kind_of(command), size_of(command) + size_of(reply));
  world_.trace("redis: {} {} -> {}", who(), words(command), in_brief(reply));
  if (fate.twice) {
    const auto again = server->serve(*this, command);
    world_.trace("redis: {} {} again -> {}", who(), words(command), in_brief(again));
  }
  if (fate.reply == Fate::Break::lost) replies_->fall_silent();
  if (fate.reply == Fate::Break::reset) {
    tell_reset(fate.back);
    end();
    return;
  }
  answer(reply, fate.back);
}

void Session::answer(const Reply& reply, Duration travels) {
  std::string bytes;
  append_reply(reply, bytes);
  replies_->send(travels, [weak = stream_, bytes = std::move(bytes)] {
    if (const auto stream = weak.lock()) stream->arrive(bytes);
  });
}

void Session::push_later(const Reply& message) {
  const auto client = client_.lock();
  if (!client || client->crashed) return;
  const auto fate = client->network.push_fate(client->process);
  world_.trace("redis: tells {} {}", who(), in_brief(message));
  if (fate.reply == Fate::Break::lost) replies_->fall_silent();
  if (fate.reply == Fate::Break::none) return answer(message, fate.back);
  if (fate.reply == Fate::Break::reset) {
    tell_reset(fate.back);
    // Not at once: the server is going through its connections.
    world_.after({}, [self = weak_from_this()] {
      if (const auto session = self.lock()) session->end();
    });
  }
}

void Session::tell_reset(Duration travels) {
  replies_->send(travels, [weak = stream_] {
    if (const auto stream = weak.lock()) stream->break_off();
  });
}

void Session::break_off() {
  world_.trace("redis: {} is closed by the server", who());
  const auto client = client_.lock();
  if (client && !client->crashed) tell_reset(client->network.latency());
  end();
}

void Session::end() {
  if (!std::exchange(open_, false)) return;
  const auto self = shared_from_this();
  requests_->drop();
  channels.clear();
  if (const auto server = server_.lock()) server->dismiss(*this);
}

}  // namespace dlock::simulation::redis
