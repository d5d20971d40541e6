// SPDX-License-Identifier: Apache-2.0
//
// LinkedStop: one stop token of two, for work that ends by a shutdown and by the loss of its lock.
//
//   dlock::LockHandle held = lock->acquire({}, shutdown);
//   const dlock::LinkedStop stop(shutdown, held.stop_token());
//   work(stop.token());   // requested when either is
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <stop_token>
#include <utility>

namespace dlock::inline v0 {

/// Its token is requested when one of two others is, or at once if one was requested before. The
/// request runs on the thread that requests the other token, before that call returns (for a loss:
/// a thread of the manager's). For more than two tokens, link the token of a link.
///
/// The link exists while this object exists. Its destructor waits for stop callbacks of its token
/// that run just then on another thread; it may be called inside of one. A token that outlives it
/// keeps its state, requested or not. Thread safety: token() may be called from any thread while
/// the object lives. Only the constructor throws: std::bad_alloc. A token without a source
/// (`std::stop_token{}`) is accepted, and is never requested.
class LinkedStop {
 public:
  LinkedStop(std::stop_token one, std::stop_token other)
      : one_(std::move(one), Request{source_}), other_(std::move(other), Request{source_}) {}
  LinkedStop(const LinkedStop&) = delete;
  LinkedStop& operator=(const LinkedStop&) = delete;

  std::stop_token token() const noexcept { return source_.get_token(); }

 private:
  struct Request {
    std::stop_source source;
    void operator()() const noexcept {
      // A stop callback may destroy the link, and this object with it.
      std::stop_source own = source;
      own.request_stop();
    }
  };

  std::stop_source source_;
  // Behind the source: they end before it.
  std::stop_callback<Request> one_;
  std::stop_callback<Request> other_;
};

}  // namespace dlock::inline v0
