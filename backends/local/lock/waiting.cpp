// SPDX-License-Identifier: Apache-2.0
#include "backends/local/lock/waiting.hpp"

namespace dlock::local {
namespace {

struct Found {
  bool ok = false;
  std::optional<std::uint64_t> byte;
  bool shared = false;
};

/// The first one that is locked: what the kernel names may be any.
Found first_locked(const LockFile& file, std::uint64_t begin, std::uint64_t end) {
  Found first;
  while (begin < end) {
    std::optional<std::uint64_t> somebody;
    bool shared = false;
    if (!file.find_locked(begin, end, somebody, shared).ok()) return {};
    if (!somebody) break;
    first.byte = somebody;
    first.shared = shared;
    end = *somebody;
  }
  first.ok = true;
  return first;
}

}  // namespace

std::optional<std::size_t> waiting_before(const LockFile& file, std::uint64_t ticket,
                                          std::size_t most) {
  std::size_t count = 0;
  bool among_holders = true;
  const auto end = kTicketBase + ticket;
  for (auto begin = kTicketBase; count <= most;) {
    const bool is_front = begin == kTicketBase;
    const auto next = first_locked(file, begin, end);
    if (!next.ok) return std::nullopt;
    if (!next.byte) break;
    if (!next.shared && !is_front) among_holders = false;
    if (!among_holders) ++count;
    if (!next.shared) among_holders = false;
    begin = *next.byte + 1;
  }
  return count;
}

}  // namespace dlock::local
