// SPDX-License-Identifier: Apache-2.0
//
// The text protocol: serializes commands and splits replies into pieces. It limits the peer's data,
// so a broken or hostile peer costs a connection, not memory. Pure, no sockets.
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

/// An item to store.
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

/// A line, and the data behind it if the line announces data.
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
  std::uint64_t cas = 0;  ///< 0: not in the reply
  std::optional<std::uint64_t> tag;
  std::optional<std::uint64_t> seconds_left{};  ///< empty: not in the reply, or the item never
                                                ///< expires
};
/// Empty if it is not one: usually an error of the classic protocol.
std::optional<MetaLine> read_meta_line(std::string_view line);

/// The whole text is one number.
std::optional<std::uint64_t> read_number(std::string_view text);

/// Accepts bytes as they arrive, and returns pieces. After an error it returns no piece.
class ReplyReader {
 public:
  static constexpr std::size_t kLongestLine = 4096;
  /// The default limit of a server's values.
  static constexpr std::size_t kLongestData = std::size_t{1} << 20U;

  /// Returns the buffer for the next bytes; invalidates views of earlier pieces.
  std::span<char> room();
  void received(std::size_t size) noexcept { end_ += size; }

  /// `data_expected`: data may follow; otherwise a line that announces data is treated as any other
  /// line.
  std::optional<Piece> next(bool data_expected);
  /// Returns whether no bytes are left.
  bool is_empty() const noexcept { return begin_ == end_; }
  /// Why the received bytes are not a reply. Empty: no error.
  const std::string& error() const noexcept { return error_; }

 private:
  std::optional<Piece> fail(const char* why);

  std::string buffer_;
  std::size_t begin_ = 0;    ///< start of the bytes not returned yet
  std::size_t end_ = 0;      ///< end of the received bytes
  std::size_t scanned_ = 0;  ///< from `begin_` up to here, no line ends
  std::string error_;
};

}  // namespace dlock::memcached
