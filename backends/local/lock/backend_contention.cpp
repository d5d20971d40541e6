// SPDX-License-Identifier: Apache-2.0
//
// Notifies a holder that another client asks for its lock. Such a client writes its ticket into the
// file. The file is watched for that while a listening holder holds the lock.
#include "backends/local/backend.hpp"

namespace dlock::local {

// Sets the watch first: a claim that arrives after the check writes after it. A claim locks its
// byte before it writes.
void LocalBackend::listen_for_others(LocalQueue& queue) {
  const auto holder = queue.first();
  if (!holder) return;
  const int watch = directory_ ? watcher_.watch_held_file(directory_->path_of(queue.file())) : -1;
  if (watch >= 0) queues_.set_watch(holder->queue, watch);
  if (watch < 0 || has_others_behind(*holder)) sink_.on_contended(holder);
}

/// Includes claims of this process: each has its own open file.
bool LocalBackend::has_others_behind(const LocalClaim& claim) {
  std::optional<std::uint64_t> somebody;
  const auto behind = kTicketBase + claim.ticket + 1;
  return !claim.file.find_locked(behind, kEveryTicket, somebody).ok() || somebody;
}

void LocalBackend::on_file_written(int watch) {
  const auto queue = queues_.watched(watch);
  const auto holder = queue ? queue->first() : nullptr;
  const bool listens =
      holder && holder->state == LocalClaim::State::granted && holder->request().tell_contention;
  if (listens && has_others_behind(*holder)) sink_.on_contended(holder);
}

}  // namespace dlock::local
