// SPDX-License-Identifier: Apache-2.0
//
// A semaphore for people and for scripts.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>

#include "dlock/lock_status.hpp"

namespace dlock::cli {

/// Several lines, without the last newline.
std::string to_text(const SemaphoreStatus& status);
/// As all JSON of ours: names and order are a contract.
std::string to_json(const SemaphoreStatus& status);
boost::json::object semaphore_object(const SemaphoreStatus& status);
/// As one of those that are listed, beside locks, whose `held` says whether they are held.
boost::json::object listed_semaphore(const SemaphoreStatus& status);
/// What `semaphore set` did.
std::string semaphore_set_json(const std::string& name, std::uint32_t limit);

}  // namespace dlock::cli
