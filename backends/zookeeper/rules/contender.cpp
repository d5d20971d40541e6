// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/rules/contender.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace dlock::zookeeper {
namespace {

constexpr std::size_t kUuidLength = 36;
constexpr std::string_view kProtected = "_c_";
constexpr std::string_view kLock = "-lock-";
constexpr std::string_view kLease = "-lease-";  // a semaphore's lease, in a separate folder
constexpr std::string_view kRead = "-__READ__";
constexpr std::string_view kWrite = "-__WRIT__";
/// From here on a number may repeat while a client holds the lock.
constexpr std::int32_t kNearTheEnd = std::numeric_limits<std::int32_t>::max() - (1 << 20);
/// The seal's number: no `%010d` writes it, and it sorts before all that do.
constexpr std::string_view kSealNumber = "-0000000000";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

bool is_uuid(std::string_view text) {
  if (text.size() != kUuidLength) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !is_hex(text[i])) return false;
  }
  return true;
}

/// Reads a number that the server's `%010d` can have written. The minus counts as one of the ten
/// places.
std::optional<std::int32_t> parse_sequence(std::string_view text) {
  const bool negative = text.starts_with('-');
  const auto digits = text.substr(negative ? 1 : 0);
  const bool width_right =
      digits.size() == 10 ? !negative || digits[0] != '0' : negative && digits.size() == 9;
  if (!width_right || !std::all_of(digits.begin(), digits.end(), is_digit)) return {};
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  if (value < std::numeric_limits<std::int32_t>::min() ||
      value > std::numeric_limits<std::int32_t>::max()) {
    return {};
  }
  return static_cast<std::int32_t>(value);
}

/// `<head><mark><number>`: a number has ten characters, or eleven.
struct Split {
  std::string_view head;
  std::string_view number;
};
std::optional<Split> split_at(std::string_view node, std::string_view mark) {
  for (const std::size_t width : {10U, 11U}) {
    if (node.size() < mark.size() + width) continue;
    const auto before = node.substr(0, node.size() - width);
    if (!before.ends_with(mark)) continue;
    return Split{before.substr(0, before.size() - mark.size()), node.substr(before.size())};
  }
  return {};
}

std::string_view without_protection(std::string_view head) {
  return head.starts_with(kProtected) ? head.substr(kProtected.size()) : std::string_view{};
}

/// The C recipe's `x-<session, 16 hex>-<seq>`.
bool is_recipe_head(std::string_view head) {
  return head.size() == 19 && head.starts_with("x-") && head.ends_with('-') &&
         std::all_of(head.begin() + 2, head.end() - 1, is_hex);
}

Contender::Kind kind_of(std::string_view head, std::string_view mark) {
  const auto id = without_protection(head);
  if (mark == "lock-" && id.ends_with("-move-") && is_uuid(id.substr(0, id.size() - 6))) {
    return Contender::Kind::move;
  }
  if (mark == "__rlock__") return Contender::Kind::reader;
  if (!id.ends_with('-') || !is_uuid(id.substr(0, id.size() - 1))) return Contender::Kind::foreign;
  if (mark == "lock-") return Contender::Kind::mutex;
  if (mark == "__WRIT__") return Contender::Kind::write;
  if (mark == "__READ__") return Contender::Kind::read;
  return Contender::Kind::foreign;
}

}  // namespace

std::optional<Contender> parse_contender(std::string_view node) {
  // `lock-` serves Curator, go-zookeeper, kazoo's renamed class and madelson's bare `lock-<seq>`.
  static constexpr std::array<std::string_view, 5> kMarks = {"__lock__", "__rlock__", "__WRIT__",
                                                             "__READ__", "lock-"};
  for (const auto mark : kMarks) {
    const auto split = split_at(node, mark);
    if (!split) continue;
    if (split->number == kSealNumber && (mark == "lock-" || mark == "__WRIT__")) {
      return Contender{Contender::Kind::seal, std::string(node), 0};
    }
    if (const auto sequence = parse_sequence(split->number)) {
      return Contender{kind_of(split->head, mark), std::string(node), *sequence};
    }
  }
  for (const std::string_view mark : {"read-", "write-"}) {  // madelson's, whole
    if (!node.starts_with(mark)) continue;
    if (const auto sequence = parse_sequence(node.substr(mark.size()))) {
      const auto kind = mark == "read-" ? Contender::Kind::reader : Contender::Kind::foreign;
      return Contender{kind, std::string(node), *sequence};
    }
  }
  if (node.size() > 19 && is_recipe_head(node.substr(0, 19))) {
    if (const auto sequence = parse_sequence(node.substr(19))) {
      return Contender{Contender::Kind::foreign, std::string(node), *sequence};
    }
  }
  return {};
}

std::string contender_prefix(std::string_view id, Contender::Kind kind) {
  const auto mark = kind == Contender::Kind::read    ? kRead
                    : kind == Contender::Kind::write ? kWrite
                                                     : kLock;
  std::string prefix;
  prefix.reserve(kProtected.size() + id.size() + mark.size());
  prefix.append(kProtected).append(id).append(mark);
  return prefix;
}

std::string stepped_down(std::string_view id, std::string_view node) {
  const auto contender = parse_contender(node);
  if (!contender || contender->sequence < 0 || contender->sequence > kNearTheEnd) return {};
  return contender_prefix(id, Contender::Kind::read).append(node.substr(node.size() - 10));
}

std::string claim_prefix(std::string_view id) { return std::string(kProtected).append(id); }

bool is_copy_of(std::string_view id, std::string_view node) {
  const auto head = std::string_view(node).substr(0, kProtected.size() + id.size());
  if (!head.starts_with(kProtected) || head.substr(kProtected.size()) != id) return false;
  const auto rest = node.substr(head.size());
  return rest.starts_with(kLock) || rest.starts_with(kRead) || rest.starts_with(kWrite) ||
         rest.starts_with(kLease);
}

std::string seal_name(std::string_view id, bool among_readers_and_writers) {
  return std::string(id)
      .append(among_readers_and_writers ? "-__WRIT__" : "-lock-")
      .append(kSealNumber);
}

std::vector<std::string> copies_of(std::string_view id, const std::vector<std::string>& children) {
  std::vector<std::string> copies;
  for (const auto& child : children) {
    if (is_copy_of(id, child)) copies.push_back(child);
  }
  return copies;
}

}  // namespace dlock::zookeeper
