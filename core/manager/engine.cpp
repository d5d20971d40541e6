// SPDX-License-Identifier: Apache-2.0
#include "core/manager/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <exception>
#include <future>
#include <set>

#include "core/config/options.hpp"
#include "core/loop/hire_later.hpp"
#include "core/process/exhausted.hpp"
#include "core/process/of_process.hpp"
#include "core/process/standard_streams.hpp"
#include "core/routes/route_note.hpp"
#include "dlock/detail/out_of_memory.hpp"
#include "dlock/detail/recycled.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/fork.hpp"
#include "dlock/spi/name.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::core {
namespace {

using std::chrono::milliseconds;

/// The texts that this process has warned with. Thread safety: add() from any thread.
class Warnings {
 public:
  /// Returns whether `text` is new.
  bool add(std::string_view text) {
    const std::lock_guard lock(mutex_);
    return texts_.emplace(text).second;
  }

 private:
  std::mutex mutex_;
  std::set<std::string> texts_;
};

/// One lock name on the store that its route names.
class RoutedLock final : public DistributedLock {
 public:
  RoutedLock(std::shared_ptr<Engine> engine, std::string name, const RouteConfig& route)
      : engine_(std::move(engine)),
        name_(std::move(name)),
        route_(route),
        cached_(engine_->cached(name_, route_)) {}

  const std::string& name() const noexcept override { return name_; }
  const std::string& store() const noexcept override { return route_.store; }
  std::optional<std::chrono::milliseconds> default_wait() const noexcept override {
    return engine_->default_wait(route_);
  }
  detail::LockContext& context() const noexcept override { return *engine_; }
  detail::Canceller start_acquire(AcquireOptions options, detail::AcquireHandler handler) override {
    if (!cached_) return engine_->start_acquire(name_, route_, options, std::move(handler), {}, {});
    return start_cached(options, std::move(handler));
  }

 private:
  detail::Canceller start_cached(AcquireOptions options, detail::AcquireHandler handler);

  const std::shared_ptr<Engine> engine_;
  const std::string name_;
  const RouteConfig& route_;  ///< the engine's
  const std::shared_ptr<CachedLock> cached_;
};

// An acquire with its own lease, for reading, with a head start, or revocable makes a separate
// claim. The store queues that behind the claim that is kept here.
detail::Canceller RoutedLock::start_cached(AcquireOptions options, detail::AcquireHandler handler) {
  const bool wants_another = options.lease || options.mode == Mode::shared || options.revocable ||
                             options.head_start.count() != 0;
  const auto& cached = wants_another ? nullptr : cached_;
  detail::Canceller nothing = [] {};  // before the handler is called
  if (cached && engine_->take_cached(*cached, route_, options, handler)) return nothing;
  return engine_->start_acquire(name_, route_, options, std::move(handler), cached, {});
}

/// Usually one thread runs the callbacks; up to this number while user code blocks all the others.
constexpr Crew::Limits kTellers{.least = 1, .most = 64, .patience = std::chrono::milliseconds(1)};
/// Handlers run one after the other.
constexpr Crew::Limits kCompleters{.most = 1};
/// Closing a store takes its release_timeout twice and four seconds at most; this is for one that
/// does not keep its bound.
constexpr std::chrono::seconds kCloseSlack{5};
/// How long a log that does not take its lines may delay the end.
constexpr std::chrono::milliseconds kLogPatience{1000};

/// The user's handler is gone then; the loop and the locks are not.
void tell_refused(LogLines& log, const char* what) {
  log.write(
      LogLevel::error,
      fmt::format("a completion handler was dropped, its executor did not accept it: {}", what));
}

/// The code that passes a result to the user's executor may fail there: Asio's own executor makes
/// its threads at first use.
template <class Handler>
auto guard(std::shared_ptr<LogLines> log, Handler handler) {
  return [log = std::move(log), handler = std::move(handler)](auto... results) mutable {
    try {
      handler(std::move(results)...);
    } catch (const std::bad_alloc&) {
      throw;  // in the library's work it ends the process
    } catch (const std::exception& error) {
      tell_refused(*log, error.what());
    }
  };
}

/// Returns what is wrong with the bounds of its use; empty: nothing.
std::string refused_use(const AcquireOptions& options) {
  const auto is_wrong = [](const auto& limit) { return limit && limit->count() <= 0; };
  if (is_wrong(options.max_hold)) return "max_hold: it must be positive";
  if (is_wrong(options.progress_every)) return "progress_every: it must be positive";
  return {};
}

/// A plan moves a lock from its one holder to the next: of readers it knows nothing.
void refuse_shared(const Acquisition::Request& request, const std::string& store,
                   const std::shared_ptr<detail::AcquireHandler>& handler) {
  if (request.diagnostics != nullptr) {
    *request.diagnostics = {request.name, store,
                            "mode shared: the route of this lock has `migrate`, and a migration "
                            "moves exclusive locks only; leave the mode out until the plan is "
                            "finished and `migrate` is gone from the route"};
  }
  once(handler)(make_error_code(errc::invalid_argument), LockHandle());
}

[[noreturn]] void fail(Failure failure) {
  throw LockError(failure.error, {{}, {}, std::move(failure.text)});
}

// An answer in less than three seconds, whatever has become of the store.
constexpr milliseconds kPatienceOfOneTry{2500};
constexpr milliseconds kPatienceOfTwoTries{1100};

std::optional<milliseconds> patience_of(const StoreSettings& settings, bool once) {
  if (settings.connect_timeout_given) return std::nullopt;
  if (once) return kPatienceOfOneTry;
  if (settings.retry.kind == RetryPolicy::Kind::one_time) return kPatienceOfTwoTries;
  return std::nullopt;
}

/// How long a claim may take where `settings` are.
void set_bounds(const StoreSettings& settings, Acquisition::Request& request) {
  request.limits.connect_timeout = settings.connect_timeout;
  request.limits.patience = patience_of(settings, request.limits.once);
  request.limits.retry = settings.retry;
}

/// A secret that is missing is a matter of its own store, if there are others.
ResolvedStore resolve(const StoreConfig& store, std::span<const BackendDescriptor* const> backends,
                      bool only_one) {
  try {
    return resolve_store(store, backends);
  } catch (const MissingReference& missing) {
    if (only_one) throw;
    return unusable_store(store, missing);
  }
}

/// A program that ends sooner leaves no note of its routes, and its acquires have priority.
constexpr std::chrono::seconds kRouteNoteDelay{1};
constexpr std::chrono::hours kRouteNoteAgain{12};

// Threads of the parent do not exist in a fork()ed child, and destroying what they used would
// touch what is shared with the parent (the epoll set): the child keeps it, reachable, until it
// ends.
template <class T>
void leak(T object) {
  or_end([&object] {
    static auto* const kept = new std::vector<T>();
    kept->push_back(std::move(object));
  });
}

/// Returns true if the program named one URL: it has no file whose routes can be edited.
bool is_one_url(const Config& config) {
  return config.stores.size() == 1 && config.stores.front().origin.line == 0;
}

}  // namespace

std::shared_ptr<Engine> Engine::make(Config config, OpenOptions options) {
  fill_standard_streams();
  try {
    return std::make_shared<Engine>(std::move(config), std::move(options));
  } catch (const LockError&) {
    throw;
  } catch (const boost::system::system_error& error) {
    fail(out_of_descriptors(error.code()));
  } catch (const std::system_error& error) {
    fail(out_of_descriptors(error.code()));
  }
}

Engine::Runtime::Runtime(bool callers_lead, Completions::OnException on_exception)
    : driving(std::make_shared<Driving>(env, callers_lead)),
      tellers(make_crew(env, kTellers)),
      completions(
          std::make_shared<Completions>(make_crew(env, kCompleters), std::move(on_exception))) {
  env.serve(*driving);
}

Engine::Engine(Config config, OpenOptions options)
    : options_(std::move(options)),
      routes_(config.locks),
      sections_(config.sections),
      digest_(is_one_url(config) ? std::string() : config_digest(config)),
      lock_order_([this](const std::string& text) { log(LogLevel::warning, text); }),
      reentry_(std::make_shared<Reentry>()),
      generation_(fork_generation()),
      log_(make_log()) {
  for (const auto& store : config.stores) {
    auto resolved = resolve(store, options_.backends, config.stores.size() == 1);
    Store::Setup setup{
        std::move(resolved.settings), std::move(resolved.options), resolved.backend, {}};
    for (const auto& route : routes_.all()) {
      if (!leads_to(route, store.name)) continue;
      setup.required_by_routes.insert(setup.required_by_routes.end(), route.require.begin(),
                                      route.require.end());
    }
    setups_.push_back(std::move(setup));
  }
  sections_.check(*this);
  make_runtime();
  for (const auto& warning : config.warnings) log(LogLevel::warning, warning);
}

Engine::~Engine() {
  if (runtime_ && !is_foreign()) finish_threads();
}

std::shared_ptr<LogLines> Engine::make_log() const {
  return std::make_shared<LogLines>(options_.log ? options_.log : default_log());
}

void Engine::make_runtime() {
  auto runtime =
      std::make_unique<Runtime>(options_.io_on_calling_threads, [log = log_](const char* what) {
        log->write(LogLevel::error,
                   fmt::format("a completion handler without an executor threw: {}", what));
      });
  runtime->env.deliveries().on_refused(
      [log = log_](const char* what) { tell_refused(*log, what); });
  runtime_.swap(runtime);
  for (const auto& setup : setups_) {
    runtime_->stores.emplace(setup.options.name, std::make_shared<Store>(*this, setup));
  }
  runtime_->make_strategy = make_strategies(*this);
  runtime_->noted.assign(routes_.all().size(), 0);
}

// Opened before a fork() and not used there: nothing of the parent's is touched.
void Engine::begin_anew_in_child() {
  if (started_ || fork_generation() == generation_) return;
  or_end([this] {
    leak(std::shared_ptr<Runtime>(std::move(runtime_)));
    leak(std::move(log_));
    log_ = make_log();
    make_runtime();
    reentry_ = std::make_shared<Reentry>();
  });
  generation_ = fork_generation();
}

Failure Engine::start_locked() {
  if (closed_) return make_failure(errc::closed, {});
  if (started_) return {};
  try {
    begin_anew_in_child();
  } catch (const boost::system::system_error& error) {
    return out_of_descriptors(error.code());
  } catch (const std::system_error& error) {
    return out_of_descriptors(error.code());
  }
  try {
    start_threads();
  } catch (const std::system_error& error) {
    return out_of_threads(error.code());
  }
  started_ = true;
  return {};
}

// Threads that were made stay if the others cannot be: the next call continues from there.
void Engine::start_threads() {
  runtime_->tellers->start();
  runtime_->loop = start_thread([this] {
    runtime_->driving->run_here([this, is_told = false](const char* what) mutable {
      if (std::exchange(is_told, true)) return;
      log(LogLevel::error, fmt::format("an exception left a handler of the loop, which is a "
                                       "mistake in dlock; more of them are not logged: {}",
                                       what));
    });
  });
  log_->hire();
}

bool Engine::is_foreign() const noexcept { return started_ && fork_generation() != generation_; }

// A job posted before close() always runs. close() rejects new jobs before it posts its own.
bool Engine::post(Job job) { return !try_post(std::move(job)).error; }

Failure Engine::try_post(Job job) {
  if (is_foreign()) return make_failure(errc::closed, {});
  const std::lock_guard lock(mutex_);
  auto failure = start_locked();
  if (failure.error) return failure;
  runtime_->driving->on_work();
  env().post(std::move(job));
  return {};
}

Reentry& Engine::reentry() {
  if (!started_) {
    const std::lock_guard lock(mutex_);
    begin_anew_in_child();
  }
  return *reentry_;
}

asio::any_io_executor Engine::callback_executor() {
  if (is_foreign()) return Completions::alone()->executor();
  const std::lock_guard lock(mutex_);
  if (closed_) return Completions::alone()->executor();
  begin_anew_in_child();
  return runtime_->completions->executor();
}

std::shared_ptr<Store> Engine::store(const std::string& name) const {
  return runtime_->stores.at(name);
}

std::vector<std::string> Engine::store_names() const {
  std::vector<std::string> names;
  names.reserve(setups_.size());
  for (const auto& setup : setups_) names.push_back(setup.options.name);
  return names;
}

const RouteConfig& Engine::route(const std::string& name) const {
  if (auto wrong = name_error(name); !wrong.empty()) {
    throw LockError(make_error_code(errc::invalid_name), {name, {}, std::move(wrong)});
  }
  const auto* route = routes_.find(name);
  if (route == nullptr) {
    throw LockError(
        make_error_code(errc::config_invalid),
        {name, {}, "no entry of `locks:` matches it; add { match: \"**\", store: ... }"});
  }
  return *route;
}

std::shared_ptr<DistributedLock> Engine::lock(std::string name) {
  const auto& found = route(name);
  return std::make_shared<RoutedLock>(self(), std::move(name), found);
}

const Store::Setup& Engine::setup_of(const std::string& store) const {
  return *std::find_if(setups_.begin(), setups_.end(),
                       [&](const Store::Setup& setup) { return setup.options.name == store; });
}

std::optional<milliseconds> Engine::default_wait(const RouteConfig& route) const noexcept {
  return route.wait ? route.wait : setup_of(route.store).settings.wait;
}

Acquisition::Request Engine::make_request(const std::string& name, const RouteConfig& route,
                                          const AcquireOptions& options, Permits permits) {
  const auto& settings = setup_of(route.store).settings;
  const auto wait = options.wait ? options.wait : route.wait ? route.wait : settings.wait;
  Acquisition::Request request;
  request.name = name;
  request.mode = permits.count == 0 ? options.mode : Mode::shared;
  request.permits = permits.count;
  request.limit = permits.limit;
  request.lease = options.lease ? options.lease : route.lease;
  request.require = route.require;
  request.diagnostics = options.diagnostics;
  request.must_tell_contention = options.tell_contention;
  request.revocable = options.revocable;
  request.head_start = options.head_start;
  request.max_queue = options.max_queue || permits.count != 0 ? options.max_queue
                      : route.max_queue                       ? route.max_queue
                                                              : settings.max_queue;
  request.limits.once = wait && wait->count() <= 0;
  // A wait so long that the clock would overflow is one for ever.
  if (wait && !request.limits.once && *wait < std::chrono::hours(24 * 365 * 10)) {
    request.limits.deadline = env().now() + *wait;
  }
  set_bounds(settings, request);
  return request;
}

// One wait, wherever the lock is.
Acquisition::Request Engine::at(const std::string& store, Acquisition::Request request) const {
  set_bounds(setup_of(store).settings, request);
  return request;
}

UseLimit Engine::use_limit(const RouteConfig& route, const AcquireOptions& options) const noexcept {
  UseLimit limit{options.max_hold, options.progress_every};
  if (!limit.max_hold) limit.max_hold = route.max_hold;
  if (!limit.max_hold) limit.max_hold = setup_of(route.store).settings.max_hold;
  return limit;
}

/// Called when a user gets the hold. Uses nothing of the engine, which may have ended.
void Engine::hand_out(const std::shared_ptr<Hold>& hold, const UseLimit& limit) {
  if (limit.any()) {
    auto& env = hold->host().env();
    hold->bound().begin(limit, env.now());
    env.post([weak = std::weak_ptr(hold), at = hold->store()] {
      const auto store = at.lock();
      const auto limited = weak.lock();
      if (store && limited) store->limit_use(limited);
    });
  }
  hold->hand_out();
}

Strategy* Engine::strategy(const RouteConfig& route) {
  if (other_store(route) == nullptr) return nullptr;
  auto& known = runtime_->strategies[&route];
  if (!known) known = runtime_->make_strategy->make(route);
  return known.get();
}

Job Engine::launch(const RouteConfig& route, Acquisition::Request request,
                   const std::shared_ptr<detail::AcquireHandler>& handler,
                   const std::shared_ptr<CachedLock>& cached) {
  if (auto* const how = strategy(route)) {
    if (request.mode == Mode::exclusive) return how->start(std::move(request), handler);
    refuse_shared(request, route.store, handler);
    return [] {};
  }
  note_route(route);
  auto at = store(route.store);
  if (cached) return cached->acquire(at, std::move(request), handler);
  auto acquisition =
      detail::make_recycled<Acquisition>(at, std::move(request), std::move(*handler));
  std::weak_ptr<Acquisition> underway = acquisition;
  at->acquire(std::move(acquisition));
  return [underway] {
    if (const auto found = underway.lock()) found->cancel();
  };
}

void Engine::note_route(const RouteConfig& route) {
  if (digest_.empty()) return;
  const auto index = static_cast<std::size_t>(&route - routes_.all().data());
  if (std::exchange(runtime_->noted[index], 1) != 0) return;
  env().call_at(env().now() + kRouteNoteDelay, [this, index] { write_route(index); });
}

void Engine::write_route(std::size_t index) {
  const auto& route = routes_.all()[index];
  auto at = store(route.store);
  const auto again = at->is_up() ? Duration(kRouteNoteAgain) : Duration::zero();
  env().call_at(env().now() + again, [this, index] { runtime_->noted[index] = 0; });
  if (!at->is_up() || !keeps_route_note(*at)) return;
  RouteUse use;
  use.configuration = digest_;
  use.match = route.match;
  for (const auto& before : routes_.all()) {
    if (&before == &route) break;
    use.before.push_back(before.match);
  }
  spawn(env(), add_route_use(std::move(at), std::move(use)));
}

detail::Canceller Engine::start_acquire(const std::string& name, const RouteConfig& route,
                                        AcquireOptions options, detail::AcquireHandler handler,
                                        const std::shared_ptr<CachedLock>& cached,
                                        Permits permits) {
  return start(name, make_request(name, route, options, permits), route, options,
               std::move(handler), cached);
}

detail::Canceller Engine::start_adoption(const std::string& name, const RouteConfig& route,
                                         std::shared_ptr<const Adoption> adoption,
                                         AcquireOptions options, detail::AcquireHandler handler) {
  auto request = make_request(name, route, options, {});
  request.max_queue.reset();
  request.adoption = std::move(adoption);
  return start(name, std::move(request), route, options, std::move(handler), nullptr);
}

detail::Canceller Engine::start(const std::string& name, Acquisition::Request request,
                                const RouteConfig& route, const AcquireOptions& options,
                                detail::AcquireHandler handler,
                                const std::shared_ptr<CachedLock>& cached) {
  const auto limit = use_limit(route, options);
  if (auto refused = refused_use(options); !refused.empty()) {
    if (options.diagnostics != nullptr) *options.diagnostics = {name, route.store, refused};
    handler(make_error_code(errc::invalid_argument), LockHandle());
    return [] {};
  }
  auto cancel = detail::make_recycled<Job>();
  auto shared_handler = detail::make_recycled<detail::AcquireHandler>(
      [limit, handler = guard(log_, std::move(handler))](error_code ec, LockHandle handle) mutable {
        if (const auto& hold = HandleAccess::hold(handle)) hand_out(hold, limit);
        handler(ec, std::move(handle));
      });
  // An error before it has begun is reported, too.
  Job begin = [this, cancel, shared_handler, &route, cached,
               request = std::move(request)]() mutable {
    try {
      *cancel = launch(route, std::move(request), shared_handler, cached);
    } catch (const std::exception& error) {
      const auto why = failure_of(error);
      if (*shared_handler) once(shared_handler)(why.error, LockHandle());
    }
  };
  detail::Canceller canceller = [weak = std::weak_ptr(self()), cancel] {
    or_end([&] {
      const auto engine = weak.lock();
      if (!engine) return;
      engine->post([cancel] {
        if (*cancel) (*cancel)();
      });
    });
  };
  // The last step that may throw: the loop has the handler from then on.
  if (auto failure = try_post(std::move(begin)); failure.error) {
    if (options.diagnostics != nullptr) *options.diagnostics = {name, {}, std::move(failure.text)};
    (*shared_handler)(failure.error, LockHandle());
  }
  return canceller;
}

std::shared_ptr<CachedLock> Engine::cached(const std::string& name, const RouteConfig& route) {
  const auto& settings = setup_of(route.store).settings;
  if (settings.cache.count() == 0 && settings.cohort == 0) return nullptr;
  if (other_store(route) != nullptr || is_foreign()) return nullptr;
  const std::lock_guard lock(cached_mutex_);
  auto& known = cached_[name];
  auto found = known.lock();
  if (!found) {
    known = found =
        std::make_shared<CachedLock>(CachedLock::Limits{settings.cache, settings.cohort});
  }
  if (cached_.size() >= most_cached_) {
    std::erase_if(cached_, [](const auto& each) { return each.second.expired(); });
    most_cached_ = std::max(most_cached_, 2 * cached_.size());
  }
  return found;
}

bool Engine::take_cached(CachedLock& cached, const RouteConfig& route,
                         const AcquireOptions& options, detail::AcquireHandler& handler) {
  if (!refused_use(options).empty()) return false;
  LockHandle handle(cached.take());
  if (!handle) return false;
  if (options.diagnostics != nullptr) *options.diagnostics = {};
  hand_out(HandleAccess::hold(handle), use_limit(route, options));
  guard(log_, std::move(handler))(error_code(), std::move(handle));
  return true;
}

// An exception is logged. on_loss is called for a loss that was not known before the store's
// answer.
Releaser::Done Engine::guarded(const std::shared_ptr<Hold>& hold, Releaser::Done done) {
  const bool tells_losses = options_.on_loss || options_.log_losses;
  if (!done && !tells_losses) return done;
  return guard(log_, [this, hold, done = std::move(done), tells_losses](error_code ec) mutable {
    if (tells_losses && ec == errc::lock_lost) tell_loss_at_release(*hold);
    if (done) done(ec);
  });
}

void Engine::tell_loss_at_release(Hold& hold) {
  auto loss = hold.loss_at_release();
  if (!loss) return;
  post_callback(make_errand([engine = self(), loss = std::move(*loss)] {
    try {
      engine->on_loss(loss);
    } catch (const std::exception& error) {
      engine->log(LogLevel::error, fmt::format("on_loss threw an exception: {}", error.what()));
    } catch (...) {
      engine->log(LogLevel::error, "on_loss threw an exception of an unknown type");
    }
  }));
}

void Engine::release(const std::shared_ptr<Hold>& hold, Releaser::Done done) {
  const auto told = detail::make_recycled<Releaser::Done>(guarded(hold, std::move(done)));
  const bool is_posted = post([hold, told] {
    if (const auto at = hold->store().lock()) return at->release(hold, std::move(*told));
    if (*told) (*told)(make_error_code(errc::closed));
  });
  if (!is_posted && *told) (*told)(make_error_code(errc::closed));
}

asio::awaitable<void> Engine::close_stores() {
  std::vector<OneShot<bool>> closed;
  for (const auto& [name, store] : runtime_->stores) {
    closed.emplace_back(env());
    spawn(env(), close_store(store, closed.back()));
  }
  // Once for the work under a lock, once for the release.
  const auto until = env().now() + 2 * longest_release_timeout() + kCloseSlack;
  for (const auto& one : closed) co_await one.get_until(until);
  runtime_->calls.end_all();
  runtime_->closed.set_value();
}

asio::awaitable<void> Engine::close_store(std::shared_ptr<Store> store, OneShot<bool> closed) {
  co_await store->close();
  closed.set(true);
}

void Engine::close() noexcept {
  if (is_foreign()) return leak(self());
  if (fork_generation() != generation_) {
    closed_ = true;
    return leak(self());
  }
  const NoCancellation uncancelled;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    if (started_) {
      or_end([this] { env().post([this] { spawn(env(), close_stores()); }); });
    } else {
      runtime_->closed.set_value();
    }
  }
  runtime_->when_closed.wait();
  if (runtime_->loop.joinable()) {
    runtime_->driving->stop();
    runtime_->loop.join();
  }
  // The locks of a store that did not close in time are not valid any more.
  for (const auto& [name, store] : runtime_->stores) store->end();
  finish_threads();
}

std::chrono::milliseconds Engine::longest_release_timeout() const noexcept {
  auto longest = std::chrono::milliseconds(0);
  for (const auto& setup : setups_) longest = std::max(longest, setup.settings.release_timeout);
  return longest;
}

// Waits for user code no longer than for a store that does not answer.
void Engine::finish_threads() noexcept {
  const auto until = std::chrono::steady_clock::now() + longest_release_timeout();
  runtime_->tellers->finish(until);
  runtime_->completions->finish(until);
  log_->finish(kLogPatience);
}

void Engine::on_loss(const Loss& loss) {
  if (options_.log_losses) {
    const auto token = loss.token ? fmt::format(", token {}", *loss.token) : std::string();
    const auto by = loss.broken_by.empty() ? std::string() : " by " + loss.broken_by;
    log(loss.reason == LossReason::closed ? LogLevel::info : LogLevel::warning,
        fmt::format("lock '{}' of store '{}'{} is lost: {}{}{}", loss.name, loss.store, token,
                    to_string(loss.reason), by, loss.through_mutex ? ", through a Mutex" : ""));
  }
  if (options_.on_loss) options_.on_loss(loss);
}

std::string Engine::refused_export(const std::string& lock) const {
  return other_store(route(lock)) == nullptr ? std::string() : std::string(kMigrates);
}

void Engine::log(LogLevel level, std::string_view text) const { log_->write(level, text); }

void Engine::warn_once(std::string_view text) const {
  if (of_process<Warnings>().add(text)) log(LogLevel::warning, text);
}

}  // namespace dlock::core
