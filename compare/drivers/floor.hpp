// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>

#include "compare/drivers/address.hpp"
#include "compare/drivers/driver.hpp"

namespace dlock::compare {

std::unique_ptr<Driver> redis_floor(const Address& address, std::chrono::milliseconds lease);
std::unique_ptr<Driver> zookeeper_floor(const Address& address, std::chrono::milliseconds lease);
std::unique_ptr<Driver> memcached_floor(const Address& address, std::chrono::milliseconds lease);
std::unique_ptr<Driver> local_floor(const Address& address);

}  // namespace dlock::compare
