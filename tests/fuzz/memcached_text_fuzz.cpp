// SPDX-License-Identifier: Apache-2.0
//
// What stands in Memcached, and what a server says of itself. Input: the text, also as lines of
// `stats`, and as fields of a value.
#include "backends/memcached/rules/server_info.hpp"
#include "backends/memcached/rules/status.hpp"
#include "backends/memcached/rules/value.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace dlock::fuzz {
namespace {

using namespace memcached;

void check_value(std::string_view text) {
  const auto value = read_value(text);
  if (value && !value->owner.id.empty()) {
    require(belongs_to(text, value->owner.id), "an owner's value is his");
  }
  require(!belongs_to(text, ""), "nobody's is nobody's");
  Seen seen;
  seen.value = std::string(text);
  const auto status = describe("x", seen, 1'700'000'000'000);
  require(status.held, "what is there is held");
  if (status.remaining) {
    require(status.remaining->count() >= 0, "what is left is not negative");
    require(*status.remaining <= std::chrono::hours(24 * 31),
            "what is left is no longer than a lease");
  }
  if (status.held_for) require(status.held_for->count() >= 0, "an age is not negative");
}

void check_written(std::string_view text) {
  Value value;
  value.owner.id = std::string(take_until(text, '\n'));
  value.owner.host = std::string(take_until(text, '\n'));
  value.owner.app = std::string(take_until(text, '\n'));
  value.name = std::string(text);
  value.owner.pid = static_cast<std::int64_t>(text.size());
  value.lease = std::chrono::milliseconds(text.size() * 77);
  value.since_ms = static_cast<std::int64_t>(text.size()) * 1'000'003;
  const auto read = read_value(write_value(value));
  require(read && read->owner.id == value.owner.id && read->owner.host == value.owner.host &&
              read->owner.app == value.owner.app && read->owner.pid == value.owner.pid &&
              read->name == value.name && read->lease == value.lease &&
              read->since_ms == value.since_ms,
          "a value is read back as it was written");
}

void check_stats(std::string_view text) {
  ServerInfo before;
  ServerInfo after;
  bool first = true;
  for (const auto& line : lines_of(text)) {
    std::string_view rest = line;
    const auto key = take_until(rest, ' ');
    take_stat(first ? before : after, key, rest);
    first = !first;
  }
  require(same_run(before, before), "a run is itself");
  require(same_run(before, after) == same_run(after, before), "the order does not count");
  require(reason_of_loss(before, after) != LossReason::none, "a loss has a reason");
  version_error(text);
  version_error(before.version);
  const auto declared = declare({before, after}, std::chrono::seconds(30));
  require(declared.guarantee == Guarantee::best_effort, "no answer makes Memcached exclusive");
}

}  // namespace
}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = dlock::fuzz::as_text(data, size);
  dlock::fuzz::check_value(text);
  dlock::fuzz::check_value("dlock=1\n" + std::string(text));
  dlock::fuzz::check_written(text);
  dlock::fuzz::check_stats(text);
  return 0;
}
