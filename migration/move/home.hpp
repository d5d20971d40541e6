// SPDX-License-Identifier: Apache-2.0
//
// Which of its two stores a lock that is being moved is in now.
#pragma once

#include <memory>
#include <string>

#include "core/store/store.hpp"

namespace dlock::core::migration {

/// By the record in `source`: true, it is in the target; also while it drains there.
asio::awaitable<Result<bool>> has_moved(std::shared_ptr<Store> source, std::string name);

}  // namespace dlock::core::migration
