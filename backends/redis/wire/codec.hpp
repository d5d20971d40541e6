// SPDX-License-Identifier: Apache-2.0
//
// RESP2 as bytes: commands out, replies in. hiredis does the parsing; what it does not
// limit (a reply's size, an array's length) is limited here, so that a broken or hostile peer
// costs us a connection and not our memory. Pure, no sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct redisReader;

namespace dlock::redis {

using Command = std::vector<std::string>;
inline Command words(std::initializer_list<std::string_view> list) {
  return {list.begin(), list.end()};
}

/// Appends the command as RESP to `out`. Own code: hiredis' takes a buffer of its own a command and
/// formats each length with sprintf, a sixth of the instructions of a lock and unlock.
void append_command(std::span<const std::string_view> words, std::string& out);
void append_command(const Command& command, std::string& out);

struct Reply {
  enum class Kind { nil, status, error, integer, text, array };
  Kind kind = Kind::nil;
  std::int64_t integer = 0;
  std::string text;  ///< of status, error and text
  std::vector<Reply> items;

  bool is_error() const noexcept { return kind == Kind::error; }
};

/// What one reply may still have.
struct ReplyBudget {
  std::size_t elements = 0;
  bool exceeded = false;
};

/// Takes bytes as they come and gives whole replies. After a failure it gives nothing more.
class ReplyReader {
 public:
  struct Limits {
    std::size_t bytes = std::size_t{64} << 20U;  ///< of one reply
    std::size_t elements = 1'000'000;            ///< of one reply, in all its arrays
  };

  ReplyReader() : ReplyReader(Limits{}) {}
  explicit ReplyReader(Limits limits);
  ~ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  void feed(std::string_view bytes);
  /// The next reply, if it is complete. Depth is limited by hiredis (7 arrays in each other).
  std::optional<Reply> next();
  /// Empty, or why what came is no RESP.
  const std::string& error() const noexcept { return error_; }
  /// The error is ours: there was no memory for the reply.
  bool is_out_of_memory() const noexcept;

 private:
  struct Free {
    void operator()(redisReader* reader) const noexcept;
  };

  const Limits limits_;
  ReplyBudget left_;
  std::size_t pending_ = 0;  ///< bytes of the reply under way
  std::string error_;
  std::unique_ptr<redisReader, Free> reader_;
};

}  // namespace dlock::redis
