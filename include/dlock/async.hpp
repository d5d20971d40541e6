// SPDX-License-Identifier: Apache-2.0
//
// The asynchronous twins, for any Asio completion token. The only public header for users that
// includes Asio.
//
//   dlock::LockHandle held = co_await lock->async_acquire({.wait = 5s}, asio::use_awaitable);
//
// Handler signature: void(boost::system::error_code, dlock::LockHandle) for acquire,
// void(boost::system::error_code) for release and downgrade. Handlers run on their associated
// executor, never inside the initiating call. A handler without an executor runs on the manager's
// thread for such handlers, one handler at a time. A handler that blocks there delays the other
// handlers, and close() by `release_timeout` at most. Handlers that have not begun by then are
// dropped. Cancellation (terminal, partial, total) through the handler's slot ends an acquire with
// `cancelled`, and nothing of it is left in the store. A release is not cancellable.
//
// The slot is accessed twice: inside the initiating call, before anything has begun, and on the
// handler's executor right before the handler is called. There it is cleared; the handler may own
// the signal, and destroy it. Slots are not thread-safe, as usual with Asio. Initiate and emit on
// the handler's executor (a strand), or so that neither can happen together with the handler. On
// dlock's callback thread the slot is not cleared, because the caller cannot synchronize with that
// thread. A signal emitted after the end is ignored.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/executor.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/system_executor.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "dlock/detail/unique_function.hpp"
#include "dlock/distributed_lock.hpp"
#include "dlock/lock_handle.hpp"

namespace dlock::inline v0 {

namespace detail {

/// The manager's thread for completion handlers as an executor. Defined in core.
boost::asio::any_io_executor callback_executor(const DistributedLock& lock);
boost::asio::any_io_executor callback_executor(const LockHandle& handle);

/// An executor, and what keeps it at work.
struct Destination {
  boost::asio::any_io_executor work;  // first member: destroyed last
  boost::asio::any_io_executor executor;
};

/// Whether the handler has its own executor, not only the default that is offered. Asio's
/// system_executor counts as none, even if the handler names it.
template <class Handler>
inline constexpr bool kHasExecutor =
    !std::is_same_v<typename boost::asio::associated_executor<Handler>::type,
                    boost::asio::system_executor>;

/// Whether the handler has no executor and runs on the manager's callback thread.
template <class Handler>
inline constexpr bool kIsOurs =
    !kHasExecutor<Handler> &&
    std::is_same_v<
        typename boost::asio::associated_executor<Handler, boost::asio::any_io_executor>::type,
        boost::asio::any_io_executor>;

/// Returns the handler's executor. Default: the callback thread of the manager of `of`.
template <class Handler, class Of>
auto executor_of(const Handler& handler, const Of& of) {
  if constexpr (kHasExecutor<Handler>) {
    return boost::asio::get_associated_executor(handler);
  } else {
    return boost::asio::get_associated_executor(handler, callback_executor(of));
  }
}

/// Posts the handler. Handlers that dlock's loop delivers to one executor at about the same time
/// are posted together. Defined in core.
void deliver(Destination to, UniqueFunction<void()> handler);

/// Returns an object that keeps the executor at work while it exists. A tracked strand releases its
/// implementation before it ends the work. An executor_work_guard would end the work first.
template <class Executor>
auto kept_at_work(const Executor& executor) {
  if constexpr (boost::asio::execution::is_executor<Executor>::value) {
    return boost::asio::prefer(executor, boost::asio::execution::outstanding_work.tracked);
  } else {
    return boost::asio::make_work_guard(executor);
  }
}

/// Whether many handlers may share this executor. A strand, which is larger, usually belongs to
/// one.
template <class Executor>
inline constexpr bool kIsShared = std::is_convertible_v<Executor, boost::asio::any_io_executor> &&
                                  (std::is_same_v<Executor, boost::asio::any_io_executor> ||
                                   sizeof(Executor) <= 2 * sizeof(void*));

/// Carries a result from dlock's loop to the handler's executor, and keeps that executor at work in
/// between. `before` is called there, right before the handler. No copy of the executor outlives
/// the work. The user may destroy the executor's context when the work is done, and a strand's last
/// copy accesses that context.
template <class... Results, class Handler, class Executor, class Before>
auto on_executor(Handler handler, Executor executor, Before before) {
  struct Load {
    decltype(kept_at_work(std::declval<const Executor&>())) work;  // first member: destroyed last
    Executor executor;
    Handler handler;
    Before before;
  };
  auto work = kept_at_work(executor);
  std::optional<Load> load(
      Load{std::move(work), std::move(executor), std::move(handler), std::move(before)});
  return [load = std::move(load)](Results... results) mutable {
    auto own = std::move(*load);
    load.reset();  // a handler that was moved from may still have its executor
    auto run = [handler = std::move(own.handler), before = std::move(own.before),
                ... results = std::move(results)]() mutable {
      before();
      std::move(handler)(std::move(results)...);
    };
    if constexpr (kIsShared<Executor>) {
      deliver({std::move(own.work), std::move(own.executor)}, std::move(run));
    } else {
      boost::asio::post(own.executor, std::move(run));
    }
  };
}

/// Carries a cancellation from a slot to an acquire, even if it is emitted before the acquire
/// begins. Thread safety: any thread.
class SlotCancel {
 public:
  void begun(Canceller cancel) {
    {
      const std::lock_guard lock(mutex_);
      cancel_ = std::move(cancel);
      if (!wanted_) return;
    }
    cancel_();
  }
  void cancel() {
    {
      const std::lock_guard lock(mutex_);
      wanted_ = true;
      if (!cancel_) return;
    }
    cancel_();
  }

 private:
  std::mutex mutex_;
  bool wanted_ = false;
  Canceller cancel_;  ///< set once
};

/// Assigned to a slot.
class OnSlot {
 public:
  explicit OnSlot(std::shared_ptr<SlotCancel> acquire) : acquire_(std::move(acquire)) {}
  void operator()(boost::asio::cancellation_type type) const {
    // Copied: cancel() may end the acquire, which clears the slot and destroys this object.
    const auto acquire = acquire_;
    if (type != boost::asio::cancellation_type::none) acquire->cancel();
  }

 private:
  std::shared_ptr<SlotCancel> acquire_;
};

template <class CompletionToken>
struct AsyncAcquire<CompletionToken, DistributedLock> {
  static constexpr bool is_included = true;

  static auto start(DistributedLock& lock, AcquireOptions options, CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken, void(error_code, LockHandle)>(
        [](auto handler, DistributedLock* self, AcquireOptions wanted) {
          auto slot = boost::asio::get_associated_cancellation_slot(handler);
          const auto executor = executor_of(handler, *self);
          std::shared_ptr<SlotCancel> acquire;
          if (slot.is_connected()) {
            acquire = std::make_shared<SlotCancel>();
            slot.assign(OnSlot(acquire));
          }
          auto clear = [slot, is_ours = kIsOurs<decltype(handler)>]() mutable {
            if (slot.is_connected() && !is_ours) slot.clear();
          };
          // From here on the handler may be called, and the slot be gone, at any moment.
          auto cancel = self->start_acquire(
              wanted,
              on_executor<error_code, LockHandle>(std::move(handler), executor, std::move(clear)));
          if (acquire) acquire->begun(std::move(cancel));
        },
        token, &lock, options);
  }
};

}  // namespace detail

/// Asynchronous twin of LockHandle::release(). Empties the handle at once.
template <class CompletionToken = boost::asio::deferred_t>
auto async_release(LockHandle& handle, CompletionToken&& token = CompletionToken{}) {
  return boost::asio::async_initiate<CompletionToken, void(error_code)>(
      [](auto completion, LockHandle* held) {
        const auto executor = detail::executor_of(completion, *held);
        held->start_release(
            detail::on_executor<error_code>(std::move(completion), executor, [] {}));
      },
      token, &handle);
}

/// Asynchronous twin of LockHandle::downgrade(): what that says of the handle is true when the
/// handler is called. Not while another thread reads the handle, which may be moved or released
/// meanwhile. Not cancellable.
template <class CompletionToken = boost::asio::deferred_t>
auto async_downgrade(LockHandle& handle, CompletionToken&& token = CompletionToken{}) {
  return boost::asio::async_initiate<CompletionToken, void(error_code)>(
      [](auto completion, LockHandle* held) {
        const auto executor = detail::executor_of(completion, *held);
        held->start_downgrade(
            detail::on_executor<error_code>(std::move(completion), executor, [] {}));
      },
      token, &handle);
}

}  // namespace dlock::inline v0
