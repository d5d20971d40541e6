// SPDX-License-Identifier: Apache-2.0
//
// Registrar: this program's part in a plan in mode dual: registers it with the window under a
// lease when the first lock is wanted, and renews that at a third of the lease. One for each plan
// and manager. Registrations of programs that have died are taken away in passing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/store/store.hpp"
#include "dlock/spi/signal.hpp"
#include "migration/dual/registration.hpp"
#include "migration/dual/window_note.hpp"
#include "migration/dual/window_watch.hpp"

namespace dlock::core::migration {

/// How far above the tokens that it gave out a program says it may go: so that it seldom writes.
inline constexpr std::uint64_t kTopStep = std::uint64_t{1} << 26U;

/// Loop only.
class Registrar final : public BackgroundWork, public std::enable_shared_from_this<Registrar> {
 public:
  struct Settings {
    std::string plan;
    int phase = 0;
  };
  /// `stores.window` null: the durable end.
  Registrar(DualStores stores, Settings settings);
  ~Registrar() override;

  struct Entered {
    Failure failure;
    std::shared_ptr<Registration> registration;  ///< valid when it was given; null on failure
  };
  /// The present registration; registers if there is none. Failures: window_closed (this phase is
  /// not admitted), not_registered (no window, or no room in it), config_unsafe (the plan is about
  /// other stores), unavailable, closed, protocol.
  asio::awaitable<Entered> enter();
  /// Before `token` is given out: the window says that it may be. At once, but for the first
  /// tokens. A failure: it could not be written, or the registration is over.
  asio::awaitable<Failure> reach(std::shared_ptr<Registration> registration, std::uint64_t token);

  /// Whatever rests on the registration is lost; the registration is taken away. For good.
  void close() override;

  const Settings& settings() const noexcept { return settings_; }
  const DualStores& stores() const noexcept { return stores_; }
  /// Ours, whether registered or not.
  const std::string& program() const noexcept { return me_.id; }
  std::shared_ptr<const Registration> registration() const noexcept { return registration_; }

 private:
  using Waiter = OneShot<Failure>;

  asio::awaitable<void> run();
  /// Whether what was written stands; if not, what does.
  struct Stands {
    bool done = false;
    Failure failure;
    WindowNote::Look look;
  };

  asio::awaitable<Failure> find_window();
  asio::awaitable<Failure> register_anew();
  asio::awaitable<Failure> renew_now();
  asio::awaitable<void> leave();
  Failure add_to(const WindowNote::Look& look, Window& window);
  Failure is_ours(const WindowNote::Look& look) const;
  void sweep(Window& window);
  Failure admitted(const Window& window, TimePoint sent);
  Failure renew_later(const Failure& why);
  asio::awaitable<Stands> settle(WindowNote note, Window window, WindowNote::Written written);
  void end_registration(LossReason why = LossReason::expired);
  void arm_deadline();
  TimePoint next_due() const;
  std::uint64_t wanted_top() const;
  Failure not_admitted(const Window& window) const;
  asio::awaitable<void> pause_after(int conflicts);
  Env& env() const;

  DualStores stores_;
  const Settings settings_;
  Program me_;
  WindowWatch watch_;
  std::optional<WindowNote::Look> known_;  ///< what stood there after our last write
  std::shared_ptr<Registration> registration_;
  std::shared_ptr<Signal> news_;
  std::vector<Waiter> entering_;
  std::vector<Waiter> reaching_;
  std::uint64_t highest_ = 0;  ///< of the tokens that were wanted
  std::uint64_t written_top_ = 0;
  std::chrono::milliseconds lease_{0};
  TimePoint renew_at_ = kNever;
  TimerId deadline_timer_ = 0;
  bool running_ = false;
  bool closed_ = false;
  bool may_stand_ = false;  ///< something of ours may be in the window
};

}  // namespace dlock::core::migration
