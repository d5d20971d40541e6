// SPDX-License-Identifier: Apache-2.0
//
// The text protocol as bytes: commands out, the pieces of replies in. What a peer may send is
// limited here, so that a broken or hostile one costs us a connection and not our memory. Pure, no
// sockets.
//
// Commands in two dialects: the classic ones, which every server and proxy knows, and meta
// commands, whose replies name the request (`O`) and the number of what was stored (`c`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::memcached {

/// What is to be stored.
struct Stored {
  std::string_view key;
  std::string_view value;
  std::uint32_t flags = 0;
  std::time_t exptime = 0;
};

// Each appends one command to `out`. No key may have spaces or control bytes.
void put_add(const Stored& what, std::string& out);
void put_cas(const Stored& what, std::uint64_t cas, std::string& out);
void put_incr(std::string_view key, std::uint64_t by, std::string& out);
void put_gets(const std::vector<std::string>& keys, std::string& out);

void put_meta_add(const Stored& what, std::uint64_t tag, std::string& out);
void put_meta_cas(const Stored& what, std::uint64_t cas, std::uint64_t tag, std::string& out);
void put_meta_incr(std::string_view key, std::uint64_t by, std::uint64_t tag, std::string& out);
void put_meta_time(std::string_view key, std::uint64_t tag, std::string& out);
void put_meta_delete(std::string_view key, std::uint64_t cas, std::uint64_t tag, std::string& out);

/// A line, and the data behind it if the line says that there is some.
struct Piece {
  std::string_view line;  ///< without its end
  std::string_view data;
  bool has_data = false;
};

/// `VALUE key flags size cas`.
struct ItemLine {
  std::string_view key;
  std::uint64_t cas = 0;
};
std::optional<ItemLine> read_item_line(std::string_view line);

/// A reply to a meta command: two letters, then flags.
struct MetaLine {
  std::string_view code;
  std::uint64_t cas = 0;  ///< 0: not said
  std::optional<std::uint64_t> tag;
  std::optional<std::uint64_t> seconds_left{};  ///< empty: not said, or the item never expires
};
/// Empty for what is none: an error of the protocol's older kind, as a rule.
std::optional<MetaLine> read_meta_line(std::string_view line);

/// The whole text is one number.
std::optional<std::uint64_t> read_number(std::string_view text);

/// Takes bytes as they come and gives pieces. After an error it gives nothing more.
class ReplyReader {
 public:
  static constexpr std::size_t kLongestLine = 4096;
  /// A server takes no longer ones as it is installed.
  static constexpr std::size_t kLongestData = std::size_t{1} << 20U;

  /// Where the next bytes go; ends what views of earlier pieces show.
  std::span<char> room();
  void received(std::size_t size) noexcept { end_ += size; }

  /// `data_expected`: data may come here; else a line that announces some is a line like any other.
  std::optional<Piece> next(bool data_expected);
  /// Nothing is left over.
  bool is_empty() const noexcept { return begin_ == end_; }
  /// Empty, or why what came is no reply.
  const std::string& error() const noexcept { return error_; }

 private:
  std::optional<Piece> fail(const char* why);

  std::string buffer_;
  std::size_t begin_ = 0;    ///< of what was not given yet
  std::size_t end_ = 0;      ///< of what has come
  std::size_t scanned_ = 0;  ///< up to here, from `begin_`, there is no end of a line
  std::string error_;
};

}  // namespace dlock::memcached
