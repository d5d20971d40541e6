// SPDX-License-Identifier: Apache-2.0
//
// Events that a store reports without a request.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <string>
#include <string_view>

#include "dlock/spi/answers.hpp"
#include "dlock/spi/claim.hpp"

namespace dlock::inline v0 {

/// Implemented by the core; called on the loop only. Outlives the backend.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// The server can be reached again; claims that were waiting still are.
  virtual void on_link_up() = 0;
  /// Held locks become suspect; their validity does not change.
  virtual void on_link_down(const Failure& why) = 0;
  /// Every claim of the session is gone: held ones are lost, waiting ones must be made again.
  virtual void on_session_gone(LossReason why) = 0;
  /// A granted claim is no longer held.
  virtual void on_claim_gone(const ClaimPtr& claim, LossReason why) = 0;
  /// An operator has marked the record of a granted claim (Backend::evict()). The core releases the
  /// claim when its holder has dropped the handle. `by`: break_words() of the mark; may be empty.
  virtual void on_claim_broken(const ClaimPtr& claim, const std::string& /*by*/) {
    on_claim_gone(claim, LossReason::broken);
  }
  /// Another client, or another claim of this process, has asked for the lock of a granted claim
  /// with `tell_contention`, since its grant or before. Called soon, because the holder may not be
  /// using the lock any more. An event that was missed (no link) is reported after reconnecting.
  /// Extra or late reports are harmless; one report per claim is enough.
  virtual void on_contended(const ClaimPtr& /*claim*/) {}
  /// The holder of a claim with `tell_asked` is asked to release it (Backend::ask()). A request
  /// that was missed (no link) is reported after reconnecting, if it is for this claim.
  virtual void on_asked(const ClaimPtr& /*claim*/, const Revocation& /*how*/) {}
  /// The holder of a watched lock (Backend::watch_holder()) may have changed. Extra reports are
  /// harmless, but each costs a read.
  virtual void on_holder_changed(const std::string& /*name*/) {}
  /// The capabilities changed (another server, another setting). `require` is checked again.
  virtual void on_capabilities_changed() = 0;
  /// For the log: something an operator should know.
  virtual void on_warning(std::string_view text) = 0;
};

}  // namespace dlock::inline v0
