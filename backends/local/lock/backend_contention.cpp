// SPDX-License-Identifier: Apache-2.0
//
// Telling a holder that somebody else asks: whoever does writes his ticket into the file. The file
// is watched for that as long as it is held by somebody who wants to know.
#include "backends/local/backend.hpp"

namespace dlock::local {

// The watch first: who comes after the look writes after it. He locks his byte before he writes.
void LocalBackend::listen_for_others(LocalQueue& queue) {
  const auto holder = queue.first();
  if (!holder) return;
  const int watch = directory_ ? watcher_.watch_held_file(directory_->path_of(queue.file())) : -1;
  if (watch >= 0) queues_.set_watch(holder->queue, watch);
  if (watch < 0 || has_others_behind(*holder)) sink_.on_contended(holder);
}

/// Also of this process: each has an open file of its own.
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
