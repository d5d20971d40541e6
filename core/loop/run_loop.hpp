// SPDX-License-Identifier: Apache-2.0
//
// io_context::run() for a loop whose next work may be only microseconds away.
#pragma once

#include <boost/asio/io_context.hpp>
#include <exception>

#include "core/loop/halt_poll.hpp"
#include "dlock/spi/env.hpp"

namespace dlock::core {

/// Runs handlers until the context is stopped or has nothing left that could give it work. Costs
/// one more epoll_wait() than run() each time it runs dry. `on_exception(what)` is told of each
/// exception that leaves a handler, which is a bug; the loop goes on: all locks live on it.
template <class OnException>
void run_loop(asio::io_context& io, OnException on_exception) {
  HaltPoll idle;
  while (!io.stopped()) {
    try {
      io.poll();
      if (io.stopped()) return;
      idle.wait([&io] { return io.poll_one() > 0 || io.stopped(); }, [&io] { io.run_one(); });
    } catch (const std::exception& error) {
      on_exception(error.what());
    } catch (...) {
      on_exception("an exception of an unknown type");
    }
  }
}

}  // namespace dlock::core
