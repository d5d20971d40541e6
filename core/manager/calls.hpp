// SPDX-License-Identifier: Apache-2.0
//
// Calls: the blocking calls of users that are under way on the loop (status, evict, ...). Each ends
// with its answer, or when the manager closes, whether its store has answered or not.
#pragma once

#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "core/loop/reply.hpp"
#include "dlock/error.hpp"

namespace dlock::core {

/// Loop only, but for Call::wait().
class Calls {
 public:
  class Any {
   public:
    virtual ~Any() = default;
    /// With `closed`.
    virtual void end() = 0;
  };

  template <class T>
  class Call final : public Any {
   public:
    /// The first one counts.
    void answer(T value) { set({nullptr, std::move(value)}); }
    void fail(std::exception_ptr why) { set({std::move(why), std::nullopt}); }
    void end() override { set({nullptr, std::nullopt}); }
    /// The caller's.
    T wait(Driving::Intent& intent) {
      auto result = reply_.wait(intent);
      if (result.first) std::rethrow_exception(std::move(result.first));
      // Made here: what several threads threw would be one object for all of them.
      if (!result.second) throw LockError(make_error_code(errc::closed), Diagnostics());
      return std::move(*result.second);
    }

   private:
    using Result = std::pair<std::exception_ptr, std::optional<T>>;
    void set(Result result) {
      if (!std::exchange(is_over_, true)) reply_.set(std::move(result));
    }
    Reply<Result> reply_;
    bool is_over_ = false;
  };

  /// As Call, for a caller that does not wait: `done` is called once, on the loop.
  template <class T>
  class Told final : public Any {
   public:
    using Done = std::function<void(error_code, std::optional<T>)>;
    explicit Told(Done done) : done_(std::move(done)) {}
    void answer(T value) { tell({}, std::move(value)); }
    void fail(const std::exception_ptr& /*why*/) {
      tell(make_error_code(errc::unavailable), std::nullopt);
    }
    void end() override { tell(make_error_code(errc::closed), std::nullopt); }

   private:
    void tell(error_code ec, std::optional<T> value) {
      if (const auto done = std::exchange(done_, nullptr)) done(ec, std::move(value));
    }
    Done done_;
  };

  void add(std::shared_ptr<Any> call) { under_way_.push_back(std::move(call)); }
  void remove(const std::shared_ptr<Any>& call) { under_way_.remove(call); }
  void end_all() {
    for (const auto& call : std::exchange(under_way_, {})) call->end();
  }

 private:
  std::list<std::shared_ptr<Any>> under_way_;
};

}  // namespace dlock::core
