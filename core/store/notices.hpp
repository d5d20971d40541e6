// SPDX-License-Identifier: Apache-2.0
//
// Notices: the wishes of other clients for a held lock (one waits; one asks for its release), and
// the listeners that were notified. Decides and stores; the hold calls the listeners, where it
// calls its state callbacks.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "dlock/lock_handle.hpp"

namespace dlock::core {

/// Guarded by its owner's mutex. A lock without listeners uses next to no memory for it.
class Notices {
 public:
  struct Listener {
    ContendedCallback on_contended{};
    RevokeCallback on_revoke{};
    unsigned told = 0;  ///< number of requests it was notified of; at most 1 for contention
  };
  using Listeners = std::list<Listener>;

  void add(Listeners& listener) {
    auto& all = kept().listeners;
    all.splice(all.end(), listener);
  }
  void note_contended() noexcept { is_contended_ = true; }
  /// The last one counts.
  void note_asked(const Revocation& how) {
    kept().asked = how;
    ++kept().askings;
  }
  /// Returns the next listener to call, and counts it as called; null: none. Stays in place until
  /// drop().
  Listener* next() noexcept {
    if (!kept_) return nullptr;
    for (auto& listener : kept_->listeners) {
      const unsigned due = listener.on_revoke ? kept_->askings : is_contended_ ? 1 : 0;
      if (listener.told == due) continue;
      listener.told = due;
      return &listener;
    }
    return nullptr;
  }
  bool has_listeners() const noexcept { return kept_ && !kept_->listeners.empty(); }
  std::optional<Revocation> asked() const { return kept_ ? kept_->asked : std::nullopt; }
  Listeners drop() noexcept { return kept_ ? std::exchange(kept_->listeners, {}) : Listeners(); }

 private:
  struct Kept {
    Listeners listeners;
    unsigned askings = 0;
    std::optional<Revocation> asked;
  };
  Kept& kept() {
    if (!kept_) kept_ = std::make_unique<Kept>();
    return *kept_;
  }

  std::unique_ptr<Kept> kept_;
  bool is_contended_ = false;
};

/// Without the mutex; `how` is a copy that was made with it.
inline void call(const Notices::Listener& listener, const std::optional<Revocation>& how) {
  if (listener.on_contended) return listener.on_contended();
  if (how) listener.on_revoke(*how);
}

}  // namespace dlock::core
