// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/wire/codec.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <new>
#include <utility>

#include "dlock/detail/out_of_memory.hpp"

namespace dlock::redis {
namespace {

/// Where a parsed object belongs: in the array above it, or it is the whole reply.
Reply* place(const redisReadTask* task) {
  if (task->parent == nullptr) return &static_cast<ReplyUnderWay*>(task->privdata)->reply;
  auto* parent = static_cast<Reply*>(task->parent->obj);
  return &parent->items[static_cast<std::size_t>(task->idx)];
}

void* on_string(const redisReadTask* task, char* text, std::size_t length) {
  auto* reply = place(task);
  reply->kind = task->type == REDIS_REPLY_ERROR    ? Reply::Kind::error
                : task->type == REDIS_REPLY_STATUS ? Reply::Kind::status
                                                   : Reply::Kind::text;
  or_end([&] { reply->text.assign(text, length); });  // no exception may pass through hiredis
  return reply;
}

// Checks the length before the allocation: hiredis accepts any length that the peer has sent.
void* on_array(const redisReadTask* task, int elements) {
  auto& left = *static_cast<ReplyUnderWay*>(task->privdata);
  const auto count = static_cast<std::size_t>(elements);
  if (elements < 0 || count > left.elements) {
    left.exceeded = true;
    return nullptr;
  }
  left.elements -= count;
  auto* reply = place(task);
  reply->kind = Reply::Kind::array;
  or_end([&] { reply->items.resize(count); });
  return reply;
}

void* on_integer(const redisReadTask* task, long long value) {
  auto* reply = place(task);
  reply->kind = Reply::Kind::integer;
  reply->integer = value;
  return reply;
}

void* on_nil(const redisReadTask* task) { return place(task); }

// hiredis frees only roots, and this class owns its roots.
void free_root(void* /*root*/) {}

constexpr std::size_t kLongestNumber = 20;  ///< 2^64
constexpr std::size_t kLongestHeader = 1 + kLongestNumber + 2;

inline char* put(std::string_view text, char* at) {
  if (!text.empty()) std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

constexpr auto kTwoDigits = [] {
  std::array<std::array<char, 2>, 100> digits{};
  for (std::size_t i = 0; i < digits.size(); ++i) {
    digits.at(i) = {static_cast<char>('0' + i / 10), static_cast<char>('0' + i % 10)};
  }
  return digits;
}();

// Most are lengths of one or two digits.
inline char* put(std::uint64_t number, char* at) {
  if (number < 10) {
    *at = static_cast<char>('0' + number);
    return at + 1;
  }
  if (number < 100) {
    std::memcpy(at, kTwoDigits[number].data(), 2);
    return at + 2;
  }
  return std::to_chars(at, at + kLongestNumber, number).ptr;
}

inline char* put_end(char* at) {
  at[0] = '\r';
  at[1] = '\n';
  return at + 2;
}

inline char* put_header(char kind, std::size_t count, char* at) {
  *at = kind;
  return put_end(put(count, at + 1));
}

/// The longest part of an incomplete reply that is kept before hiredis gets it.
constexpr std::size_t kLongestPart = 1024;

constexpr std::string_view kOk = "+OK\r\n";
constexpr std::string_view kNil = "$-1\r\n";

/// A short text, an array of a few of them, numbers and nils that is wholly there, or one of what
/// SET answers.
class PlainReply {
 public:
  explicit PlainReply(std::string_view bytes)
      : at_(bytes.data()), end_(at_ + bytes.size()), begin_(at_) {}

  /// How long it is; 0: it is something else, or not whole (is_part()). `reply` is not to be used
  /// then.
  std::size_t read(std::size_t most_items, Reply& reply) {
    if (is_next(kOk)) {
      reply.kind = Reply::Kind::status;
      reply.text = "OK";
      return kOk.size();
    }
    if (is_next(kNil)) return kNil.size();
    if (at_ != end_ && *at_ == '$') {
      return read_item(reply) ? static_cast<std::size_t>(at_ - begin_) : 0;
    }
    std::size_t count = 0;
    if (!is_next('*') || !read_length(count) || count == 0 || count > kMost || count > most_items) {
      return 0;
    }
    reply.kind = Reply::Kind::array;
    reply.items.resize(count);
    for (auto& item : reply.items) {
      if (!read_item(item)) return 0;
    }
    return static_cast<std::size_t>(at_ - begin_);
  }
  /// The bytes ended before it did: surely, whatever kind of reply it is.
  bool is_part() const noexcept { return is_part_; }

 private:
  static constexpr std::size_t kMost = 9;

  bool is_next(char what) {
    if (at_ == end_) is_part_ = true;
    if (at_ == end_ || *at_ != what) return false;
    ++at_;
    return true;
  }
  bool is_next(std::string_view what) {
    const std::string_view left(at_, static_cast<std::size_t>(end_ - at_));
    if (!left.starts_with(what)) {
      if (what.starts_with(left)) is_part_ = true;
      return false;
    }
    at_ += what.size();
    return true;
  }
  bool read_end() { return is_next('\r') && is_next('\n'); }
  /// A length of at most three digits.
  bool read_length(std::size_t& length) {
    const auto* const first = at_;
    for (; at_ != end_ && *at_ >= '0' && *at_ <= '9' && at_ - first < 3; ++at_) {
      length = 10 * length + static_cast<std::size_t>(*at_ - '0');
    }
    const bool is_usual = at_ - first == 1 || (at_ != first && *first != '0');
    return is_usual && read_end();
  }
  /// A number in its canonical form. hiredis parses other forms.
  bool read_number(std::int64_t& number) {
    const auto* const first = at_;
    const auto [stop, error] = std::from_chars(at_, end_, number);
    at_ = stop;
    if (error != std::errc() || !read_end()) return false;
    return number == 0 ? stop - first == 1 : first[*first == '-' ? 1 : 0] != '0';
  }
  bool read_item(Reply& item) {
    if (is_next(':')) {
      item.kind = Reply::Kind::integer;
      return read_number(item.integer);
    }
    if (is_next(kNil)) return true;
    std::size_t length = 0;
    if (!is_next('$') || !read_length(length)) return false;
    if (static_cast<std::size_t>(end_ - at_) < length) {
      is_part_ = true;
      return false;
    }
    item.kind = Reply::Kind::text;
    item.text.assign(at_, length);
    at_ += length;
    return read_end();
  }

  const char* at_;
  const char* const end_;
  const char* const begin_;
  bool is_part_ = false;
};

redisReplyObjectFunctions functions{&on_string, &on_array, &on_integer, &on_nil, &free_root};

}  // namespace

std::string Word::text() const {
  if (is_number()) return std::to_string(number_);
  return std::string(text_view()).append(rest_view());
}

std::size_t Word::room() const noexcept {
  const auto rest = is_number() ? kLongestNumber : rest_size_;
  return kLongestHeader + size_ + rest + 2;
}

char* Word::write(char* at) const noexcept {
  if (is_number()) {
    // Written before they are read.
    std::array<char, kLongestNumber> digits;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    const auto size = static_cast<std::size_t>(put(number_, digits.data()) - digits.data());
    return put_end(put({digits.data(), size}, put_header('$', size, at)));
  }
  at = put_header('$', std::size_t{size_} + rest_size_, at);
  return put_end(put(rest_view(), put(text_view(), at)));
}

void append_words(Words words, std::string& out) {
  const auto begin = out.size();
  std::size_t count = 0;
  std::size_t room = kLongestHeader;
  for (const auto& piece : words) {
    count += piece.size();
    for (const auto& word : piece) room += word.room();
  }
  out.resize(begin + room);
  auto* at = put_header('*', count, out.data() + begin);
  for (const auto& piece : words) {
    for (const auto& word : piece) at = word.write(at);
  }
  out.resize(static_cast<std::size_t>(at - out.data()));
}

void append_command(const Command& command, std::string& out) {
  const std::vector<Word> words(command.begin(), command.end());
  append_words({words}, out);
}

void ReplyReader::Free::operator()(redisReader* reader) const noexcept {
  ::redisReaderFree(reader);
}

ReplyReader::ReplyReader(Limits limits)
    : limits_(limits),
      current_{{}, limits.elements},
      reader_(::redisReaderCreateWithFunctions(&functions)) {
  if (!reader_) throw std::bad_alloc();
  reader_->privdata = &current_;
}

ReplyReader::~ReplyReader() = default;

void ReplyReader::fail() {
  if (reader_->err == REDIS_ERR_OOM && !current_.exceeded) end_out_of_memory();
  error_ = current_.exceeded ? "a reply with too many elements" : reader_->errstr;
}

// How many bytes of it there were; 0: it is not for us.
std::size_t ReplyReader::take_plain(std::string_view bytes, bool& is_part) {
  Reply reply;
  PlainReply plain(bytes.substr(0, limits_.bytes));
  const auto size = plain.read(limits_.elements, reply);
  if (size != 0) plain_.push_back(std::move(reply));
  is_part = size == 0 && plain.is_part();
  return size;
}

// Many replies arrive in consecutive pieces, and most pieces end within a reply.
void ReplyReader::take_plain(std::string_view& bytes) {
  const auto kept = part_.size();
  bool is_part = false;
  if (kept != 0) {
    part_.append(bytes.substr(0, kLongestPart));
    const auto size = take_plain(part_, is_part);
    part_.resize(kept);
    if (size == 0) return;
    part_.clear();
    bytes.remove_prefix(size - kept);
  }
  while (!bytes.empty()) {
    const auto size = take_plain(bytes, is_part);
    if (size == 0) break;
    bytes.remove_prefix(size);
  }
  if (!is_part || bytes.size() > std::min(kLongestPart, limits_.bytes)) return;
  part_.assign(bytes);
  bytes = {};
}

void ReplyReader::feed(std::string_view bytes) {
  if (!error_.empty()) return;
  if (pending_ == 0) take_plain(bytes);
  if (bytes.empty()) return;
  if (!part_.empty()) give_hiredis(std::exchange(part_, {}));
  give_hiredis(bytes);
}

void ReplyReader::give_hiredis(std::string_view bytes) {
  pending_ += bytes.size();
  if (::redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK) fail();
}

std::optional<Reply> ReplyReader::next() {
  if (next_plain_ < plain_.size()) {
    auto reply = std::move(plain_[next_plain_]);
    if (++next_plain_ == plain_.size()) {
      plain_.clear();
      next_plain_ = 0;
    }
    return reply;
  }
  if (!error_.empty() || pending_ == 0) return std::nullopt;
  void* object = nullptr;
  if (::redisReaderGetReply(reader_.get(), &object) != REDIS_OK) {
    fail();
    return std::nullopt;
  }
  if (object == nullptr) {
    if (pending_ > limits_.bytes) error_ = "a reply longer than the limit";
    return std::nullopt;
  }
  pending_ = reader_->len - reader_->pos;
  return std::exchange(current_, {{}, limits_.elements}).reply;
}

}  // namespace dlock::redis
