// SPDX-License-Identifier: Apache-2.0
#include "backends/local/backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "backends/local/lock/enqueue.hpp"
#include "backends/local/lock/inspect.hpp"
#include "backends/local/lock/permits_file.hpp"
#include "backends/local/rules/names.hpp"
#include "backends/local/rules/pace.hpp"
#include "backends/local/wire/place.hpp"
#include "dlock/lock_status.hpp"

namespace dlock::local {
namespace {

using std::chrono::milliseconds;

// The kernel reports the close of a dying process a little before it drops its locks.
constexpr auto kLookAgain = milliseconds(1);
// The pause between tries of a claim without a ticket.
constexpr auto kTryAgain = milliseconds(5);

constexpr std::size_t kRememberedTokens = 4096;

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

/// Option `mode`. Throws LockError{config_invalid}.
std::optional<mode_t> file_mode_of(const StoreOptions& options) {
  const auto& text = options.string("mode");
  if (text.empty()) return std::nullopt;
  mode_t mode = 0;
  const auto* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, mode, 8);
  const bool is_octal = read.ec == std::errc() && read.ptr == end;
  const bool is_usable = is_octal && (mode & ~mode_t{0666}) == 0 && (mode & 0600) == 0600;
  if (!is_usable) {
    refuse_option(options, "mode",
                  fmt::format("mode {}: write read and write rights of files in octal, with both "
                              "for the owner: 0660",
                              text));
  }
  return mode;
}

/// Returns whether the claim is held and its holder listens for other requests.
bool is_listening(const LocalClaim& claim) {
  return claim.state == LocalClaim::State::granted && claim.request().tell_contention;
}

}  // namespace

LocalBackend::LocalBackend(const StoreOptions& options, Env& env, EventSink& sink, WakeBy wake_by)
    : env_(env),
      sink_(sink),
      path_(without_trailing_slash(options.path)),
      trust_file_system_(options.flag("trust_filesystem")),
      file_mode_(file_mode_of(options)),
      wake_by_(wake_by),
      helper_(env),
      watcher_(env, *this) {}

LocalBackend::~LocalBackend() { env_.cancel(path_timer_); }

asio::awaitable<Failure> LocalBackend::connect(TimePoint deadline) {
  co_return co_await open_directory_in_time(deadline);
}

Capabilities LocalBackend::describe(const Directory& directory) const {
  Capabilities capabilities;
  capabilities.guarantee = Guarantee::exclusive;
  capabilities.assumptions = {
      {"one_kernel",
       "all who use the directory run under one kernel (containers of one host do, hosts that "
       "mount "
       "it do not)"},
      {"lock_files_kept",
       "nobody removes, replaces or edits files in the directory, and its path leads to it; "
       "another "
       "one in its place is noticed within 250 ms"},
  };
  if (directory.file_system.verdict != FileSystem::Verdict::good) {
    capabilities.assumptions.push_back(
        {"filesystem_keeps_locks",
         "the operator's word (trust_filesystem) that locks on a file "
         "system of " +
             directory.file_system.name + " reach every process"});
  }
  capabilities.fair = true;
  capabilities.shared_mode = true;
  capabilities.permits = true;
  // A store that a reboot deletes seeds its tokens from the clock again.
  capabilities.token =
      directory.file_system.forgets ? TokenStrength::time_seeded : TokenStrength::durable;
  capabilities.wake_up = watcher_.running() ? WakeUp::push : WakeUp::poll;
  capabilities.lease_scope = LeaseScope::none;
  capabilities.can_list = true;
  capabilities.can_evict = false;
  capabilities.can_tell_contention = watcher_.running();
  capabilities.can_bound_queue = true;
  capabilities.can_ask = watcher_.running();
  capabilities.can_raise = true;
  capabilities.can_seal = true;
  capabilities.can_gate = true;
  if (directory.file_system.forgets) {
    capabilities.record_losses.push_back(
        {"the directory is on " + directory.file_system.name + ": a reboot forgets it",
         "a directory on a disk"});
  }
  capabilities.notes = {"directory " + directory.path, "file system " + directory.file_system.name,
                        "no lease: a stopped holder keeps the lock, a dead one frees it at once"};
  return capabilities;
}

ClaimPtr LocalBackend::make_claim(ClaimRequest request) {
  if (request.permits != 0) return make_permits_claim(std::move(request), env_);
  return std::make_shared<LocalClaim>(std::move(request), env_);
}

ClaimAnswer LocalBackend::grant(const LocalClaim& claim) {
  if (claim.request().tell_contention) listen_for_others(*claim.queue);
  ClaimAnswer answer;
  answer.status = ClaimStatus::granted;
  answer.token = claim.ticket;
  return answer;
}

// Only earlier tickets count: later claims have higher ones.
bool LocalBackend::has_others_before(LocalClaim& claim) const {
  if (claim.is_next) return false;
  if (!claim.queue->is_looker(claim.ticket)) return true;
  std::optional<std::uint64_t> somebody;
  const auto end = kTicketBase + claim.ticket;
  const auto found = claim.request().mode == Mode::shared
                         ? claim.file.find_exclusive(kTicketBase, end, somebody)
                         : claim.file.find_locked(kTicketBase, end, somebody);
  // A failed check does not prove that the claim is next.
  claim.is_next = found.ok() && !somebody;
  claim.ahead = somebody ? kTicketBase + claim.ticket - *somebody : 0;
  return !claim.is_next;
}

ClaimAnswer LocalBackend::look(LocalClaim& claim) {
  const bool others = has_others_before(claim);
  ClaimAnswer answer;
  answer.status = ClaimStatus::waiting;
  if (others && !claim.sealed && !claim.maybe_sealed) return answer;
  auto stands = Stands::gone;
  const auto asked =
      directory_ ? claim.file.look_at_name(directory_->get(), claim.file_name.c_str(), stands)
                 : SystemResult{};
  if (!asked.ok()) {
    answer.status = ClaimStatus::unavailable;
    answer.failure = system_failure(asked.error, path_);
    return answer;
  }
  if (stands == Stands::gone) {
    claim.gone = true;
    return answer;
  }
  // Before any grant. The check of the path also notifies the claims that continue to wait.
  if (!others) look_at_path();
  if (claim.gone) return answer;
  return look_at_contents(claim, others);
}

// After the check of the queue: a claim that left it has written its record before.
ClaimAnswer LocalBackend::look_at_contents(LocalClaim& claim, bool others_before) {
  ClaimAnswer answer;
  LockContents contents;
  answer.failure =
      read_contents_unguarded(claim.file, directory_->path_of(claim.file_name), contents);
  if (answer.failure.error) {
    answer.status = ClaimStatus::unavailable;
    return answer;
  }
  claim.maybe_sealed = false;
  claim.sealed = contents.move.sealed();
  if (claim.sealed) {
    // The other claims of this process do not check while this one is before them.
    for (const auto& other : claim.queue->everybody()) {
      if (other.get() == &claim || other->sealed) continue;
      other->maybe_sealed = other->interrupted = true;
      other->signal.notify();
    }
    answer.status = ClaimStatus::sealed;
    answer.record = std::move(contents.record);
    return answer;
  }
  answer.status = ClaimStatus::waiting;
  if (others_before) return answer;
  // Drawn before the tokens were raised: it needs another.
  if (claim.ticket <= contents.move.floor) {
    claim.gone = true;
    return answer;
  }
  claim.state = LocalClaim::State::granted;
  write_holder(claim.file, claim.ticket, claim.request(), env_.wall_clock_ms());
  remember(claim);
  return grant(claim);
}

asio::awaitable<void> LocalBackend::wait(ClaimPtr claim, TimePoint deadline) {
  const auto ours = std::static_pointer_cast<LocalClaim>(std::move(claim));
  if (ours->guard) co_return co_await wait_for_permits(ours, deadline);
  if (ours->sealed) {
    co_await wait_behind_record(ours, deadline);
    co_return;
  }
  if (ours->state != LocalClaim::State::waiting) {
    co_await ours->signal.wait_until(std::min(deadline, env_.now() + kTryAgain));
    ours->interrupted = false;
    co_return;
  }
  bool woken = false;
  while (!closed_ && !ours->gone && !ours->interrupted && env_.now() < deadline) {
    TimePoint until = deadline;
    if (ours->queue->is_looker(ours->ticket)) {
      if (!has_others_before(*ours)) break;
      // The claim before this one may have ended between the check and the watch: check again.
      if (start_watching(ours)) continue;
      if (finds_record(*ours)) break;
      const Duration pause = woken                     ? Duration(kLookAgain)
                             : ours->queue->watch >= 0 ? Duration(kLookAnyway)
                                                       : pause_untold(ours->ahead);
      until = std::min(deadline, env_.now() + pause);
    }
    woken = co_await ours->signal.wait_until(until);
  }
  ours->interrupted = false;
}

void LocalBackend::interrupt(Claim& claim) noexcept {
  auto& ours = static_cast<LocalClaim&>(claim);
  ours.interrupted = true;
  ours.signal.notify();
  if (ours.guard) interrupt(*ours.guard);
}

bool LocalBackend::start_watching(const LocalClaimPtr& claim) {
  auto& queue = claim->queue;
  if (queue->watch >= 0 || !directory_) return false;
  const int watch = watcher_.watch_file(directory_->path_of(queue->file()));
  if (watch < 0) return false;
  queues_.set_watch(queue, watch);
  return true;
}

// The kernel converts one lock into the other in one step. Waiters behind this claim notice it by
// the close of the file, which no other process closes just now.
asio::awaitable<DowngradeAnswer> LocalBackend::downgrade(ClaimPtr held, TimePoint /*deadline*/) {
  const auto ours = std::static_pointer_cast<LocalClaim>(std::move(held));
  DowngradeAnswer answer;
  if (ours->gone || ours->state != LocalClaim::State::granted) {
    answer.status = DowngradeStatus::gone;
    answer.reason = LossReason::removed;
    co_return answer;
  }
  const auto shared = ours->file.try_lock_shared(kTicketBase + ours->ticket);
  if (!shared.ok()) {
    answer.status = DowngradeStatus::unavailable;
    answer.failure = system_failure(shared.error, path_);
    co_return answer;
  }
  answer.status = DowngradeStatus::shared;
  ours->queue->share(ours->ticket);
  ours->queue->notify_lookers();
  LockFile again;  // closed at once; without it the waiters check only every 250 ms
  if (directory_) LockFile::open(directory_->get(), ours->file_name.c_str(), again);
  co_return answer;
}

// Without a lease there is nothing to extend; the core does not ask.
asio::awaitable<std::vector<ExtendAnswer>> LocalBackend::extend(std::vector<ClaimPtr> claims,
                                                                TimePoint /*deadline*/) {
  ExtendAnswer extended;
  extended.status = ExtendStatus::extended;
  std::vector<ExtendAnswer> answers(claims.size(), extended);
  co_return answers;
}

asio::awaitable<ReleaseAnswer> LocalBackend::release(ClaimPtr claim, bool /*search*/,
                                                     TimePoint /*deadline*/) {
  const auto ours = std::static_pointer_cast<LocalClaim>(std::move(claim));
  ReleaseAnswer answer;
  const bool lost = ours->gone && ours->state == LocalClaim::State::granted;
  answer.status = lost ? ReleaseStatus::not_holder : ReleaseStatus::released;
  if (ours->guard) {
    drop_permits(*ours);
    co_return answer;
  }
  drop(*ours);
  co_return answer;
}

// Called after the unlock: a claim that queues later finds this one gone at its check, which it
// makes before it waits. If the next claim is of this process, leave_queue notifies it, and those
// behind it wait for it. But behind an exclusive claim, readers do not wait for each other.
bool LocalBackend::must_wake_others(const LocalClaim& claim) {
  std::optional<std::uint64_t> somebody;
  const auto behind = kTicketBase + claim.ticket + 1;
  const auto next_of_ours =
      kTicketBase + claim.queue->next_behind(claim.ticket, claim.request().mode);
  return !claim.file.find_locked(behind, next_of_ours, somebody).ok() || somebody;
}

// The byte is unlocked before the close: a process that inherited the descriptor would keep it. The
// close is what wakes others; where none is to be woken, the file stays open for the next claim.
void LocalBackend::drop(LocalClaim& claim) {
  if (claim.file && claim.state != LocalClaim::State::none) {
    claim.file.unlock(kTicketBase + claim.ticket);
    // A command that also has the file open would keep a later lock of this process when the
    // process dies.
    const bool may_stay = claim.queue && !claim.gone && !closed_ && !claim.is_inherited();
    if (may_stay && !must_wake_others(claim)) {
      queues_.keep(*claim.queue, std::move(claim.file));
    }
  }
  claim.file.close();
  leave_queue(claim);
  claim.state = LocalClaim::State::none;
  claim.ticket = 0;
  claim.is_next = false;
  claim.gone = false;
  claim.sealed = false;
  claim.maybe_sealed = false;
}

void LocalBackend::leave_queue(LocalClaim& claim) {
  const auto queue = std::move(claim.queue);
  claim.queue.reset();
  if (!queue) return;
  const bool others_may_look = queue->leave(claim.ticket);
  retire_if_empty(*queue);
  if (others_may_look) queue->notify_lookers();
}

void LocalBackend::retire_if_empty(LocalQueue& queue) {
  if (queue.empty()) end_watch(queues_.retire(queue));
}

void LocalBackend::take_place(const LocalClaimPtr& claim, std::uint64_t ticket,
                              LocalClaim::State state) {
  claim->ticket = ticket;
  claim->state = state;
  claim->is_next = state == LocalClaim::State::granted;
  claim->queue = queues_.of(claim->file_name);
  claim->queue->join(ticket, claim);
  if (state == LocalClaim::State::granted) remember(*claim);
  look_at_path_later();
}

void LocalBackend::remember(const LocalClaim& claim) {
  if (tokens_.size() >= kRememberedTokens) tokens_.clear();
  tokens_[claim.file_name] = claim.ticket;
}

std::uint64_t LocalBackend::known_token(const std::string& file) const {
  const auto found = tokens_.find(file);
  return found == tokens_.end() ? 0 : found->second;
}

void LocalBackend::on_file_closed(int watch) {
  for (auto& [name, observed] : observed_) {
    if (observed.watch == watch) tell_observers(name, observed);
  }
  const auto queue = queues_.watched(watch);
  if (!queue) return;
  queue->notify_lookers();
  const auto first = queue->first();
  if (first && is_listening(*first)) sink_.on_contended(first);  // a try that found it held
}

void LocalBackend::on_name_changed(std::string_view file) {
  if (const auto asked = lock_file_asked(file); !asked.empty()) return hear_asking(asked);
  for (auto& [name, observed] : observed_) {
    if (observed.file != file) continue;
    set_observing(observed);
    tell_observers(name, observed);
  }
  const auto queue = queues_.find(std::string(file));
  if (!queue) return;
  queues_.take_kept(*queue).close();
  check_file(queue);
  retire_if_empty(*queue);
}

void LocalBackend::check_file(const std::shared_ptr<LocalQueue>& queue) {
  for (const auto& claim : queue->everybody()) {
    auto stands = Stands::here;
    const bool asked =
        directory_ &&
        claim->file.look_at_name(directory_->get(), claim->file_name.c_str(), stands).ok();
    if (asked && stands == Stands::gone) lose(claim);
  }
}

// Removes the claim from the line at once: new claims queue in another file.
void LocalBackend::lose(const LocalClaimPtr& claim) {
  claim->gone = true;
  leave_queue(*claim);
  claim->signal.notify();
  if (claim->state == LocalClaim::State::granted) {
    sink_.on_claim_gone(claim, LossReason::removed);
  }
}

void LocalBackend::on_directory_gone() { leave_directory("was removed or moved away"); }

// A holder that is notified here has held its lock in the old directory until now. Claims that use
// the path are not granted in the new directory before that (settle_directory).
void LocalBackend::look_at_path() {
  if (!directory_) return;
  int ignored = 0;
  if (where_it_leads(*directory_, ignored) == Leads::elsewhere) {
    remove_mark(*directory_);
    leave_directory("is not there any more: its path leads to another directory, or to none");
  }
}

void LocalBackend::look_at_path_later() {
  if (path_timer_ != 0 || closed_ || !queues_.anybody()) return;
  path_timer_ = env_.call_at(env_.now() + kLookAtPath, [this] {
    path_timer_ = 0;
    look_at_path();
    look_at_path_later();
  });
}

void LocalBackend::leave_directory(const std::string& why) {
  directory_.reset();
  watcher_.stop();
  for (auto& [name, observed] : observed_) observed.watch = -1;
  while (const auto claim = queues_.anybody()) lose(claim);
  queues_.close_kept();
  sink_.on_warning(fmt::format("the lock directory {} {}; locks held in it are lost", path_, why));
}

void LocalBackend::on_events_lost() {
  for (auto& [name, observed] : observed_) tell_observers(name, observed);
  for (const auto& queue : queues_.all()) {
    check_file(queue);
    queue->notify_lookers();
    const auto first = queue->first();
    if (first && is_listening(*first)) sink_.on_contended(first);
    hear_asking(queue->file());
  }
}

asio::awaitable<Result<LockStatus>> LocalBackend::inspect(std::string name, TimePoint deadline) {
  auto result = std::make_shared<Result<LockStatus>>();
  look_at_path();
  result->failure = co_await open_directory_in_time(deadline);
  if (result->failure.error) co_return std::move(*result);
  Job job = [result, directory = directory_, name = std::move(name),
             now_ms = env_.wall_clock_ms()] { *result = read_status(*directory, name, now_ms); };
  if (const bool done = co_await helper_.run(std::move(job), deadline); done)
    co_return std::move(*result);
  Result<LockStatus> failed;
  failed.failure = helper_.why_late(path_);
  co_return failed;
}

asio::awaitable<Result<std::vector<LockStatus>>> LocalBackend::list(std::string prefix,
                                                                    TimePoint deadline) {
  auto result = std::make_shared<Result<std::vector<LockStatus>>>();
  look_at_path();
  result->failure = co_await open_directory_in_time(deadline);
  if (result->failure.error) co_return std::move(*result);
  Job job = [result, directory = directory_, prefix = std::move(prefix),
             now_ms = env_.wall_clock_ms()] { *result = read_all(*directory, prefix, now_ms); };
  if (const bool done = co_await helper_.run(std::move(job), deadline); done)
    co_return std::move(*result);
  Result<std::vector<LockStatus>> failed;
  failed.failure = helper_.why_late(path_);
  co_return failed;
}

asio::awaitable<EvictAnswer> LocalBackend::evict(EvictRequest request, TimePoint deadline) {
  EvictAnswer answer;
  auto& failure = answer.failure;
  const auto standing = co_await record(request.name, deadline);
  failure = standing.failure;
  if (!failure.error && standing.found) {
    failure = make_failure(Error::sealed, "dlock migrate moves or opens it");
  }
  if (failure.error) co_return answer;
  auto found = co_await inspect(request.name, deadline);
  failure = std::move(found.failure);
  if (failure.error) co_return answer;
  const auto& status = *found.value;
  const bool named = status.owner && status.owner->pid > 0;
  if (!status.held) {
    failure = make_failure(Error::not_held, "");
  } else if (status.token != request.token) {
    failure = make_failure(Error::other_token, fmt::format("its token is {}", *status.token));
  } else {
    failure =
        make_failure(Error::cannot_evict,
                     named ? fmt::format("{} on {}", pid_words(*status.owner), status.owner->host)
                           : fmt::format("the process that has {} open (fuser, lslocks)", path_));
  }
  co_return answer;
}

// The kernel keeps the bytes locked until the descriptor is closed.
Job LocalBackend::leave_behind(ClaimPtr claim) {
  auto& ours = static_cast<LocalClaim&>(*claim);
  auto file = std::make_shared<LockFile>(std::move(ours.file));
  leave_queue(ours);
  ours.slots.clear();
  ours.state = LocalClaim::State::none;
  return [file = std::move(file)] { file->close(); };
}

asio::awaitable<void> LocalBackend::close(TimePoint /*deadline*/) {
  closed_ = true;
  env_.cancel(std::exchange(path_timer_, 0));
  for (const auto& [name, observed] : observed_) env_.cancel(observed.again);
  observed_.clear();
  watcher_.stop();
  helper_.close();
  queues_.close_kept();
  for (const auto& queue : queues_.all()) {
    for (const auto& claim : queue->everybody()) claim->signal.notify();
  }
  co_return;
}

}  // namespace dlock::local
