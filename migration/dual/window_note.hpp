// SPDX-License-Identifier: Apache-2.0
//
// The window's note in its store, read and compared-and-set.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/store/store.hpp"
#include "migration/dual/window.hpp"

namespace dlock::core::migration {

/// The three stores of a plan in mode dual; the window's is one of the two, or a third.
struct DualStores {
  std::shared_ptr<Store> from;
  std::shared_ptr<Store> to;
  std::shared_ptr<Store> window;
};

/// Loop only.
class WindowNote {
 public:
  WindowNote(std::shared_ptr<Store> store, std::string plan)
      : store_(std::move(store)), plan_(std::move(plan)) {}

  /// What stands there. `failure`: it could not be read, or is not understood (errc::protocol).
  struct Look {
    Failure failure;
    std::optional<std::string> text;  ///< as it stands; empty: there is none
    std::optional<Window> window;
    TimePoint sent{};
    TimePoint answered{};
  };
  /// Connects the store if need be.
  asio::awaitable<Look> read();

  struct Written {
    enum class Outcome { done, conflict, unknown, failed } outcome = Outcome::failed;
    Failure failure;   ///< of failed
    TimePoint sent{};  ///< before the request
    Look found;        ///< of conflict: what stands there
  };
  /// Replaces `from`, which stands there (empty: nothing does), by `to`. After
  /// `unknown`: read, and look whether it is there.
  asio::awaitable<Written> write(std::optional<std::string> from, Window to);

  const std::shared_ptr<Store>& store() const noexcept { return store_; }

 private:
  Look look_at(std::optional<std::string> text, TimePoint sent) const;

  const std::shared_ptr<Store> store_;
  const std::string plan_;
};

/// Where the window is when the route does not say it: in the target if nothing in it is forgotten,
/// else in the source. Connects the target. A failure if that cannot be asked.
asio::awaitable<Result<std::shared_ptr<Store>>> durable_end(std::shared_ptr<Store> from,
                                                            std::shared_ptr<Store> to);

}  // namespace dlock::core::migration
