// SPDX-License-Identifier: Apache-2.0
#include "dlock/lock_manager.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stop_token>

#include "core/loop/deadline.hpp"
#include "core/manager/manager_access.hpp"
#include "core/manager/manager_impl.hpp"
#include "core/routes/route_note.hpp"
#include "core/store/standing.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::inline v0 {
namespace {

using core::Engine;
using core::fail;
using core::operation_deadline;
using core::Store;
using std::chrono::milliseconds;

asio::awaitable<StoreReport> report_store(std::shared_ptr<Store> store,
                                          std::optional<milliseconds> timeout) {
  co_return co_await store->report(timeout);
}

asio::awaitable<Result<LockStatus>> inspect_lock(std::shared_ptr<Store> store, std::string name,
                                                 std::optional<milliseconds> timeout) {
  Result<LockStatus> result;
  auto until = operation_deadline(*store);
  if (timeout) until = std::min(until, core::deadline_after(store->env().now(), *timeout));
  result.failure = co_await store->connected(timeout);
  if (result.failure.error) co_return result;
  result = co_await store->backend().inspect(std::move(name), until);
  co_return result;
}

asio::awaitable<Result<std::vector<SelfTestReport>>> test_servers(std::shared_ptr<Store> store) {
  Result<std::vector<SelfTestReport>> result;
  result.failure = co_await store->connected();
  if (result.failure.error) co_return result;
  result.value = co_await store->backend().self_test(operation_deadline(*store));
  co_return result;
}

asio::awaitable<Result<std::vector<LockStatus>>> list_locks(std::shared_ptr<Store> store,
                                                            std::string prefix) {
  Result<std::vector<LockStatus>> result;
  result.failure = co_await store->connected();
  if (result.failure.error) co_return result;
  result = co_await store->backend().list(std::move(prefix), operation_deadline(*store));
  co_return result;
}

/// Throws LockError{not_supported} if no store can list.
core::Listed<LockStatus> all_locks(Engine& engine, const core::WantedNames& wanted) {
  core::Listed<LockStatus> listed;
  for (const auto& name : engine.store_names()) {
    auto result = engine.run_on<Result<std::vector<LockStatus>>>(
        name, [prefix = wanted.prefix()](std::shared_ptr<Store> store) {
          return list_locks(std::move(store), prefix);
        });
    listed.add(std::move(result), name, wanted);
  }
  const bool none = !listed.has_list && !listed.failed.empty();
  if (none && listed.failed.back().code() == errc::not_supported) {
    listed.throw_failure();
    const auto& why = listed.failed.back();
    throw LockError(why.code(), {{}, {}, why.server_text()});
  }
  return listed;
}

asio::awaitable<EvictAnswer> evict_lock(std::shared_ptr<Store> store, EvictRequest request) {
  auto answer = co_await store->backend().evict(std::move(request), operation_deadline(*store));
  co_return answer;
}

asio::awaitable<AskAnswer> ask_holder(std::shared_ptr<Store> store, std::string name,
                                      std::uint64_t token, Revocation how) {
  AskAnswer answer;
  answer.failure = co_await store->connected();
  if (answer.failure.error) co_return answer;
  const auto& me = store->me();
  how.who = fmt::format("{} ({}) on {}", me.app, pid_words_for_others(me), me.host);
  answer = co_await store->backend().ask(std::move(name), token, std::move(how),
                                         operation_deadline(*store));
  co_return answer;
}

/// The store that shows the lock's holder.
std::string home_of(Engine& engine, const std::string& name) {
  const auto& route = engine.route(name);
  if (core::other_store(route) == nullptr) return route.store;
  auto home = engine.run_on<Result<std::string>>(
      route.store,
      [&engine, &route, name](const std::shared_ptr<Store>&)
          -> asio::awaitable<Result<std::string>> { return engine.strategy(route)->home(name); });
  if (!home.value) fail(home.failure, name, route.store);
  return std::move(*home.value);
}

LockStatus ask_status(Engine& engine, const std::string& name,
                      std::optional<milliseconds> timeout = std::nullopt) {
  const auto store = home_of(engine, name);
  auto result =
      engine.run_on<Result<LockStatus>>(store, [name, timeout](std::shared_ptr<Store> at) {
        return inspect_lock(std::move(at), name, timeout);
      });
  if (!result.value) fail(result.failure, name, store);
  return std::move(*result.value);
}

}  // namespace

LockManager::LockManager(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
LockManager::LockManager(LockManager&&) noexcept = default;

LockManager& LockManager::operator=(LockManager&& other) noexcept {
  if (this != &other) {
    close();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

LockManager::~LockManager() { close(); }

void LockManager::close() noexcept {
  if (impl_) impl_->engine->close();
}

LockManager LockManager::from_config(Config config, OpenOptions options) {
  return LockManager(
      std::make_unique<Impl>(Impl{Engine::make(std::move(config), std::move(options))}));
}

LockManager LockManager::open(std::string_view url, OpenOptions options) {
  return from_config(Config::from_url(url), std::move(options));
}

LockManager LockManager::from_file(const std::string& path, OpenOptions options) {
  return from_config(Config::from_file(path), std::move(options));
}

LockManager LockManager::from_environment(OpenOptions options) {
  return from_config(Config::from_environment(), std::move(options));
}

std::shared_ptr<DistributedLock> LockManager::lock(std::string name) {
  return impl_->engine->lock(std::move(name));
}

std::shared_ptr<MultiLock> LockManager::lock_all(const std::vector<std::string>& names) {
  std::vector<std::shared_ptr<DistributedLock>> locks;
  locks.reserve(names.size());
  for (const auto& name : names) locks.push_back(lock(name));
  return std::make_shared<MultiLock>(std::move(locks));
}

std::vector<StoreReport> LockManager::inspect(std::optional<milliseconds> timeout) {
  std::vector<StoreReport> reports;
  for (const auto& name : impl_->engine->store_names()) {
    reports.push_back(
        impl_->engine->run_on<StoreReport>(name, [timeout](std::shared_ptr<Store> store) {
          return report_store(std::move(store), timeout);
        }));
  }
  return reports;
}

std::vector<SelfTestReport> LockManager::self_test(const std::string& store) {
  auto tested = impl_->engine->run_on<Result<std::vector<SelfTestReport>>>(
      store, [](std::shared_ptr<Store> at) { return test_servers(std::move(at)); });
  if (!tested.value) fail(tested.failure, {}, store);
  return std::move(*tested.value);
}

std::vector<std::string> LockManager::route_conflicts(const Config& config,
                                                      const std::string& store) {
  const auto note = impl_->engine->run_on<Result<std::string>>(
      store, [](std::shared_ptr<Store> at) { return core::read_route_note(std::move(at)); });
  if (!note.value) fail(note.failure, {}, store);
  const milliseconds now(impl_->engine->env().wall_clock_ms());
  return core::route_conflicts(config, store, *note.value, now);
}

void LockManager::connect(std::optional<milliseconds> timeout) {
  for (const auto& report : inspect(timeout)) {
    if (report.error) fail({report.error, report.message}, {}, report.name);
  }
}

LockStatus LockManager::status(const std::string& name, std::optional<milliseconds> timeout) {
  return ask_status(*impl_->engine, name, timeout);
}

std::shared_ptr<Engine> detail::ManagerAccess::engine(LockManager& manager) {
  return manager.impl_->engine;
}

StandingReport LockManager::check(const Sequencer& sequencer) {
  StandingReport report;
  try {
    const auto& route = impl_->engine->route(sequencer.name());
    // While a lock is being moved, the tokens of both stores are one sequence.
    if (core::leads_to(route, sequencer.store())) {
      return core::standing_of(sequencer, status(sequencer.name()));
    }
    report.error = make_error_code(errc::config_invalid);
    report.message = fmt::format(
        "granted by the store '{}', but here the lock is routed to '{}'; give the "
        "store one name in both configurations",
        sequencer.store(), route.store);
  } catch (const LockError& error) {
    report.error = error.code();
    report.message = error.server_text();
  }
  return report;
}

std::vector<LockStatus> LockManager::list(const std::string& prefix) {
  auto listed = all_locks(*impl_->engine, core::WantedNames(prefix));
  listed.throw_failure();
  return std::move(listed.all);
}

std::vector<LockStatus> LockManager::list(const std::string& prefix,
                                          std::vector<LockError>& unread) {
  auto listed = all_locks(*impl_->engine, core::WantedNames(prefix));
  if (!listed.has_list) listed.throw_failure();
  listed.tell_unread(unread);
  return std::move(listed.all);
}

Asked LockManager::ask(const std::string& name, std::optional<std::uint64_t> token,
                       std::optional<milliseconds> within) {
  const auto store = home_of(*impl_->engine, name);
  Revocation how;
  how.within = within;
  const auto answer =
      impl_->engine->run_on<AskAnswer>(store, [name, token, how](std::shared_ptr<Store> at) {
        return ask_holder(std::move(at), name, token.value_or(0), how);
      });
  if (answer.failure.error) fail(answer.failure, name, store);
  Asked asked;
  if (answer.token != 0) asked.token = answer.token;
  if (answer.heard != Heard::unknown) asked.heard = answer.heard == Heard::yes;
  return asked;
}

Evicted LockManager::evict(const std::string& name, std::uint64_t token, EvictOptions options,
                           std::stop_token stop) {
  return core::evict(*impl_->engine, home_of(*impl_->engine, name), {name, token}, options,
                     evict_lock, stop);
}

}  // namespace dlock::inline v0

namespace dlock::core {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{20};
constexpr milliseconds kLongestPause{500};

/// A store that does not answer for this long ends the wait.
constexpr std::chrono::seconds kLongestSilence{10};

/// Whether a marked record is gone, or another client holds the lock by now.
bool is_gone(const Failure& failure) {
  const auto what = portable(failure.error);
  return what == errc::not_found || what == errc::not_holder;
}

bool is_unavailable(const Failure& failure) { return portable(failure.error) == errc::unavailable; }

void add_to(Failure& failure, const char* about_mark) {
  failure.text += failure.text.empty() ? about_mark : fmt::format("; {}", about_mark);
}

/// Connects, writes this process and the present time into the mark, and sends the request.
asio::awaitable<EvictAnswer> send(std::shared_ptr<Store> store, EvictRequest request,
                                  EvictOnce* once) {
  EvictAnswer answer;
  answer.failure = co_await store->connected();
  if (answer.failure.error) co_return answer;
  request.mark.by = store->me();
  request.mark.by.id.clear();
  request.mark.at = milliseconds(store->env().wall_clock_ms());
  const bool is_first = !request.is_marked;
  answer = co_await once(store, std::move(request));
  if (is_first && is_unavailable(answer.failure)) add_to(answer.failure, "the lock may be broken");
  co_return answer;
}

/// Sleeps until the time is over or `stop` is requested.
void pause_for(milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace

Evicted evict(Engine& engine, const std::string& store, EvictRequest request,
              const EvictOptions& options, EvictOnce* once, const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  request.mark.reason = options.reason;
  request.at_once = options.at_once;
  const auto ask = [&] {
    return engine.run_on<EvictAnswer>(
        store, [&](std::shared_ptr<Store> at) { return send(std::move(at), request, once); });
  };
  const auto begun = Clock::now();
  auto answer = ask();
  if (answer.failure.error) fail(answer.failure, request.name, store);
  Evicted evicted{answer.is_free, answer.within};
  const bool needs_caller = answer.needs_caller;
  const auto leave = [&] {
    if (needs_caller) evicted.within.reset();
    return evicted;
  };
  if (!evicted.is_free && options.on_marked) options.on_marked(evicted);
  request.is_marked = true;
  auto pause = kFirstPause;
  auto answered = Clock::now();
  while (!evicted.is_free) {
    if (options.wait) {
      const auto left = std::chrono::ceil<milliseconds>(*options.wait - (Clock::now() - begun));
      if (left.count() <= 0) return leave();
      pause = std::min(pause, left);
    }
    pause_for(pause, stop);
    if (stop.stop_requested()) return leave();
    pause = std::min(pause * 2, kLongestPause);
    answer = ask();
    if (is_gone(answer.failure)) return {true, milliseconds(0)};
    const bool may_answer = Clock::now() - answered < kLongestSilence;
    if (is_unavailable(answer.failure) && may_answer) continue;
    if (answer.failure.error) {
      add_to(answer.failure, "the mark stays");
      fail(answer.failure, request.name, store);
    }
    answered = Clock::now();
    evicted = {answer.is_free, answer.within};
  }
  return evicted;
}

LockStatus status_of(Engine& engine, const std::string& name) { return ask_status(engine, name); }

}  // namespace dlock::core
