// SPDX-License-Identifier: Apache-2.0
//
// Queues a claim: directory, file, guard, ticket. Each step may find that another has to be
// repeated, since other processes are active meanwhile.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "backends/local/backend.hpp"
#include "backends/local/lock/enqueue.hpp"
#include "backends/local/lock/waiting.hpp"
#include "backends/local/wire/descriptor_limit.hpp"
#include "backends/local/wire/place.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::local {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// The guard is held for microseconds. If it is still locked after this time, a process was stopped
// with it. The claim then receives `busy`, so the loop is never blocked.
constexpr auto kGuardPatience = milliseconds(20);
constexpr int kGuardTriesAtOnce = 4;
constexpr Duration kShortestGuardPause = microseconds(30);
constexpr Duration kLongestGuardPause = milliseconds(1);

// A file that is removed at each open, or a disk that fails each time, is not tried forever.
constexpr int kMostRounds = 8;

// The step of a claim that waits for a directory to settle: a close must not wait for the claim.
constexpr auto kSettlingStep = milliseconds(20);

ClaimAnswer answer_of(ClaimStatus status) {
  ClaimAnswer answer;
  answer.status = status;
  return answer;
}

Failure open_failure(int number, const std::string& path) {
  auto failure = system_failure(number, path);
  if (number == EMFILE) failure.text += "; " + descriptor_limit_text();
  return failure;
}

}  // namespace

asio::awaitable<Failure> LocalBackend::open_directory_in_time(TimePoint deadline) {
  while (!directory_) {
    auto failure = co_await find_directory(deadline);
    if (failure.error) co_return failure;
    failure = co_await settle_directory(deadline);
    if (failure.error) co_return failure;
    if (!directory_ && found_) adopt(std::exchange(found_, nullptr));
  }
  co_return Failure{};
}

/// Sets `found_` to the directory that the path leads to.
asio::awaitable<Failure> LocalBackend::find_directory(TimePoint deadline) {
  auto opened = std::make_shared<DirectoryResult>();
  const DirectorySettings settings{file_mode_, was_open_};
  Job job = [opened, path = path_, trust = trust_file_system_, settings,
             now_ms = env_.wall_clock_ms()] {
    *opened = open_directory(path, trust, now_ms, settings);
    const bool short_of_descriptors =
        opened->failure.error == make_error_code(Error::descriptors_used_up);
    if (short_of_descriptors && raise_descriptor_limit()) {
      *opened = open_directory(path, trust, now_ms, settings);
    }
  };
  const bool in_time = co_await helper_.run(std::move(job), deadline);
  if (directory_) co_return Failure{};  // another was quicker
  if (!in_time) co_return helper_.why_late(path_);
  if (opened->failure.error) co_return opened->failure;
  const auto& now_there = opened->directory;
  const auto settles_at = env_.now() + now_there->unsettled;
  const bool known =
      found_ && found_->device == now_there->device && found_->inode == now_there->inode;
  settles_at_ = known ? std::min<TimePoint>(settles_at_, settles_at) : settles_at;
  found_ = now_there;
  co_return Failure{};
}

// The path may lead there only since a moment ago, and other processes may hold locks in the
// directory before. They check the path twice in this time, and are notified. `found_` is null if
// the path leads elsewhere again.
asio::awaitable<Failure> LocalBackend::settle_directory(TimePoint deadline) {
  while (!directory_ && found_) {
    int ignored = 0;
    const auto leads = where_it_leads(*found_, ignored);
    if (leads == Leads::elsewhere) found_.reset();
    const auto now = env_.now();
    if (leads == Leads::elsewhere || now >= settles_at_) break;
    if (closed_ || now >= deadline) {
      co_return make_failure(Error::too_new, fmt::format("{} is served in {} ms after it is made",
                                                         path_, kSettling.count()));
    }
    const TimePoint next = now + kSettlingStep;
    co_await sleep_until(env_, std::min(next, std::min(settles_at_, deadline)));
  }
  co_return Failure{};
}

void LocalBackend::adopt(const DirectoryPtr& directory) {
  const int error =
      wake_by_ == WakeBy::inotify ? watcher_.start(directory->get(), way_to(path_)) : 0;
  if (error != 0) {
    sink_.on_warning(system_failure(error, "inotify").text +
                     " (fs.inotify.max_user_instances?): waiters poll every 10 to 250 ms instead");
  }
  capabilities_ = describe(*directory);
  directory_ = directory;
  was_open_ = true;
  set_all_observing();
}

// A missing file is made on the helper thread, because it is synced to the disk before its first
// ticket is drawn. Its tickets begin at the clock: above those of a removed file.
asio::awaitable<Failure> LocalBackend::open_file(LocalClaimPtr claim, TimePoint deadline) {
  const auto directory = directory_;
  const char* const file = claim->file_name.c_str();
  auto opened = LockFile::open(directory->get(), file, claim->file);
  if (opened.error == EMFILE && (raise_descriptor_limit() || queues_.close_kept())) {
    opened = LockFile::open(directory->get(), file, claim->file);
  }
  if (opened.ok()) co_return Failure{};
  if (opened.error != ENOENT) {
    co_return open_failure(opened.error, directory->path_of(claim->file_name));
  }
  const auto clock_us =
      static_cast<std::uint64_t>(std::max<std::int64_t>(env_.wall_clock_ms(), 0)) * 1000;
  const auto above = std::max(std::min(clock_us, kLastTicket / 2), known_token(claim->file_name));
  auto failure = std::make_shared<Failure>();
  Job job = [failure, directory, above, file_name = claim->file_name, name = claim->request().name,
             unique = make_uuid(env_)] {
    *failure = create_lock_file(*directory, file_name, name, above, unique);
  };
  if (const bool done = co_await helper_.run(std::move(job), deadline); !done) {
    co_return helper_.why_late(directory->path_of(claim->file_name));
  }
  const bool short_of_descriptors = failure->error == make_error_code(Error::descriptors_used_up);
  if (short_of_descriptors && queues_.close_kept()) co_return Failure{};  // tried again
  co_return *failure;
}

// Never waited for in the kernel: a stopped process may hold it.
asio::awaitable<SystemResult> LocalBackend::take_guard(LockFile& file, TimePoint deadline) {
  const auto give_up = std::min(deadline, env_.now() + kGuardPatience);
  Duration pause = kShortestGuardPause;
  for (;;) {
    SystemResult tried;
    for (int i = 0; i < kGuardTriesAtOnce; ++i) {
      tried = file.try_lock(kGuardByte);
      if (tried.error != EAGAIN) co_return tried;
    }
    const auto now = env_.now();
    if (now >= give_up || closed_) co_return tried;
    const auto jitter = Duration(env_.random() % static_cast<std::uint64_t>(pause.count()));
    co_await sleep_until(env_, std::min(give_up, now + pause / 2 + jitter));
    pause = std::min(pause * 2, kLongestGuardPause);
  }
}

asio::awaitable<Failure> LocalBackend::raise_limit(LocalClaimPtr claim, std::uint64_t raised,
                                                   TimePoint deadline) {
  const auto directory = directory_;
  auto failure = std::make_shared<Failure>();
  Job job = [failure, directory, file_name = claim->file_name] {
    *failure = sync_lock_file(*directory, file_name);
  };
  if (const bool done = co_await helper_.run(std::move(job), deadline); !done) {
    co_return helper_.why_late(directory->path_of(claim->file_name));
  }
  if (failure->error) co_return *failure;
  const auto guard = co_await take_guard(claim->file, deadline);
  if (!guard.ok()) co_return system_failure(guard.error, directory->path_of(claim->file_name));
  co_return confirm_limit(claim->file, *directory, claim->file_name, raised);
}

asio::awaitable<ClaimAnswer> LocalBackend::claim(ClaimPtr claim, TimePoint deadline) {
  const auto ours = std::static_pointer_cast<LocalClaim>(std::move(claim));
  if (ours->guard) co_return co_await claim_permits(ours, deadline);
  if (ours->gone) drop(*ours);
  if (ours->state == LocalClaim::State::granted) co_return grant(*ours);
  if (ours->state == LocalClaim::State::waiting) {
    auto answer = look(*ours);
    if (!ours->gone) co_return answer;
    drop(*ours);
  }
  for (int round = 0; round < kMostRounds && !closed_; ++round) {
    std::optional<ClaimAnswer> answer;
    bool guarded = takes_guard_at_once(*ours);
    if (!guarded) guarded = co_await come_to_guard(ours, deadline, answer);
    if (guarded) {
      auto entry = enter_line(*ours);
      if (entry.raised == 0) {
        answer = settle(ours, entry);
      } else {
        answer = co_await settle_raised(ours, std::move(entry), deadline);
      }
    }
    if (answer) co_return std::move(*answer);
  }
  drop(*ours);
  co_return refusal(make_failure(Error::system, path_ + ": the lock file keeps changing"));
}

// Returns whether the file was kept for the next claim and its guard is free: then there is nothing
// to wait for.
bool LocalBackend::takes_guard_at_once(LocalClaim& claim) {
  if (!directory_) return false;
  if (!claim.file) {
    auto queue = queues_.find(claim.file_name);
    if (queue) claim.file = queues_.take_kept(*queue);
    if (claim.file) claim.queue = std::move(queue);
  }
  return claim.file && claim.file.try_lock(kGuardByte).ok();
}

asio::awaitable<bool> LocalBackend::come_to_guard(LocalClaimPtr claim, TimePoint deadline,
                                                  std::optional<ClaimAnswer>& answer) {
  auto failure = co_await open_directory_in_time(deadline);
  if (failure.error) {
    answer = refusal(std::move(failure));
    co_return false;
  }
  const auto directory = directory_;
  if (!claim->file) {
    failure = co_await open_file(claim, deadline);
    if (failure.error == make_error_code(Error::removed)) {
      if (directory == directory_) on_directory_gone();
      co_return false;
    }
    if (failure.error) answer = refusal(std::move(failure));
    if (!claim->file) co_return false;  // perhaps it was made: now open it
  }
  const auto guard = co_await take_guard(claim->file, deadline);
  if (guard.ok() && directory == directory_) co_return true;
  // The guard of a kept file that no longer belongs to the lock excludes no claim.
  auto stands = Stands::gone;
  const auto asked = claim->file.look_at_name(directory->get(), claim->file_name.c_str(), stands);
  drop(*claim);
  if (directory != directory_ || (asked.ok() && stands == Stands::gone)) co_return false;
  answer = guard.error == EAGAIN
               ? answer_of(ClaimStatus::busy)
               : refusal(system_failure(guard.error, directory->path_of(claim->file_name)));
  co_return false;
}

Entry LocalBackend::enter_line(LocalClaim& claim) {
  const EntryRequest request{*directory_, claim.file_name, claim.request(),
                             known_token(claim.file_name), env_.wall_clock_ms()};
  return enter(claim.file, request);
}

asio::awaitable<std::optional<ClaimAnswer>> LocalBackend::settle_raised(LocalClaimPtr claim,
                                                                        Entry entry,
                                                                        TimePoint deadline) {
  const auto raised = entry.raised;
  const bool had_none = entry.what == Entry::What::raise;
  auto answer = settle(claim, entry);
  const bool placed = claim->state != LocalClaim::State::none;
  if (!had_none && !placed) co_return answer;
  auto failure = co_await raise_limit(claim, raised, deadline);
  if (had_none && failure.error) {
    drop(*claim);
    co_return refusal(std::move(failure));
  }
  // If the claim has a ticket, the failure shows when the limit is reached. Then a claim has to
  // wait for the limit.
  if (!claim->gone) co_return answer;
  drop(*claim);
  co_return std::nullopt;
}

ClaimAnswer LocalBackend::waiting(const LocalClaim& claim) const {
  auto answer = answer_of(ClaimStatus::waiting);
  const auto& most = claim.request().max_queue;
  if (most) answer.waiting_before = waiting_before(claim.file, claim.ticket, *most);
  return answer;
}

std::optional<ClaimAnswer> LocalBackend::settle(const LocalClaimPtr& claim, Entry& entry) {
  switch (entry.what) {
    case Entry::What::granted:
      take_place(claim, entry.ticket, LocalClaim::State::granted);
      return grant(*claim);
    case Entry::What::waiting:
      take_place(claim, entry.ticket, LocalClaim::State::waiting);
      return waiting(*claim);
    case Entry::What::busy:
      drop(*claim);
      return answer_of(ClaimStatus::busy);
    case Entry::What::turned: {
      drop(*claim);  // which wakes those behind
      auto answer = answer_of(ClaimStatus::gate_changed);
      answer.record = std::move(entry.record);
      return answer;
    }
    case Entry::What::sealed: {
      auto answer = answer_of(ClaimStatus::sealed);
      answer.record = std::move(entry.record);
      drop(*claim);
      claim->sealed = true;
      return answer;
    }
    case Entry::What::raise:
      return std::nullopt;
    case Entry::What::replaced:
      break;
    case Entry::What::moved:
      look_at_path();
      break;
    case Entry::What::failed:
      drop(*claim);
      return refusal(std::move(entry.failure));
  }
  drop(*claim);
  return std::nullopt;
}

}  // namespace dlock::local
