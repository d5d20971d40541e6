// SPDX-License-Identifier: Apache-2.0
//
// What happens in a store unasked.
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
  /// Held locks become suspect; their validity stands.
  virtual void on_link_down(const Failure& why) = 0;
  /// Every claim of the session is gone: held ones are lost, waiting ones must be made anew.
  virtual void on_session_gone(LossReason why) = 0;
  /// A granted claim is no longer ours.
  virtual void on_claim_gone(const ClaimPtr& claim, LossReason why) = 0;
  /// An operator has marked the record of a granted claim (Backend::evict()). The core releases the
  /// claim when its holder has dropped the handle. `by`: break_words() of the mark; may be empty.
  virtual void on_claim_broken(const ClaimPtr& claim, const std::string& /*by*/) {
    on_claim_gone(claim, LossReason::broken);
  }
  /// Somebody else has asked for the lock of a granted claim whose request has `tell_contention`:
  /// since it was granted, or before. Another claim of this process is somebody else. Soon: the
  /// holder may be using it no more. What could not be heard (no link) is told once it can be
  /// again. Told too often does no harm, nor does what is over by now; once for a claim is enough.
  virtual void on_contended(const ClaimPtr& /*claim*/) {}
  /// The holder of a claim with `tell_asked` is asked to give it back (Backend::ask()). What could
  /// not be heard (no link) is told once it can be again, as far as it is about this very claim.
  virtual void on_asked(const ClaimPtr& /*claim*/, const Revocation& /*how*/) {}
  /// The holder of a lock that is watched (Backend::watch_holder()) may have changed. Told too
  /// often does no harm, but costs a look.
  virtual void on_holder_changed(const std::string& /*name*/) {}
  /// The capabilities changed (another server, another setting). `require` is checked again.
  virtual void on_capabilities_changed() = 0;
  /// For the log: something an operator should know.
  virtual void on_warning(std::string_view text) = 0;
};

}  // namespace dlock::inline v0
