// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/rules/permits.hpp"

#include <algorithm>

#include "backends/redis/rules/fields.hpp"
#include "backends/redis/rules/value.hpp"

namespace dlock::redis {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kHead = "dlock:permits v=1 limit=";
constexpr std::string_view kTokenField = "token=";

/// Whether the line could be read; what has expired is left out.
bool read_line(std::string_view line, std::int64_t now, milliseconds lock_delay,
               SemaphoreStatus& status) {
  const auto kind = cut(line, ' ');
  std::int64_t till = 0;
  std::uint64_t token = 0;
  std::int64_t since = 0;
  PermitHolder one;
  if (kind != "h" && kind != "w" && kind != "b") return false;
  if (!cut_number(line, till) || !cut_number(line, one.permits) || !cut_number(line, token) ||
      !cut_number(line, since)) {
    return false;
  }
  if (till <= now || kind == "b") return true;
  if (kind == "w") {
    one.owner = read_waiter(line);
    status.waiting.push_back(std::move(one));
    return true;
  }
  one.broken = cut_mark(kBrokenOwnerPrefix, ' ', line);
  one.owner = read_owner(line);
  one.token = token;
  one.held_for = milliseconds(std::max<std::int64_t>(now - since, 0));
  one.remaining = std::max(read_remaining(till - now) - lock_delay, milliseconds(0));
  status.holders.push_back(std::move(one));
  return true;
}

}  // namespace

std::optional<SemaphoreStatus> read_permits(std::string name, std::string_view text,
                                            std::int64_t now, milliseconds lock_delay) {
  SemaphoreStatus status;
  status.name = std::move(name);
  if (text.empty()) return status;
  if (!text.starts_with(kHead)) return {};
  text.remove_prefix(kHead.size());
  auto head = cut(text, '\n');
  std::uint32_t limit = 0;
  std::uint64_t token = 0;
  if (!cut_number(head, limit) || !head.starts_with(kTokenField)) return {};
  head.remove_prefix(kTokenField.size());
  if (!cut_number(head, token)) return {};
  if (limit != 0) status.limit = limit;
  while (!text.empty()) {
    if (!read_line(cut(text, '\n'), now, lock_delay, status)) return {};
  }
  return status;
}

}  // namespace dlock::redis
