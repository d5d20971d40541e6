// SPDX-License-Identifier: Apache-2.0
//
// A stop that is requested apart from the thread that found out: its callbacks are the user's, and
// may block.
#pragma once

#include <memory>
#include <stop_token>
#include <utility>

#include "core/loop/crew.hpp"

namespace dlock::core {

inline std::shared_ptr<Errand> stop_errand(std::stop_source what) {
  class StopErrand final : public Errand {
   public:
    explicit StopErrand(std::stop_source source) : source_(std::move(source)) {}
    void run() override { source_.request_stop(); }

   private:
    std::stop_source source_;
  };
  return std::make_shared<StopErrand>(std::move(what));
}

}  // namespace dlock::core
