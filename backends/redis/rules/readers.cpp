// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/rules/readers.hpp"

#include <algorithm>

#include "backends/redis/rules/fields.hpp"
#include "backends/redis/rules/value.hpp"
#include "dlock/sequencer.hpp"

namespace dlock::redis {

std::optional<std::vector<ReaderRecord>> read_readers(std::string_view text) {
  if (!text.starts_with(kReadersPrefix)) return {};
  text.remove_prefix(kReadersPrefix.size());
  std::vector<ReaderRecord> all;
  while (!text.empty()) {
    auto line = cut(text, '\n');
    ReaderRecord one;
    if (!cut_number(line, one.till) || !cut_number(line, one.token) ||
        !cut_number(line, one.since) || one.till < 0 || one.since < 0 || one.token >= kTokenEnd) {
      return {};
    }
    one.broken = cut_mark(kBrokenOwnerPrefix, ' ', line);
    one.owner = read_owner(line);
    all.push_back(std::move(one));
  }
  return all;
}

void add_readers(const std::vector<ReaderRecord>& records, std::int64_t now_us,
                 std::chrono::milliseconds lock_delay, LockStatus& status) {
  const auto now = std::max<std::int64_t>(now_us, 0) / 1000;
  for (const auto& one : records) {
    if (one.till <= now) continue;
    SharedHolder holder;
    holder.owner = one.owner;
    holder.broken = one.broken;
    holder.token = one.token;
    holder.held_for = std::chrono::milliseconds(std::max<std::int64_t>(now - one.since, 0));
    holder.remaining =
        std::max(read_remaining(one.till - now) - lock_delay, std::chrono::milliseconds(0));
    status.readers.push_back(std::move(holder));
  }
  status.held = !status.readers.empty();
  if (!status.held) return;
  const auto& first = status.readers.front();
  status.mode = Mode::shared;
  status.owner = first.owner;
  status.token = first.token;
  status.broken = first.broken;
  status.held_for = first.held_for;
  status.remaining = first.remaining;
}

}  // namespace dlock::redis
