// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/wire/codec.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace dlock::memcached {
namespace {

constexpr std::size_t kLongestNumber = 20;  ///< 2^64
constexpr std::size_t kSmallestRoom = 4096;
constexpr std::string_view kEnd = "\r\n";

/// ` `, a letter if there is one, and the number.
template <class Number>
void put_number(std::string_view before, Number number, std::string& out) {
  // Written before they are read.
  std::array<char, kLongestNumber + 1> digits;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out += before;
  out.append(digits.data(), end);
}

/// The data block behind a command's line.
void put_value(const Stored& what, std::string& out) {
  out += kEnd;
  out += what.value;
  out += kEnd;
}

void put_classic(std::string_view verb, const Stored& what, std::string& out) {
  out += verb;
  out += what.key;
  put_number(" ", what.flags, out);
  put_number(" ", static_cast<std::int64_t>(what.exptime), out);
  put_number(" ", what.value.size(), out);
}

/// `c`: the reply says which number the item has then.
void put_meta_set(const Stored& what, std::uint64_t tag, std::string& out) {
  out += "ms ";
  out += what.key;
  put_number(" ", what.value.size(), out);
  put_number(" T", static_cast<std::int64_t>(what.exptime), out);
  if (what.flags != 0) put_number(" F", what.flags, out);
  put_number(" c O", tag, out);
}

/// Removes the word before the next space from the front, and returns it.
std::string_view take_word(std::string_view& text) {
  const auto end = text.find(' ');
  const auto word = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return word;
}

/// How much data a line announces; empty: none that can be.
std::optional<std::uint64_t> announced(std::string_view line) {
  const bool is_meta = take_word(line) == "VA";
  for (int word = is_meta ? 2 : 0; word < 2; ++word) take_word(line);
  return read_number(take_word(line));
}

bool announces(std::string_view line) {
  return line.starts_with("VALUE ") || line.starts_with("VA ");
}

}  // namespace

void put_add(const Stored& what, std::string& out) {
  put_classic("add ", what, out);
  put_value(what, out);
}

void put_cas(const Stored& what, std::uint64_t cas, std::string& out) {
  put_classic("cas ", what, out);
  put_number(" ", cas, out);
  put_value(what, out);
}

void put_incr(std::string_view key, std::uint64_t by, std::string& out) {
  out += "incr ";
  out += key;
  put_number(" ", by, out);
  out += kEnd;
}

void put_gets(const std::vector<std::string>& keys, std::string& out) {
  out += "gets";
  for (const auto& key : keys) (out += ' ') += key;
  out += kEnd;
}

void put_meta_add(const Stored& what, std::uint64_t tag, std::string& out) {
  put_meta_set(what, tag, out);
  out += " ME";
  put_value(what, out);
}

void put_meta_cas(const Stored& what, std::uint64_t cas, std::uint64_t tag, std::string& out) {
  put_meta_set(what, tag, out);
  put_number(" C", cas, out);
  put_value(what, out);
}

void put_meta_incr(std::string_view key, std::uint64_t by, std::uint64_t tag, std::string& out) {
  out += "ma ";
  out += key;
  put_number(" v D", by, out);
  put_number(" O", tag, out);
  out += kEnd;
}

void put_meta_time(std::string_view key, std::uint64_t tag, std::string& out) {
  out += "mg ";
  out += key;
  out += " t";
  put_number(" O", tag, out);
  out += kEnd;
}

void put_meta_delete(std::string_view key, std::uint64_t cas, std::uint64_t tag, std::string& out) {
  out += "md ";
  out += key;
  put_number(" C", cas, out);
  put_number(" O", tag, out);
  out += kEnd;
}

std::optional<std::uint64_t> read_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return number;
}

std::optional<ItemLine> read_item_line(std::string_view line) {
  if (take_word(line) != "VALUE") return std::nullopt;
  ItemLine item;
  item.key = take_word(line);
  const auto flags = read_number(take_word(line));
  const auto size = read_number(take_word(line));
  const auto cas = read_number(take_word(line));
  if (!flags || !size || !cas || !line.empty()) return std::nullopt;
  item.cas = *cas;
  return item;
}

std::optional<MetaLine> read_meta_line(std::string_view line) {
  MetaLine meta;
  meta.code = take_word(line);
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (meta.code.size() != 2 || !std::all_of(meta.code.begin(), meta.code.end(), is_capital)) {
    return std::nullopt;
  }
  if (meta.code == "VA") take_word(line);
  while (!line.empty()) {
    const auto flag = take_word(line);
    const auto number = flag.empty() ? std::nullopt : read_number(flag.substr(1));
    if (flag.starts_with('c')) {
      if (!number) return std::nullopt;
      meta.cas = *number;
    }
    if (flag.starts_with('O')) meta.tag = number;
    if (flag.starts_with('t')) meta.seconds_left = number;
  }
  return meta;
}

std::span<char> ReplyReader::room() {
  if (begin_ == end_) begin_ = end_ = scanned_ = 0;
  if (buffer_.size() - end_ < kSmallestRoom && begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    scanned_ -= std::min(scanned_, begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - end_ < kSmallestRoom) {
    buffer_.resize(std::max(2 * buffer_.size(), 2 * kSmallestRoom));
  }
  return {buffer_.data() + end_, buffer_.size() - end_};
}

std::optional<Piece> ReplyReader::fail(const char* why) {
  error_ = why;
  return std::nullopt;
}

std::optional<Piece> ReplyReader::next(bool data_expected) {
  if (!error_.empty()) return std::nullopt;
  const std::string_view bytes(buffer_.data(), end_);
  const auto end = bytes.find('\n', std::max(begin_, scanned_));
  if (end == bytes.npos) {
    scanned_ = end_;
    if (end_ - begin_ > kLongestLine) return fail("a line without end");
    return std::nullopt;
  }
  if (end - begin_ > kLongestLine) return fail("a line that is too long");
  Piece piece;
  piece.line = bytes.substr(begin_, end - begin_);
  if (piece.line.ends_with('\r')) piece.line.remove_suffix(1);
  auto after = end + 1;
  if (data_expected && announces(piece.line)) {
    const auto size = announced(piece.line);
    if (!size || *size > kLongestData) return fail("data of a length that cannot be");
    scanned_ = end;
    if (end_ - after < *size + kEnd.size()) return std::nullopt;
    piece.has_data = true;
    piece.data = bytes.substr(after, *size);
    if (bytes.substr(after + *size, kEnd.size()) != kEnd) return fail("data of another length");
    after += *size + kEnd.size();
  }
  begin_ = scanned_ = after;
  return piece;
}

}  // namespace dlock::memcached
