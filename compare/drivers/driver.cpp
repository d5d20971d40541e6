// SPDX-License-Identifier: Apache-2.0
#include "compare/drivers/driver.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "compare/drivers/floor.hpp"
#include "dlock/duration.hpp"

namespace dlock::compare {

namespace {

/// The floor renews as often as dlock would with the same URL.
std::chrono::milliseconds lease_of(const std::string& url) {
  for (const std::string_view option : {"session_timeout=", "lease="}) {
    const auto at = url.find(option);
    if (at == std::string::npos) continue;
    const auto begin = at + option.size();
    const auto parsed = parse_duration(url.substr(begin, url.find('&', begin) - begin));
    if (parsed) return *parsed.value;
  }
  return std::chrono::seconds(10);
}

}  // namespace

std::unique_ptr<Client> Driver::reader(const std::string& /*lock*/) {
  throw std::invalid_argument("this driver has no readers");
}

std::unique_ptr<Client> Driver::permit(const std::string& /*semaphore*/, std::uint32_t /*limit*/) {
  throw std::invalid_argument("this driver has no semaphores");
}

std::unique_ptr<Tasks> Driver::tasks(const std::string& /*lock*/, std::int64_t /*count*/) {
  throw std::invalid_argument("this driver has no tasks");
}

std::unique_ptr<Driver> make_floor_driver(const std::string& url) {
  const auto address = parse_address(url);
  if (address.scheme == "redis") return redis_floor(address, lease_of(url));
  if (address.scheme == "zookeeper") return zookeeper_floor(address, lease_of(url));
  if (address.scheme == "memcached") return memcached_floor(address, lease_of(url));
  if (address.scheme == "file") return local_floor(address);
  throw std::invalid_argument(fmt::format("no floor for {}://", address.scheme));
}

std::unique_ptr<Driver> make_driver(std::string_view name, const std::string& url) {
  if (name == "dlock") return make_dlock_driver(url);
  if (name == "floor") return make_floor_driver(url);
  throw std::invalid_argument(fmt::format("no driver '{}'", name));
}

}  // namespace dlock::compare
