// SPDX-License-Identifier: Apache-2.0
//
// RESP2: serializes commands and parses replies. The usual replies of scripts, which arrive in one
// piece, are parsed in place. hiredis parses all other replies. This class limits the size of a
// reply and the length of an array, which hiredis does not limit. So a broken or hostile peer costs
// a connection, not memory. Pure, no sockets.
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

#include "dlock/detail/recycled.hpp"

struct redisReader;

namespace dlock::redis {

using Command = std::vector<std::string>;
inline Command words(std::initializer_list<std::string_view> list) {
  return {list.begin(), list.end()};
}

/// One argument of a command: a text of one or two pieces that live elsewhere, or a number.
class Word {
 public:
  // NOLINTBEGIN(google-explicit-constructor): a text is an argument
  Word(std::string_view text) noexcept
      : text_(text.data()), size_(static_cast<std::uint32_t>(text.size())), rest_size_(0) {}
  Word(std::string_view text, std::string_view rest) noexcept
      : text_(text.data()),
        rest_(rest.data()),
        size_(static_cast<std::uint32_t>(text.size())),
        rest_size_(static_cast<std::uint32_t>(rest.size())) {}
  Word(const std::string& text) noexcept : Word(std::string_view(text)) {}
  Word(const char* text) noexcept : Word(std::string_view(text)) {}
  Word(std::string&&) = delete;
  // NOLINTEND(google-explicit-constructor)
  explicit Word(std::uint64_t number) noexcept : number_(number), size_(0), rest_size_(kIsNumber) {}

  std::string text() const;
  /// Bytes of it in a command, at most.
  std::size_t room() const noexcept;
  /// Writes it at `at` as RESP. Returns the end.
  char* write(char* at) const noexcept;

 private:
  // Small: a call has many of them, and they are in its coroutine's frame while the call runs.
  static constexpr std::uint32_t kIsNumber = 0xFFFF'FFFF;
  bool is_number() const noexcept { return rest_size_ == kIsNumber; }
  std::string_view text_view() const noexcept { return {text_, size_}; }
  std::string_view rest_view() const noexcept {
    return rest_size_ == 0 ? std::string_view() : std::string_view(rest_, rest_size_);
  }

  const char* text_ = nullptr;
  const char* rest_ = nullptr;
  std::uint64_t number_ = 0;
  std::uint32_t size_;
  std::uint32_t rest_size_;
};

/// The arguments of a command, in one or more pieces.
using Words = std::initializer_list<std::span<const Word>>;

/// Appends the command as RESP to `out`. hiredis' function allocates a buffer per command and
/// formats each length with sprintf.
void append_words(Words words, std::string& out);
void append_command(const Command& command, std::string& out);

struct Reply;
/// Recycled, because every request creates replies.
using Replies = std::vector<Reply, detail::Recycled<Reply>>;

struct Reply {
  enum class Kind { nil, status, error, integer, text, array };
  Kind kind = Kind::nil;
  std::int64_t integer = 0;
  std::string text;  ///< text of a status, an error or a text
  Replies items;

  bool is_error() const noexcept { return kind == Kind::error; }
};

/// The reply under way, and what it may still have.
struct ReplyUnderWay {
  Reply reply;
  std::size_t elements = 0;
  bool exceeded = false;
};

/// Accepts bytes as they arrive, and returns whole replies. After a failure it returns no reply.
class ReplyReader {
 public:
  struct Limits {
    std::size_t bytes = std::size_t{64} << 20U;  ///< in one reply
    std::size_t elements = 1'000'000;            ///< in one reply, in all its arrays
  };

  ReplyReader() : ReplyReader(Limits{}) {}
  explicit ReplyReader(Limits limits);
  ~ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  void feed(std::string_view bytes);
  /// The next reply, if it is complete. Depth is limited by hiredis (7 arrays in each other).
  std::optional<Reply> next();
  /// Why the received bytes are not RESP. Empty: no error.
  const std::string& error() const noexcept { return error_; }

 private:
  struct Free {
    void operator()(redisReader* reader) const noexcept;
  };

  /// Parses the plain replies at the front of `bytes`, and removes them.
  void take_plain(std::string_view& bytes);
  std::size_t take_plain(std::string_view bytes, bool& is_part);
  void give_hiredis(std::string_view bytes);
  void fail();

  const Limits limits_;
  Replies plain_;  ///< before what the reader has
  std::size_t next_plain_ = 0;
  std::string part_;  ///< an incomplete reply that may be a plain one, after those
  ReplyUnderWay current_;
  std::size_t pending_ = 0;  ///< bytes of the reply under way
  std::string error_;
  std::unique_ptr<redisReader, Free> reader_;
};

}  // namespace dlock::redis
