// SPDX-License-Identifier: Apache-2.0
//
// What stands in Redis: a lock's value, a waiter, the lines of INFO. Input: the text; and once more
// as host and app of an owner.
#include "backends/redis/rules/info.hpp"
#include "backends/redis/rules/permits.hpp"
#include "backends/redis/rules/readers.hpp"
#include "backends/redis/rules/value.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace dlock::fuzz {
namespace {

constexpr std::string_view kUuid = "01234567-89ab-cdef-0123-456789abcdef";

void check_owner(const Owner& owner, std::size_t size) {
  require(owner.id.size() <= 600, "an id is never longer than a terminal takes");
  require(owner.host.size() + owner.app.size() <= size, "nothing grows");
}

void check_written(std::string_view text) {
  Owner owner;
  owner.id = kUuid;
  owner.host = std::string(take_until(text, '\n'));
  owner.app = std::string(text);
  owner.pid = static_cast<std::int64_t>(text.size()) * 7919;
  const auto written = redis::write_owner(owner);
  for (const auto& read : {redis::read_owner(written), redis::read_value("17:" + written).owner,
                           redis::read_waiter(redis::write_waiter(kUuid, written))}) {
    require(read.id == owner.id && read.host == owner.host && read.app == owner.app &&
                read.pid == owner.pid,
            "an owner is read back as it was written");
  }
}

void check_info(std::string_view text) {
  const auto lines = redis::parse_info(text);
  const auto facts = redis::facts_from(lines);
  require(redis::compare(facts, facts) == redis::ServerChange::none, "a server is itself");
  auto other = facts;
  other.run_id += "x";
  const auto change = redis::compare(facts, other);
  require(!facts.info_known || change != redis::ServerChange::none, "another run is noticed");
}

void check_permits(std::string_view text) {
  const std::chrono::milliseconds delay(text.size() % 3 * 1000);
  const auto status = redis::read_permits("a", text, 1'700'000'000'000, delay);
  if (!status) return;
  for (const auto& holder : status->holders) require(holder.permits > 0, "none is no record");
  for (const auto& holder : status->holders) check_owner(holder.owner, text.size());
}

void check_readers(std::string_view text) {
  const auto records = redis::read_readers(text);
  if (!records) return;
  LockStatus status;
  redis::add_readers(*records, 1'700'000'000'000'000, std::chrono::milliseconds(text.size()),
                     status);
  require(status.held == !status.readers.empty(), "it is held by its readers");
  for (const auto& reader : status.readers) check_owner(reader.owner, text.size());
}

}  // namespace
}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dlock;
  using namespace dlock::fuzz;
  const auto text = as_text(data, size);
  check_owner(redis::read_owner(text), size);
  check_owner(redis::read_waiter(text), size);
  const auto value = redis::read_value(text);
  check_owner(value.owner, size);
  require(!value.token || *value.token < (1ULL << 53U), "a token is below 2^53");
  check_written(text);
  check_info(text);
  check_permits(text);
  check_permits("dlock:permits v=1 limit=3 token=17\n" + std::string(text));
  check_readers(text);
  check_readers("dlock:readers v=1\n" + std::string(text));
  return 0;
}
