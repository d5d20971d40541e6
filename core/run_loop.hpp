// SPDX-License-Identifier: Apache-2.0
//
// io_context::run() for a loop whose next work may be only microseconds away.
#pragma once

#include <boost/asio/io_context.hpp>

#include "core/env.hpp"
#include "core/halt_poll.hpp"

namespace dlock::core {

/// Runs handlers until the context is stopped or has nothing left that could give it work. Costs
/// one more epoll_wait() than run() each time it runs dry.
inline void run_loop(asio::io_context& io) {
  HaltPoll idle;
  for (;;) {
    io.poll();
    if (io.stopped()) return;
    idle.wait([&io] { return io.poll_one() > 0 || io.stopped(); }, [&io] { io.run_one(); });
  }
}

}  // namespace dlock::core
