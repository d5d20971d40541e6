// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/memcached/sim_client.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "backends/memcached/error.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::simulation::memcached {
namespace {

using dlock::memcached::Answer;
using dlock::memcached::Client;
using dlock::memcached::Error;
using dlock::memcached::failure;
using dlock::memcached::Found;
using dlock::memcached::MakeClient;
using dlock::memcached::Number;
using dlock::memcached::Outcome;
using dlock::memcached::ServerInfo;
using Code = SimServer::Code;

Answer answer_of(Code code) {
  switch (code) {
    case Code::stored:
      return {Outcome::done, {}, {}};
    case Code::not_stored:
      return {Outcome::not_stored, {}, {}};
    case Code::exists:
      return {Outcome::exists, {}, {}};
    case Code::not_found:
      return {Outcome::not_found, {}, {}};
    case Code::not_a_number:
      return {Outcome::refused, failure(Error::refused, "non-numeric"), {}};
  }
  return {};
}

struct Counted {
  Code code = Code::not_found;
  std::uint64_t value = 0;
};
using Items = std::map<std::string, dlock::memcached::Item, std::less<>>;
using Lines = std::map<std::string, std::string>;

/// One command under way: whoever asked may have given up by the time it is carried out.
struct Exchange {
  Exchange(Env& env, TimePoint began) : event(env), since(began) {}
  Signal event;
  TimePoint since;
  enum class End { none, answered, broken, closed } end = End::none;

  void over(End how) {
    if (end != End::none) return;
    end = how;
    event.notify();
  }
};
using ExchangePtr = std::shared_ptr<Exchange>;

/// One connection. What is sent on it arrives in order, and so do the answers.
struct Wire {
  bool open = true;
  bool silent = false;     ///< nothing gets through any more
  std::uint64_t run = 0;   ///< the server's; 0: not yet
  TimePoint last_there{};  ///< when the last request arrives
  TimePoint last_back{};   ///< when the last answer does
  TimePoint heard{};       ///< when one did
  std::deque<ExchangePtr> under_way;

  void end(Exchange::End how) {
    open = false;
    for (const auto& one : std::exchange(under_way, {})) one->over(how);
  }
  void answered(const ExchangePtr& one, TimePoint now) {
    if (!open) return;
    heard = now;
    std::erase(under_way, one);
    one->over(Exchange::End::answered);
  }
};
using WirePtr = std::shared_ptr<Wire>;

/// What it came to; the result only if it was answered.
template <class Result>
struct Ended {
  Answer answer;
  std::optional<Result> result;
};

class SimClient final : public Client {
 public:
  SimClient(Process& process, Network& network, SimServer& server)
      : process_(process), network_(network), server_(server) {}

  void drop() noexcept override {
    if (wire_) wire_->end(Exchange::End::broken);
    wire_.reset();
  }
  void close() noexcept override {
    closed_ = true;
    if (wire_) wire_->end(Exchange::End::closed);
  }
  bool is_open() const noexcept override { return wire_ && wire_->open; }

  asio::awaitable<Answer> add(const std::string& key, const std::string& value, std::time_t exptime,
                              TimePoint deadline) override {
    return store(deadline, [=](SimServer& at) {
      Counted counted;
      counted.code = at.add(key, value, exptime);
      counted.value = at.last_cas();
      return counted;
    });
  }
  asio::awaitable<Answer> cas(const std::string& key, const std::string& value, std::time_t exptime,
                              std::uint64_t cas, TimePoint deadline) override {
    return store(deadline, [=](SimServer& at) {
      Counted counted;
      counted.code = at.cas(key, value, exptime, cas);
      counted.value = at.last_cas();
      return counted;
    });
  }
  asio::awaitable<Answer> remove(const std::string& key, std::uint64_t cas,
                                 TimePoint deadline) override {
    return store(deadline, [=](SimServer& at) {
      Counted counted;
      counted.code = at.remove(key, cas);
      return counted;
    });
  }
  asio::awaitable<Number> increment(const std::string& key, std::uint64_t by,
                                    TimePoint deadline) override {
    return count(begin<Counted>(deadline,
                                [=](SimServer& at) {
                                  Counted counted;
                                  counted.code = at.increment(key, by, counted.value);
                                  return counted;
                                }),
                 deadline);
  }
  asio::awaitable<Number> seconds_left(const std::string& key, TimePoint deadline) override {
    if (!server_.tells_numbers()) return Client::seconds_left(key, deadline);
    return count(begin<Counted>(deadline,
                                [=](SimServer& at) {
                                  Counted counted;
                                  counted.code = at.seconds_left(key, counted.value);
                                  return counted;
                                }),
                 deadline);
  }
  asio::awaitable<Found> gets(const std::vector<std::string>& keys, TimePoint deadline) override {
    return find(begin<Items>(deadline,
                             [=, sent_in = era()](SimServer& at) {
                               Items items;
                               for (const auto& key : keys) {
                                 if (const auto* item = at.get(key)) {
                                   items[key] = {item->value, {item->cas, sent_in}};
                                 }
                               }
                               return items;
                             }),
                deadline);
  }
  asio::awaitable<Answer> stats(ServerInfo& into, TimePoint deadline) override {
    return ask(begin<Lines>(deadline, [](SimServer& at) { return at.stats(); }), into, deadline);
  }
  asio::awaitable<Answer> settings(ServerInfo& into, TimePoint deadline) override {
    return ask(begin<Lines>(deadline, [](SimServer& at) { return at.settings(); }), into, deadline);
  }

 private:
  /// A command as it was sent, or why it was not.
  template <class Result>
  struct Sent {
    Answer refused;
    WirePtr wire;  ///< null: it was not sent
    ExchangePtr one;
    std::shared_ptr<std::optional<Result>> result;
    std::uint64_t era = 0;
  };

  asio::awaitable<Answer> open_now(TimePoint) override {
    drop();
    if (closed_) co_return Answer{Outcome::unavailable, failure(Error::closed), {}};
    wire_ = std::make_shared<Wire>();
    co_return Answer{Outcome::done, {}, {}};
  }

  template <class Execute>
  asio::awaitable<Answer> store(TimePoint deadline, Execute execute) {
    return stored(begin<Counted>(deadline, std::move(execute)), deadline);
  }
  asio::awaitable<Answer> stored(Sent<Counted> sent, TimePoint deadline) {
    const bool tells_numbers = server_.tells_numbers();
    const auto sent_in = sent.era;
    auto ended = co_await end_of(std::move(sent), deadline);
    if (!ended.result) co_return ended.answer;
    auto answer = answer_of(ended.result->code);
    if (answer.done() && tells_numbers) answer.stored = {ended.result->value, sent_in};
    co_return answer;
  }
  asio::awaitable<Number> count(Sent<Counted> sent, TimePoint deadline) {
    auto ended = co_await end_of(std::move(sent), deadline);
    Number number;
    number.answer = std::move(ended.answer);
    if (!ended.result) co_return number;
    number.answer = answer_of(ended.result->code);
    number.value = ended.result->value;
    co_return number;
  }
  asio::awaitable<Found> find(Sent<Items> sent, TimePoint deadline) {
    auto ended = co_await end_of(std::move(sent), deadline);
    Found found;
    found.answer = std::move(ended.answer);
    if (ended.result) found.answer.outcome = Outcome::done;
    if (ended.result) found.items = std::move(*ended.result);
    co_return found;
  }
  asio::awaitable<Answer> ask(Sent<Lines> sent, ServerInfo& into, TimePoint deadline) {
    const auto ended = co_await end_of(std::move(sent), deadline);
    if (!ended.result) co_return ended.answer;
    for (const auto& [key, value] : *ended.result) take_stat(into, key, value);
    co_return Answer{Outcome::done, {}, {}};
  }

  template <class Result, class Execute>
  Sent<Result> begin(TimePoint deadline, Execute execute) {
    Sent<Result> sent;
    if (closed_ || !is_open() || deadline - process_.now() < milliseconds(1)) {
      sent.refused.failure =
          closed_ ? failure(Error::closed) : failure(Error::no_answer, "no time was left");
      return sent;
    }
    if (network_.is_cut(process_)) wire_->silent = true;
    if (wire_->run == 0) wire_->run = server_.run();
    sent.wire = wire_;
    sent.era = era();
    sent.one = std::make_shared<Exchange>(process_, process_.now());
    sent.result = std::make_shared<std::optional<Result>>();
    wire_->under_way.push_back(sent.one);
    if (!wire_->silent && (!server_.is_up() || wire_->run != server_.run())) {
      drop();
      return sent;
    }
    // The first execution answers; a duplicate's answer goes nowhere.
    const auto first = [execute, result = sent.result](SimServer& at) {
      auto value = execute(at);
      if (!*result) result->emplace(std::move(value));
    };
    if (!wire_->silent) send(sent.wire, sent.one, first);
    return sent;
  }

  template <class Result>
  asio::awaitable<Ended<Result>> end_of(Sent<Result> sent, TimePoint deadline) {
    Ended<Result> ended;
    if (!sent.wire) {
      ended.answer = std::move(sent.refused);
      co_return ended;
    }
    auto& one = *sent.one;
    bool in_time = true;
    while (in_time && one.end == Exchange::End::none) {
      in_time = co_await one.event.wait_until(deadline);
    }
    switch (one.end) {
      case Exchange::End::answered:
        ended.result = std::move(*sent.result);
        co_return ended;
      case Exchange::End::broken:
        ended.answer = {Outcome::unknown, failure(Error::connection_lost), {}};
        co_return ended;
      case Exchange::End::closed:
        ended.answer = {Outcome::unknown, failure(Error::closed), {}};
        co_return ended;
      case Exchange::End::none:
        break;
    }
    one.over(Exchange::End::broken);
    ended.answer = {Outcome::unknown, failure(Error::no_answer), {}};
    // As the real one: a server that has said nothing since costs the connection.
    if (sent.wire->heard <= one.since) sent.wire->end(Exchange::End::broken);
    co_return ended;
  }

  /// The events outlive this client, but not the process, the network and the server.
  template <class Execute>
  void send(const WirePtr& wire, const ExchangePtr& one, Execute execute) {
    auto* process = &process_;
    auto* network = &network_;
    auto* server = &server_;
    auto& world = process->world();
    const auto now = process->now();
    const auto fate = network->fate(*process);
    const auto is_there = [server, run = wire->run] {
      return server->is_up() && server->run() == run;
    };
    const auto broken = [process, wire] {
      process->deliver([wire] { wire->end(Exchange::End::broken); });
    };
    if (fate.overtaken) {
      world.after(*fate.overtaken, [server, is_there, execute] {
        if (is_there()) execute(*server);
      });
    }
    wire->last_there = std::max(wire->last_there, now + fate.there);
    const auto there = wire->last_there - now;
    if (fate.overtaken || fate.request == Fate::Break::reset) {
      world.after(there, broken);
      return;
    }
    if (fate.request == Fate::Break::lost || fate.reply == Fate::Break::lost) wire->silent = true;
    if (fate.request == Fate::Break::lost) return;
    wire->last_back = std::max(wire->last_back, wire->last_there + fate.back);
    const auto back = wire->last_back - wire->last_there;
    world.after(there,
                [process, network, server, wire, one, fate, back, broken, is_there, execute] {
                  if (!is_there()) return broken();
                  execute(*server);
                  if (fate.twice) execute(*server);
                  if (fate.reply == Fate::Break::lost) return;
                  const bool is_reset = fate.reply == Fate::Break::reset;
                  process->world().after(back, [process, network, wire, one, is_reset, broken] {
                    if (network->is_cut(*process)) return;
                    if (is_reset) return broken();
                    process->deliver([process, wire, one] { wire->answered(one, process->now()); });
                  });
                });
  }

  Process& process_;
  Network& network_;
  SimServer& server_;
  bool closed_ = false;
  WirePtr wire_;
};

}  // namespace

MakeClient make_driver(Process& process, Network& network, SimServer& server) {
  return [&process, &network, &server](Env&, Endpoint, std::uint32_t) -> std::unique_ptr<Client> {
    return std::make_unique<SimClient>(process, network, server);
  };
}

}  // namespace dlock::simulation::memcached
