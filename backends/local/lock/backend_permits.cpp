// SPDX-License-Identifier: Apache-2.0
//
// Permits of a semaphore. A claim queues in a separate lock file (the guard). The first in line
// counts the bytes that others have locked, waits until enough are free, and locks as many as it
// wants. Then the next claim is first. Only one holder can lock a byte below the limit, so the
// limit is never exceeded, whatever happens to the line.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "backends/local/backend.hpp"
#include "backends/local/lock/enqueue.hpp"
#include "backends/local/lock/permits_file.hpp"
#include "backends/local/rules/names.hpp"
#include "dlock/lock_status.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::local {
namespace {

using std::chrono::milliseconds;

constexpr int kMostTurns = 8;
/// Without inotify, and after its notification, which arrives a little before the bytes are
/// unlocked.
constexpr milliseconds kLookUntold{10};
constexpr milliseconds kLookOnceMore{1};
/// How often a waiter behind others reads the limit.
constexpr milliseconds kCheckLimit{500};

ClaimAnswer told(ClaimStatus status, Failure failure = {}) {
  ClaimAnswer answer;
  answer.status = status;
  answer.failure = std::move(failure);
  return answer;
}

Failure why_not(const ClaimRequest& request, std::uint32_t limit) {
  if (request.limit != 0 && request.limit != limit) {
    return wrong_limit(request.name, request.limit, limit);
  }
  if (request.permits > limit) return too_many_permits(request.name, request.permits, limit);
  return {};
}

}  // namespace

asio::awaitable<ClaimAnswer> LocalBackend::claim_permits(LocalClaimPtr claim, TimePoint deadline) {
  const auto guard = claim->guard;
  for (int turn = 0; turn < kMostTurns && !closed_; ++turn) {
    if (claim->gone) drop_permits(*claim);
    if (claim->state == LocalClaim::State::granted) co_return grant(*claim);
    if (guard->state != LocalClaim::State::granted || guard->gone) {
      auto stands = co_await this->claim(guard, deadline);
      if (stands.status == ClaimStatus::waiting && !claim->file && directory_) {
        // For people: how many it waits for.
        if (open_permits(*directory_, claim->file_name, claim->file).ok()) {
          write_waiter(claim->file, guard->ticket, claim->request(), env_.wall_clock_ms());
        }
      }
      if (stands.status == ClaimStatus::waiting && claim->file) {
        if (auto refused = check_limit(*claim)) co_return std::move(*refused);
      }
      if (stands.status != ClaimStatus::granted) co_return stands;
    }
    auto answer = co_await take_permits(claim, deadline);
    if (answer) co_return std::move(*answer);
  }
  drop_permits(*claim);
  co_return refusal(make_failure(Error::system, path_ + ": the permits' file keeps changing"));
}

// The first in line reports a limit that cannot be read.
std::optional<ClaimAnswer> LocalBackend::check_limit(LocalClaim& claim) {
  std::optional<std::uint32_t> limit;
  if (read_limit(claim.file, path_, limit).error || !limit) return std::nullopt;
  auto failure = why_not(claim.request(), *limit);
  if (!failure.error) return std::nullopt;
  drop_permits(claim);
  return told(ClaimStatus::failed, std::move(failure));
}

// With the guard.
asio::awaitable<std::optional<ClaimAnswer>> LocalBackend::take_permits(LocalClaimPtr claim,
                                                                       TimePoint deadline) {
  const auto& request = claim->request();
  const auto directory = directory_;
  if (!directory) co_return std::nullopt;
  const auto path = directory->path_of(claim->file_name);
  SystemResult opened;
  if (!claim->file) opened = open_permits(*directory, claim->file_name, claim->file);
  std::optional<std::uint32_t> limit;
  auto failure =
      opened.ok() ? read_limit(claim->file, path, limit) : system_failure(opened.error, path);
  if (failure.error) {
    drop_permits(*claim);
    co_return refusal(std::move(failure));
  }
  if (!limit && request.limit != 0) {
    failure = co_await write_limit(request.name, request.limit, true, deadline);
    if (!failure.error) co_return std::nullopt;
    drop_permits(*claim);
    co_return refusal(std::move(failure));
  }
  failure = limit ? why_not(request, *limit) : unknown_semaphore(request.name);
  if (failure.error) {
    drop_permits(*claim);
    co_return told(ClaimStatus::failed, std::move(failure));
  }
  co_return fill_slots(claim, *limit);
}

std::optional<ClaimAnswer> LocalBackend::fill_slots(const LocalClaimPtr& claim,
                                                    std::uint32_t limit) {
  const auto& request = claim->request();
  const auto taken = taken_slots(claim->file);
  std::vector<std::uint64_t> slots;
  if (taken.size() + request.permits <= limit) {
    for (std::uint64_t slot = 0; slot < limit && slots.size() < request.permits; ++slot) {
      if (std::binary_search(taken.begin(), taken.end(), slot)) continue;
      if (claim->file.try_lock(kTicketBase + slot).ok()) slots.push_back(slot);
    }
  }
  auto stands = Stands::gone;
  const auto asked = claim->file.look_at_name(directory_->get(), claim->file_name.c_str(), stands);
  look_at_path();
  if (!directory_ || claim->gone || (asked.ok() && stands == Stands::gone)) {
    drop_permits(*claim);
    return std::nullopt;
  }
  if (!claim->queue) {
    claim->ticket = claim->guard->ticket;
    claim->queue = queues_.of(claim->file_name);
    claim->queue->join(claim->ticket, claim);
    look_at_path_later();
  }
  if (slots.size() == request.permits) {
    const auto now = env_.wall_clock_ms();
    for (const auto slot : slots) write_slot(claim->file, slot, claim->ticket, request, now);
    claim->slots = std::move(slots);
    claim->state = LocalClaim::State::granted;
    drop(*claim->guard);
    return grant(*claim);
  }
  for (const auto slot : slots) claim->file.unlock(kTicketBase + slot);
  if (!request.queue) {
    drop_permits(*claim);
    return told(ClaimStatus::busy);
  }
  if (claim->state == LocalClaim::State::none) {
    write_waiter(claim->file, claim->ticket, request, env_.wall_clock_ms());
  }
  claim->state = LocalClaim::State::waiting;
  return told(ClaimStatus::waiting);
}

asio::awaitable<void> LocalBackend::wait_for_permits(LocalClaimPtr claim, TimePoint deadline) {
  if (claim->guard->state != LocalClaim::State::granted) {
    co_return co_await wait(claim->guard, std::min(deadline, env_.now() + kCheckLimit));
  }
  const bool first_of_all = claim->queue && start_watching(claim);
  const bool at_once = first_of_all || claim->gone || claim->guard->gone || claim->interrupted ||
                       closed_ || !claim->queue;
  if (!at_once) {
    const Duration pause = std::exchange(claim->was_told, false) ? Duration(kLookOnceMore)
                           : claim->queue->watch >= 0            ? Duration(kLookAnyway)
                                                                 : Duration(kLookUntold);
    claim->was_told = co_await claim->signal.wait_until(std::min(deadline, env_.now() + pause));
  }
  claim->interrupted = false;
}

// Unlocked first: a process that inherited the descriptor would keep them. The close wakes others.
void LocalBackend::drop_permits(LocalClaim& claim) {
  for (const auto slot : std::exchange(claim.slots, {})) claim.file.unlock(kTicketBase + slot);
  claim.file.close();
  leave_queue(claim);
  claim.state = LocalClaim::State::none;
  claim.ticket = 0;
  claim.gone = false;
  drop(*claim.guard);
}

asio::awaitable<Failure> LocalBackend::write_limit(std::string name, std::uint32_t limit,
                                                   bool if_absent, TimePoint deadline) {
  auto failure = co_await open_directory_in_time(deadline);
  if (failure.error) co_return failure;
  auto written = std::make_shared<Failure>();
  Job job = [written, directory = directory_, file = permits_file_name(name), limit, if_absent] {
    *written = write_limit_through(*directory, file, limit, if_absent);
  };
  const bool done = co_await helper_.run(std::move(job), deadline);
  co_return done ? *written : helper_.why_late(path_);
}

asio::awaitable<Failure> LocalBackend::set_limit(std::string name, std::uint32_t limit,
                                                 TimePoint deadline) {
  look_at_path();
  co_return co_await write_limit(std::move(name), limit, false, deadline);
}

asio::awaitable<Result<std::vector<SemaphoreStatus>>> LocalBackend::list_semaphores(
    std::string prefix, TimePoint deadline) {
  auto result = std::make_shared<Result<std::vector<SemaphoreStatus>>>();
  look_at_path();
  result->failure = co_await open_directory_in_time(deadline);
  if (result->failure.error) co_return std::move(*result);
  Job job = [result, directory = directory_, prefix = std::move(prefix),
             now_ms = env_.wall_clock_ms()] {
    *result = read_semaphores(*directory, prefix, now_ms);
  };
  if (const bool done = co_await helper_.run(std::move(job), deadline); done) {
    co_return std::move(*result);
  }
  Result<std::vector<SemaphoreStatus>> late;
  late.failure = helper_.why_late(path_);
  co_return late;
}

// The kernel keeps them while their holder lives.
asio::awaitable<EvictAnswer> LocalBackend::evict_permits(EvictRequest request, TimePoint deadline) {
  EvictAnswer answer;
  auto& failure = answer.failure;
  auto found = co_await inspect_semaphore(request.name, deadline);
  failure = std::move(found.failure);
  if (failure.error) co_return answer;
  const auto& holders = found.value->holders;
  const auto holder = std::find_if(holders.begin(), holders.end(), [&request](const auto& one) {
    return one.token == request.token;
  });
  if (holders.empty()) {
    failure = make_failure(Error::not_held, "");
  } else if (holder == holders.end()) {
    failure = make_failure(Error::other_token, "");
  } else {
    const auto& owner = holder->owner;
    failure = make_failure(
        Error::cannot_evict,
        owner.pid > 0 ? fmt::format("{} on {}", pid_words(owner), owner.host)
                      : fmt::format("the process that has {} open (fuser, lslocks)", path_));
  }
  co_return answer;
}

asio::awaitable<Result<SemaphoreStatus>> LocalBackend::inspect_semaphore(std::string name,
                                                                         TimePoint deadline) {
  auto result = std::make_shared<Result<SemaphoreStatus>>();
  look_at_path();
  result->failure = co_await open_directory_in_time(deadline);
  if (result->failure.error) co_return std::move(*result);
  Job job = [result, directory = directory_, name = std::move(name),
             now_ms = env_.wall_clock_ms()] { *result = read_semaphore(*directory, name, now_ms); };
  if (const bool done = co_await helper_.run(std::move(job), deadline); done) {
    co_return std::move(*result);
  }
  Result<SemaphoreStatus> late;
  late.failure = helper_.why_late(path_);
  co_return late;
}

}  // namespace dlock::local
