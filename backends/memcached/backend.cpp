// SPDX-License-Identifier: Apache-2.0
//
// Connects, declares the store's capabilities, and serves the calls that only read.
#include "backends/memcached/backend.hpp"

#include <fmt/format.h>

#include "backends/memcached/error.hpp"
#include "backends/memcached/lock/look.hpp"
#include "backends/memcached/rules/server_list.hpp"
#include "backends/memcached/rules/value.hpp"
#include "backends/memcached/wire/together.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::memcached {

using std::chrono::milliseconds;

namespace {

// Between steps of a connection that is slow.
constexpr auto kPause = milliseconds(50);

}  // namespace

Failure about(const Server& server, Failure why) {
  why.text =
      why.text.empty() ? server.address() : fmt::format("{}: {}", server.address(), why.text);
  return why;
}

MemcachedBackend::MemcachedBackend(const StoreOptions& options, Env& env, EventSink& sink,
                                   const MakeClient& make_client)
    : env_(env),
      sink_(sink),
      options_(options),
      names_(options.string("key")),
      placement_(options) {
  const Poller::Pace pace{options.duration("poll_interval"), options.duration("poll_interval_max")};
  for (std::size_t place = 0; place < options.endpoints.size(); ++place) {
    const auto& endpoint = options.endpoints[place];
    Session::Settings settings;
    settings.list_key = names_.list_key();
    settings.list_note = server_note(options.endpoints, place, options.string("server_list"),
                                     options.string("distribution"));
    settings.list_exptime = note_exptime(options.duration("lease"));
    settings.server = endpoint;
    settings.self_test_key = [names = names_](std::string_view id) {
      return names.self_test_key(id);
    };
    settings.flags = static_cast<std::uint32_t>(options.integer("flags"));
    settings.canary_key = names_.canary_key();
    settings.make_client = make_client;
    servers_.push_back(std::make_shared<Server>(env, sink, std::move(settings), pace));
    servers_.back()->on_changed = [this] { on_changed(); };
  }
  declare();
}

MemcachedBackend::~MemcachedBackend() {
  for (const auto& server : servers_) {
    server->on_changed = {};
    server->stop();
  }
}

// A server that is down makes only the names that are pinned to it unavailable.
asio::awaitable<Failure> MemcachedBackend::connect(TimePoint deadline) {
  std::vector<asio::awaitable<Failure>> tasks;
  tasks.reserve(servers_.size());
  for (const auto& server : servers_) tasks.push_back(reach(server, deadline));
  const auto failures = co_await together(env_, std::move(tasks));
  const Failure* unreached = nullptr;
  for (const auto& failure : failures) {
    if (!failure.error) continue;
    if (failure.error.default_error_condition() != errc::unavailable) co_return failure;
    unreached = &failure;
  }
  bool any = false;
  for (const auto& server : servers_) any = any || server->info();
  if (!any && unreached == nullptr) co_return failure(Error::closed);  // closed meanwhile
  if (!any) co_return *unreached;
  if (unreached != nullptr) {
    sink_.on_warning(
        fmt::format("{}; the names pinned to that server are unavailable until it is "
                    "back, the others are not affected",
                    unreached->text));
  }
  declare();
  connected_ = true;
  co_return Failure{};
}

asio::awaitable<Failure> MemcachedBackend::reach(std::shared_ptr<Server> server,
                                                 TimePoint deadline) {
  server->start();
  // A connection that hangs must not use up the time of another one (Session bounds each step). A
  // server that hangs must not use up the time in which the others could serve. A slow one
  // continues at its last step.
  constexpr std::chrono::seconds kPatience{3};
  const bool alone = servers_.size() == 1;
  Answer answer;
  bool again = true;
  while (again) {
    const auto began = env_.now();
    const auto until = alone ? deadline : std::min<TimePoint>(deadline, began + kPatience);
    auto work = [](Call& call) { return call.ready(); };
    auto ran = co_await server->line().run<Answer>(std::move(work), until);
    if (ran.result) {
      answer = std::move(*ran.result);
    } else {
      answer.failure = std::move(ran.why);
    }
    if (answer.done()) co_return Failure{};
    // One that was stopped meanwhile answers at once.
    const bool was_silent = env_.now() - began > kPatience / 2;
    const bool slow = answer.failure.error == make_error_code(Error::connecting);
    again = ((alone && was_silent) || slow) && env_.now() < deadline;
    if (again && !was_silent) co_await sleep_until(env_, env_.now() + kPause);
  }
  if (answer.failure.text.find(server->address()) == std::string::npos) {
    answer.failure.text = fmt::format("{}: {}", server->address(), answer.failure.text);
  }
  co_return std::move(answer.failure);
}

asio::awaitable<std::vector<SelfTestReport>> MemcachedBackend::self_test(TimePoint deadline) {
  std::vector<asio::awaitable<SelfTestReport>> tasks;
  tasks.reserve(servers_.size());
  for (const auto& server : servers_) tasks.push_back(test(server, deadline));
  co_return co_await together(env_, std::move(tasks));
}

asio::awaitable<SelfTestReport> MemcachedBackend::test(std::shared_ptr<Server> server,
                                                       TimePoint deadline) {
  auto work = [](Call& call) { return call.self_test(); };
  auto ran = co_await server->line().run<SelfTestReport>(std::move(work), deadline);
  if (ran.result) co_return std::move(*ran.result);
  SelfTest not_begun;
  not_begun.add(SelfTestStep::acquire, {SelfTestAnswer::Kind::unanswered, std::move(ran.why)});
  co_return not_begun.report(server->address());
}

void MemcachedBackend::declare() {
  std::vector<ServerInfo> known;
  for (const auto& server : servers_) {
    if (server->info()) known.push_back(*server->info());
  }
  capabilities_ = memcached::declare(known, options_.duration("lease"));
  if (servers_.size() > 1) {
    capabilities_.notes.push_back(fmt::format(
        "each name is pinned to one of {} servers by distribution={}; every client must "
        "list the same servers in the same order, with the same distribution",
        servers_.size(), options_.string("distribution")));
  }
}

void MemcachedBackend::on_changed() {
  if (!connected_) return;
  declare();
  sink_.on_capabilities_changed();
}

const std::shared_ptr<Server>& MemcachedBackend::server_of_name(const std::string& name) const {
  return servers_[placement_.server_of(name, names_)];
}

asio::awaitable<Result<LockStatus>> MemcachedBackend::inspect(std::string name,
                                                              TimePoint deadline) {
  const auto server = server_of_name(name);
  auto work = [key = names_.lock_key(name), token_key = names_.token_key(name)](Call& call) {
    return peek(call, key, token_key);
  };
  auto ran = co_await server->line().run<Peek>(std::move(work), deadline);
  Result<LockStatus> result;
  if (!ran.result) {
    result.failure = about(*server, std::move(ran.why));
  } else if (!ran.result->answer.done()) {
    result.failure = std::move(ran.result->answer.failure);
  } else if (auto newer = newer_value(names_.lock_key(name), ran.result->value.value_or(""));
             !newer.empty()) {
    result.failure = failure(Error::newer_format, std::move(newer));
  } else {
    result.value = describe(name, *ran.result, env_.wall_clock_ms());
  }
  co_return result;
}

asio::awaitable<Result<std::vector<LockStatus>>> MemcachedBackend::list(std::string, TimePoint) {
  Result<std::vector<LockStatus>> result;
  result.failure = failure(Error::cannot_list,
                           "memcached has no command that lists all keys; its crawler's dump is "
                           "neither complete nor always on");
  co_return result;
}

asio::awaitable<EvictAnswer> MemcachedBackend::evict(EvictRequest request, TimePoint deadline) {
  const auto server = server_of_name(request.name);
  const auto key = names_.lock_key(request.name);
  const LockKeys lock{key, names_.token_key(request.name)};
  auto work = [lock, request](Call& call) { return memcached::evict(call, lock, request); };
  auto ran = co_await server->line().run<EvictAnswer>(std::move(work), deadline);
  EvictAnswer unreached;
  if (!ran.result) {
    unreached.failure = about(*server, std::move(ran.why));
    co_return unreached;
  }
  if (ran.result->is_free) server->given_back(key);
  co_return std::move(*ran.result);
}

asio::awaitable<void> MemcachedBackend::close(TimePoint) {
  for (const auto& server : servers_) server->stop();
  co_return;
}

}  // namespace dlock::memcached
