// SPDX-License-Identifier: Apache-2.0
#include "core/loop/deliveries.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "dlock/async.hpp"
#include "dlock/detail/out_of_memory.hpp"
#include "dlock/detail/recycled.hpp"

namespace dlock::core {
namespace {

/// A part of a turn's handlers is sent before the others have ended, so that the user's thread
/// works in parallel with the loop. A part is a quarter of the number of handlers in the turn
/// before.
constexpr std::size_t kParts = 4;
constexpr std::size_t kLeast = 4;
/// Beyond this number of executors each handler is posted alone: to search for one costs more.
constexpr std::size_t kExecutors = 8;

}  // namespace

struct Deliveries::Batch {
  explicit Batch(detail::Destination destination) noexcept : to(std::move(destination)) {}
  detail::Destination to;  // first member: destroyed last
  detail::FunctionQueue<void()> handlers;
  std::size_t count = 0;
};

/// The handler that is posted: posts the rest, then runs the first handler.
class Deliveries::Next {
 public:
  explicit Next(std::shared_ptr<Batch> batch) noexcept : batch_(std::move(batch)) {}

  void operator()() {
    while (auto handler = batch_->handlers.pop()) {
      if (batch_->handlers.empty() || pass_on()) return handler();
      // The executor does not accept the rest: run it here.
      try {
        handler();
      } catch (...) {
        pass_on();
        throw;
      }
    }
  }

 private:
  bool pass_on() const noexcept {
    try {
      asio::post(batch_->to.executor, Next(batch_));
      return true;
    } catch (const std::exception& error) {
      end_if_out_of_memory(error);
      return false;
    }
  }

  std::shared_ptr<Batch> batch_;
};

thread_local Deliveries* Deliveries::here = nullptr;

Deliveries::Deliveries() : most_(kLeast) {}

Deliveries::~Deliveries() = default;

Deliveries::Turn::Turn(Deliveries& deliveries) noexcept
    : deliveries_(deliveries), outer_(std::exchange(here, &deliveries)) {}

Deliveries::Turn::~Turn() {
  or_end([this] { deliveries_.end_turn(); });
  here = outer_;
}

void Deliveries::deliver(detail::Destination to, Job handler) {
  if (here != nullptr) return here->add(std::move(to), std::move(handler));
  asio::post(to.executor, std::move(handler));
}

void Deliveries::wake(sem_t& sleeper) noexcept {
  if (here == nullptr) {
    ::sem_post(&sleeper);
    return;
  }
  if (here->sleeping_ == here->sleepers_.size()) here->wake_all();
  here->sleepers_[here->sleeping_++] = &sleeper;
}

void Deliveries::wake_all() noexcept {
  for (std::size_t i = 0; i < sleeping_; ++i) ::sem_post(sleepers_[i]);
  sleeping_ = 0;
}

void Deliveries::add(detail::Destination to, Job handler) {
  ++added_;
  auto found = std::find_if(batches_.begin(), batches_.end(),
                            [&to](const auto& batch) { return batch->to.executor == to.executor; });
  if (found == batches_.end()) {
    if (batches_.size() == kExecutors) return asio::post(to.executor, std::move(handler));
    batches_.push_back(detail::make_recycled<Batch>(std::move(to)));
    found = batches_.end() - 1;
  }
  auto& batch = *found;
  batch->handlers.push(std::move(handler));
  if (++batch->count < most_) return;
  std::swap(batch, batches_.back());
  auto full = std::move(batches_.back());
  batches_.pop_back();
  send(std::move(full));
}

/// A post that the executor refuses costs one handler, as if that had been alone.
void Deliveries::send(std::shared_ptr<Batch> batch) {
  auto to = batch->to;
  const auto own = std::move(batch);  // destroyed before `to`: its handlers may all have run
  while (!own->handlers.empty()) {
    try {
      return asio::post(to.executor, Next(own));
    } catch (const std::exception& error) {
      end_if_out_of_memory(error);
      const auto dropped = own->handlers.pop();
      if (on_refused_) on_refused_(error.what());
    }
  }
}

void Deliveries::end_turn() {
  wake_all();
  while (!batches_.empty()) {
    auto batch = std::move(batches_.back());
    batches_.pop_back();
    send(std::move(batch));
  }
  if (added_ > 0) most_ = std::max(kLeast, std::exchange(added_, 0) / kParts);
}

}  // namespace dlock::core

namespace dlock::inline v0::detail {

void deliver(Destination to, UniqueFunction<void()> handler) {
  core::Deliveries::deliver(std::move(to), std::move(handler));
}

}  // namespace dlock::inline v0::detail
