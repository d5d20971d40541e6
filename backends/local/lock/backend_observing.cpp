// SPDX-License-Identifier: Apache-2.0
//
// Observers of a lock's holder are notified by the closes of its file: at a release that others
// wait for, and at the death of its holder. A process that begins or ends to hold the lock also
// opens and closes the file (tell_holder_changed()).
#include <algorithm>

#include "backends/local/backend.hpp"
#include "backends/local/rules/names.hpp"

namespace dlock::local {
namespace {

/// The notification arrives a little before the bytes are unlocked.
constexpr std::chrono::milliseconds kOnceMore{20};

}  // namespace

bool LocalBackend::watch_holder(const std::string& name) {
  auto& observed = observed_[name];
  observed.file = file_name(name);
  set_observing(observed);
  return watcher_.running();
}

void LocalBackend::unwatch_holder(const std::string& name) noexcept {
  const auto found = observed_.find(name);
  if (found == observed_.end()) return;
  const auto watch = found->second.watch;
  env_.cancel(found->second.again);
  observed_.erase(found);
  if (watch >= 0 && !queues_.watched(watch)) end_watch(watch);
}

/// Watches the file. If it cannot be watched, checks it periodically.
void LocalBackend::set_observing(Observed& observed) {
  if (!directory_) return;
  observed.watch = watcher_.watch_file_too(directory_->path_of(observed.file));
  if (observed.watch < 0) watcher_.watch_new_files();
}

void LocalBackend::set_all_observing() {
  for (auto& [name, observed] : observed_) set_observing(observed);
}

void LocalBackend::tell_observers(const std::string& name, Observed& observed) {
  sink_.on_holder_changed(name);
  if (observed.again != 0) return;
  observed.again = env_.call_at(env_.now() + kOnceMore, [this, name] {
    const auto found = observed_.find(name);
    if (found == observed_.end()) return;
    found->second.again = 0;
    sink_.on_holder_changed(name);
  });
}

bool LocalBackend::is_observed(int watch) const noexcept {
  return std::any_of(observed_.begin(), observed_.end(),
                     [watch](const auto& entry) { return entry.second.watch == watch; });
}

/// Ends the watch of a file, unless another observer needs it.
void LocalBackend::end_watch(int watch) noexcept {
  if (!is_observed(watch)) watcher_.unwatch(watch);
}

void LocalBackend::tell_holder_changed(const std::string& name) {
  if (!directory_) return;
  LockFile closed_at_once;
  LockFile::open(directory_->get(), file_name(name).c_str(), closed_at_once);
}

}  // namespace dlock::local
