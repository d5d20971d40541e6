// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/memcached/sim_client.hpp"

#include <map>
#include <optional>

#include "backends/memcached/error.hpp"
#include "tests/simulation/fiber.hpp"

namespace dlock::simulation::memcached {
namespace {

using dlock::memcached::Answer;
using dlock::memcached::Client;
using dlock::memcached::Error;
using dlock::memcached::failure;
using dlock::memcached::Found;
using dlock::memcached::JobQueue;
using dlock::memcached::Number;
using dlock::memcached::Outcome;
using dlock::memcached::ServerInfo;
using Code = SimServer::Code;

Answer answer_of(Code code) {
  switch (code) {
    case Code::stored:
      return {Outcome::done, {}};
    case Code::not_stored:
      return {Outcome::not_stored, {}};
    case Code::exists:
      return {Outcome::exists, {}};
    case Code::not_found:
      return {Outcome::not_found, {}};
    case Code::not_a_number:
      return {Outcome::refused, failure(Error::refused, "non-numeric")};
  }
  return {};
}

class SimQueue final : public JobQueue {
 public:
  explicit SimQueue(Process& process) : process_(process) {}

  void post(Job job) override {
    jobs_.push_back(std::move(job));
    wake();
  }
  void run() override {
    for (;;) {
      while (!jobs_.empty()) {
        auto job = std::move(jobs_.front());
        jobs_.pop_front();
        job();
      }
      if (closed_) return;
      waiting_ = Fiber::current();
      Fiber::park();
    }
  }
  void close() override {
    closed_ = true;
    wake();
  }

 private:
  void wake() {
    if (auto fiber = std::exchange(waiting_, nullptr)) {
      process_.deliver([fiber = std::move(fiber)] { fiber->resume(); });
    }
  }

  Process& process_;
  std::deque<Job> jobs_;
  std::shared_ptr<Fiber> waiting_;
  bool closed_ = false;
};

/// One command under way.
struct Exchange {
  std::shared_ptr<Fiber> fiber;
  bool over = false;
  enum class End { none, answered, broken } end = End::none;
};

/// What it came to; the result only if it was answered.
template <class Result>
struct Ended {
  Answer answer;
  std::shared_ptr<std::optional<Result>> result = std::make_shared<std::optional<Result>>();
};

struct Counted {
  Code code = Code::not_found;
  std::uint64_t value = 0;
};
using Items = std::map<std::string, dlock::memcached::Item, std::less<>>;
using Lines = std::map<std::string, std::string>;

class SimClient final : public Client {
 public:
  SimClient(Process& process, Network& network, SimServer& server)
      : process_(process), network_(network), server_(server) {}

  void open() override {
    open_ = true;
    connected_to_ = 0;
    silent_ = false;
  }
  void drop() override { open_ = false; }
  bool is_open() const noexcept override { return open_; }

  Answer add(const std::string& key, const std::string& value, std::time_t exptime) override {
    const auto ended = exchange<Code>([=](SimServer& at) { return at.add(key, value, exptime); });
    return *ended.result ? answer_of(**ended.result) : ended.answer;
  }
  Answer cas(const std::string& key, const std::string& value, std::time_t exptime,
             std::uint64_t cas) override {
    const auto ended =
        exchange<Code>([=](SimServer& at) { return at.cas(key, value, exptime, cas); });
    return *ended.result ? answer_of(**ended.result) : ended.answer;
  }
  Number increment(const std::string& key, std::uint64_t by) override {
    const auto ended = exchange<Counted>([=](SimServer& at) {
      Counted counted;
      counted.code = at.increment(key, by, counted.value);
      return counted;
    });
    if (!*ended.result) return {ended.answer, 0};
    return {answer_of((*ended.result)->code), (*ended.result)->value};
  }
  Found gets(const std::vector<std::string>& keys) override {
    auto ended = exchange<Items>([=](SimServer& at) {
      Items items;
      for (const auto& key : keys) {
        if (const auto* item = at.get(key)) items[key] = {item->value, item->cas};
      }
      return items;
    });
    if (!*ended.result) return {ended.answer, {}};
    return {{Outcome::done, {}}, std::move(**ended.result)};
  }
  Answer stats(const char* what, ServerInfo& into) override {
    const bool general = what == nullptr;
    const auto ended =
        exchange<Lines>([general](SimServer& at) { return general ? at.stats() : at.settings(); });
    if (!*ended.result) return ended.answer;
    for (const auto& [key, value] : **ended.result) take_stat(into, key, value);
    return {Outcome::done, {}};
  }

 private:
  /// As libmemcached does after anything but an answer: the handle is thrown away.
  Answer broken(Error error) {
    drop();
    return {Outcome::unknown, failure(error)};
  }

  template <class Result, class Execute>
  Ended<Result> exchange(Execute execute) {
    Ended<Result> ended;
    if (!open_ || deadline() - process_.now() < milliseconds(1)) {
      ended.answer = {Outcome::unavailable, failure(Error::no_answer, "no time was left")};
      return ended;
    }
    if (network_.is_cut(process_)) silent_ = true;
    if (connected_to_ == 0) connected_to_ = server_.run();
    if (!silent_ && (!server_.is_up() || connected_to_ != server_.run())) {
      ended.answer = broken(Error::connection_lost);
      return ended;
    }
    auto one = std::make_shared<Exchange>();
    one->fiber = Fiber::current();
    // The first execution answers; a duplicate's answer goes nowhere.
    const auto first = [execute, result = ended.result](SimServer& at) {
      auto value = execute(at);
      if (!*result) result->emplace(std::move(value));
    };
    if (!silent_) send(one, first);
    const auto timer = process_.call_at(deadline(), [one] {
      if (!std::exchange(one->over, true)) one->fiber->resume();
    });
    Fiber::park();
    process_.cancel(timer);
    one->fiber.reset();
    if (one->end == Exchange::End::answered) return ended;
    *ended.result = std::nullopt;
    // A late execution must not be taken for an answer.
    ended.result = std::make_shared<std::optional<Result>>();
    ended.answer =
        broken(one->end == Exchange::End::none ? Error::no_answer : Error::connection_lost);
    return ended;
  }

  static void finish(Process& process, const std::shared_ptr<Exchange>& one, Exchange::End end) {
    process.deliver([one, end] {
      if (std::exchange(one->over, true)) return;
      one->end = end;
      one->fiber->resume();
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
};

}  // namespace

dlock::memcached::Driver make_driver(Process& process, Network& network, SimServer& server) {
  return {
      [&process, &network, &server](Env&, Endpoint, std::uint32_t) -> std::unique_ptr<Client> {
        return std::make_unique<SimClient>(process, network, server);
      },
      [&process]() -> std::unique_ptr<JobQueue> { return std::make_unique<SimQueue>(process); }};
}

}  // namespace dlock::simulation::memcached
