// SPDX-License-Identifier: Apache-2.0
//
// Deliveries: answers on their way from the loop to users, handlers to their executors and wakings
// to threads that sleep. The loop sends those of one turn at its end. Handlers for one executor are
// sent together: the first is posted there, and each posts the next before it runs. So a user's
// thread is woken once for many handlers; with a post for each of them it woke, ran one and slept
// again. Where several threads run the executor they still share the handlers, because the next is
// posted first. A thread that is woken in the middle of a turn would use the loop's processor.
#pragma once

#include <semaphore.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "dlock/async.hpp"
#include "dlock/spi/env.hpp"

namespace dlock::core {

/// One per loop. Thread safety: the thread that runs the loop.
class Deliveries {
 public:
  /// `what`: why an executor did not accept a handler, which is then gone.
  using OnRefused = std::function<void(const char* what)>;

  Deliveries();
  ~Deliveries();
  Deliveries(const Deliveries&) = delete;
  Deliveries& operator=(const Deliveries&) = delete;

  void on_refused(OnRefused tell) { on_refused_ = std::move(tell); }

  /// While it lives, what the calling thread delivers is gathered here. All has left at its end.
  class Turn {
   public:
    explicit Turn(Deliveries& deliveries) noexcept;
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Deliveries& deliveries_;
    Deliveries* const outer_;
  };

  /// Posts the handler, at the end of the calling thread's turn or, if that is in none, now. Throws
  /// what the executor throws.
  static void deliver(detail::Destination to, Job handler);
  /// Posts the semaphore, at the end of the calling thread's turn or, if that is in none, now: it
  /// must stay until then.
  static void wake(sem_t& sleeper) noexcept;

 private:
  struct Batch;
  class Next;

  void add(detail::Destination to, Job handler);
  void send(std::shared_ptr<Batch> batch);
  void end_turn();
  void wake_all() noexcept;

  static thread_local Deliveries* here;

  OnRefused on_refused_;
  std::vector<std::shared_ptr<Batch>> batches_;  ///< one for each executor
  std::size_t most_;       ///< handlers of a batch: then it leaves before the turn is over
  std::size_t added_ = 0;  ///< in this turn
  std::array<sem_t*, 64> sleepers_{};
  std::size_t sleeping_ = 0;
};

}  // namespace dlock::core
