// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/memcached/sim_client.hpp"

#include <map>
#include <optional>

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
  explicit Exchange(Env& env) : event(env) {}
  Signal event;
  enum class End { none, answered, broken } end = End::none;
};

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

  void drop() noexcept override { open_ = false; }
  void close() noexcept override {
    closed_ = true;
    if (const auto one = under_way_.lock()) one->event.notify();
  }
  bool is_open() const noexcept override { return open_; }
  bool has_told_closed() const noexcept override { return told_closed_; }

  asio::awaitable<Answer> add(const std::string& key, const std::string& value,
                              std::time_t exptime) override {
    return store([=](SimServer& at) {
      Counted counted;
      counted.code = at.add(key, value, exptime);
      counted.value = at.last_cas();
      return counted;
    });
  }
  asio::awaitable<Answer> cas(const std::string& key, const std::string& value, std::time_t exptime,
                              std::uint64_t cas) override {
    return store([=](SimServer& at) {
      Counted counted;
      counted.code = at.cas(key, value, exptime, cas);
      counted.value = at.last_cas();
      return counted;
    });
  }
  asio::awaitable<Answer> remove(const std::string& key, std::uint64_t cas) override {
    return store([=](SimServer& at) {
      Counted counted;
      counted.code = at.remove(key, cas);
      return counted;
    });
  }
  asio::awaitable<Number> increment(const std::string& key, std::uint64_t by) override {
    return count([=](SimServer& at) {
      Counted counted;
      counted.code = at.increment(key, by, counted.value);
      return counted;
    });
  }
  asio::awaitable<Found> gets(const std::vector<std::string>& keys) override {
    return find([=](SimServer& at) {
      Items items;
      for (const auto& key : keys) {
        if (const auto* item = at.get(key)) items[key] = {item->value, item->cas};
      }
      return items;
    });
  }
  asio::awaitable<Answer> stats(ServerInfo& into) override {
    return ask([](SimServer& at) { return at.stats(); }, into);
  }
  asio::awaitable<Answer> settings(ServerInfo& into) override {
    return ask([](SimServer& at) { return at.settings(); }, into);
  }

 private:
  void open_now() override {
    open_ = true;
    connected_to_ = 0;
    silent_ = false;
  }

  template <class Execute>
  asio::awaitable<Answer> store(Execute execute) {
    auto ended = co_await exchange<Counted>(std::move(execute));
    if (!ended.result) co_return ended.answer;
    auto answer = answer_of(ended.result->code);
    if (answer.done() && server_.tells_numbers()) answer.stored = {ended.result->value, era()};
    co_return answer;
  }
  template <class Execute>
  asio::awaitable<Number> count(Execute execute) {
    auto ended = co_await exchange<Counted>(std::move(execute));
    Number number;
    number.answer = std::move(ended.answer);
    if (!ended.result) co_return number;
    number.answer = answer_of(ended.result->code);
    number.value = ended.result->value;
    co_return number;
  }
  template <class Execute>
  asio::awaitable<Found> find(Execute execute) {
    auto ended = co_await exchange<Items>(std::move(execute));
    Found found;
    found.answer = std::move(ended.answer);
    if (ended.result) found.answer.outcome = Outcome::done;
    if (ended.result) found.items = std::move(*ended.result);
    co_return found;
  }
  template <class Execute>
  asio::awaitable<Answer> ask(Execute execute, ServerInfo& into) {
    const auto ended = co_await exchange<Lines>(std::move(execute));
    if (!ended.result) co_return ended.answer;
    for (const auto& [key, value] : *ended.result) take_stat(into, key, value);
    co_return Answer{Outcome::done, {}, {}};
  }

  /// As the real one does after anything but an answer: the connection is thrown away.
  Answer broken(Error error) {
    drop();
    return {Outcome::unknown, failure(error), {}};
  }

  template <class Result, class Execute>
  asio::awaitable<Ended<Result>> exchange(Execute execute) {
    Ended<Result> ended;
    told_closed_ = closed_;
    if (closed_ || !open_ || deadline() - process_.now() < milliseconds(1)) {
      ended.answer.failure = failure(Error::no_answer, "no time was left");
      co_return ended;
    }
    if (network_.is_cut(process_)) silent_ = true;
    if (connected_to_ == 0) connected_to_ = server_.run();
    if (!silent_ && (!server_.is_up() || connected_to_ != server_.run())) {
      ended.answer = broken(Error::connection_lost);
      co_return ended;
    }
    const auto one = std::make_shared<Exchange>(process_);
    under_way_ = one;
    const auto result = std::make_shared<std::optional<Result>>();
    // The first execution answers; a duplicate's answer goes nowhere.
    const auto first = [execute, result](SimServer& at) {
      auto value = execute(at);
      if (!*result) result->emplace(std::move(value));
    };
    if (!silent_) send(one, first);
    co_await one->event.wait_until(deadline());
    told_closed_ = closed_;
    if (one->end == Exchange::End::answered) {
      ended.result = std::move(*result);
      co_return ended;
    }
    ended.answer =
        broken(one->end == Exchange::End::none ? Error::no_answer : Error::connection_lost);
    co_return ended;
  }

  static void finish(Process& process, const std::shared_ptr<Exchange>& one, Exchange::End end) {
    process.deliver([one, end] {
      if (one->end != Exchange::End::none) return;
      one->end = end;
      one->event.notify();
    });
  }

  /// The events outlive this client, but not the process, the network and the server.
  template <class Execute>
  void send(const std::shared_ptr<Exchange>& one, Execute execute) {
    auto* process = &process_;
    auto* network = &network_;
    auto* server = &server_;
    auto& world = process->world();
    const auto fate = network->fate(*process);
    const auto run = connected_to_;
    const auto is_there = [server, run] { return server->is_up() && server->run() == run; };
    if (fate.overtaken) {
      world.after(*fate.overtaken, [server, is_there, execute] {
        if (is_there()) execute(*server);
      });
    }
    if (fate.overtaken || fate.request == Fate::Break::reset) {
      world.after(fate.there, [process, one] { finish(*process, one, Exchange::End::broken); });
      return;
    }
    if (fate.request == Fate::Break::lost || fate.reply == Fate::Break::lost) silent_ = true;
    if (fate.request == Fate::Break::lost) return;
    world.after(fate.there, [process, network, server, one, fate, is_there, execute] {
      if (!is_there()) return finish(*process, one, Exchange::End::broken);
      execute(*server);
      if (fate.twice) execute(*server);
      if (fate.reply == Fate::Break::lost) return;
      const auto end =
          fate.reply == Fate::Break::reset ? Exchange::End::broken : Exchange::End::answered;
      process->world().after(fate.back, [process, network, one, end] {
        if (!network->is_cut(*process)) finish(*process, one, end);
      });
    });
  }

  Process& process_;
  Network& network_;
  SimServer& server_;
  bool open_ = false;
  bool silent_ = false;             ///< nothing gets through on this connection any more
  std::uint64_t connected_to_ = 0;  ///< the server's run; 0: not yet
  bool closed_ = false;
  bool told_closed_ = false;
  std::weak_ptr<Exchange> under_way_;
};

}  // namespace

MakeClient make_driver(Process& process, Network& network, SimServer& server) {
  return [&process, &network, &server](Env&, Endpoint, std::uint32_t) -> std::unique_ptr<Client> {
    return std::make_unique<SimClient>(process, network, server);
  };
}

}  // namespace dlock::simulation::memcached
