// SPDX-License-Identifier: Apache-2.0
#include "core/callbacks.hpp"

#include <boost/asio/post.hpp>

namespace dlock::core {

void Callbacks::start() {
  // The thread keeps what it runs on alive: it may be its own last user.
  thread_ = std::thread([self = shared_from_this()] { self->io_.run(); });
}

void Callbacks::post(Job job) {
  asio::post(io_, [job = std::move(job)]() mutable { job(); });
}

void Callbacks::finish() noexcept {
  work_.reset();
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

}  // namespace dlock::core
