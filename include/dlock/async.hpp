// SPDX-License-Identifier: Apache-2.0
//
// The asynchronous twins, for any Asio completion token. The only public header for users that
// includes Asio.
//
//   dlock::LockHandle held = co_await lock->async_acquire({.wait = 5s}, asio::use_awaitable);
//
// Handler signature: void(boost::system::error_code, dlock::LockHandle) for acquire,
// void(boost::system::error_code) for release. Handlers run on their associated executor, by
// default on the manager's callback thread, never inside the initiating call. Cancellation
// (terminal, partial, total) through the handler's slot ends an acquire with `cancelled`, and
// nothing of it is left in the store. A release is not cancellable.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "dlock/distributed_lock.hpp"
#include "dlock/lock_handle.hpp"

namespace dlock::inline v0 {

namespace detail {

/// The manager's callback thread as an executor. Defined in core.
boost::asio::any_io_executor callback_executor(const DistributedLock& lock);
boost::asio::any_io_executor callback_executor(const LockHandle& handle);

/// Carries a result from dlock's loop to the handler's executor, keeping that executor at work in
/// between.
template <class Handler, class... Results>
auto on_executor_of(Handler handler, boost::asio::any_io_executor fallback) {
  auto executor = boost::asio::get_associated_executor(handler, fallback);
  auto work = boost::asio::make_work_guard(executor);
  return
      [handler = std::move(handler), executor, work = std::move(work)](Results... results) mutable {
        boost::asio::post(
            executor, [handler = std::move(handler), ... results = std::move(results)]() mutable {
              std::move(handler)(std::move(results)...);
            });
        work.reset();
      };
}

}  // namespace detail

template <class CompletionToken>
auto DistributedLock::async_acquire(AcquireOptions options, CompletionToken&& token) {
  return boost::asio::async_initiate<CompletionToken, void(error_code, LockHandle)>(
      [](auto handler, DistributedLock* self, AcquireOptions wanted) {
        auto slot = boost::asio::get_associated_cancellation_slot(handler);
        auto fallback = detail::callback_executor(*self);
        auto done = detail::on_executor_of<decltype(handler), error_code, LockHandle>(
            std::move(handler), std::move(fallback));
        auto cancel = self->start_acquire(wanted, std::move(done));
        if (slot.is_connected()) {
          slot.assign([cancel = std::move(cancel)](boost::asio::cancellation_type type) {
            if (type != boost::asio::cancellation_type::none) cancel();
          });
        }
      },
      token, this, options);
}

template <class CompletionToken>
auto DistributedLock::async_acquire(CompletionToken&& token) {
  return async_acquire(AcquireOptions{}, std::forward<CompletionToken>(token));
}

/// Asynchronous twin of LockHandle::release(). Empties the handle at once.
template <class CompletionToken = boost::asio::deferred_t>
auto async_release(LockHandle& handle, CompletionToken&& token = CompletionToken{}) {
  return boost::asio::async_initiate<CompletionToken, void(error_code)>(
      [](auto completion, LockHandle* held) {
        auto fallback = detail::callback_executor(*held);
        held->start_release(detail::on_executor_of<decltype(completion), error_code>(
            std::move(completion), std::move(fallback)));
      },
      token, &handle);
}

}  // namespace dlock::inline v0
