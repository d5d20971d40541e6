// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/wire/codec.hpp"

#include <hiredis/hiredis.h>

#include <array>
#include <charconv>
#include <exception>
#include <new>

namespace dlock::redis {
namespace {

/// Where a parsed object belongs: in the array above it, or nowhere yet (then the reader owns it).
Reply* place(const redisReadTask* task) {
  if (task->parent == nullptr) return new (std::nothrow) Reply();
  auto* parent = static_cast<Reply*>(task->parent->obj);
  return &parent->items[static_cast<std::size_t>(task->idx)];
}

/// Without memory: no exception may pass through hiredis. Null tells it.
void* drop(const redisReadTask* task, Reply* reply) {
  if (task->parent == nullptr) delete reply;
  return nullptr;
}

void* on_string(const redisReadTask* task, char* text, std::size_t length) {
  auto* reply = place(task);
  if (reply == nullptr) return nullptr;
  reply->kind = task->type == REDIS_REPLY_ERROR    ? Reply::Kind::error
                : task->type == REDIS_REPLY_STATUS ? Reply::Kind::status
                                                   : Reply::Kind::text;
  try {
    reply->text.assign(text, length);
  } catch (const std::bad_alloc&) {
    return drop(task, reply);
  }
  return reply;
}

// Before anything is allocated: hiredis believes the length that the peer has sent.
void* on_array(const redisReadTask* task, int elements) {
  auto& left = *static_cast<ReplyBudget*>(task->privdata);
  const auto count = static_cast<std::size_t>(elements);
  if (elements < 0 || count > left.elements) {
    left.exceeded = true;
    return nullptr;
  }
  left.elements -= count;
  auto* reply = place(task);
  if (reply == nullptr) return nullptr;
  reply->kind = Reply::Kind::array;
  try {
    reply->items.resize(count);
  } catch (const std::exception&) {
    return drop(task, reply);
  }
  return reply;
}

void* on_integer(const redisReadTask* task, long long value) {
  auto* reply = place(task);
  if (reply == nullptr) return nullptr;
  reply->kind = Reply::Kind::integer;
  reply->integer = value;
  return reply;
}

void* on_nil(const redisReadTask* task) { return place(task); }

// hiredis frees roots only; what is in them is theirs.
void free_root(void* root) { delete static_cast<Reply*>(root); }

void append_header(char kind, std::size_t count, std::string& out) {
  std::array<char, 24> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), count);
  out.push_back(kind);
  out.append(text.data(), end.ptr);
  out.append("\r\n");
}

redisReplyObjectFunctions functions{&on_string, &on_array, &on_integer, &on_nil, &free_root};

}  // namespace

void append_command(std::span<const std::string_view> words, std::string& out) {
  append_header('*', words.size(), out);
  for (const auto word : words) {
    append_header('$', word.size(), out);
    out.append(word);
    out.append("\r\n");
  }
}

void append_command(const Command& command, std::string& out) {
  const std::vector<std::string_view> words(command.begin(), command.end());
  append_command(words, out);
}

void ReplyReader::Free::operator()(redisReader* reader) const noexcept {
  ::redisReaderFree(reader);
}

ReplyReader::ReplyReader(Limits limits)
    : limits_(limits),
      left_{limits.elements},
      reader_(::redisReaderCreateWithFunctions(&functions)) {
  if (!reader_) throw std::bad_alloc();
  reader_->privdata = &left_;
}

ReplyReader::~ReplyReader() = default;

bool ReplyReader::is_out_of_memory() const noexcept {
  return reader_->err == REDIS_ERR_OOM && !left_.exceeded;
}

void ReplyReader::feed(std::string_view bytes) {
  if (!error_.empty()) return;
  pending_ += bytes.size();
  if (::redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK) {
    error_ = reader_->errstr;
  }
}

std::optional<Reply> ReplyReader::next() {
  if (!error_.empty()) return std::nullopt;
  void* object = nullptr;
  if (::redisReaderGetReply(reader_.get(), &object) != REDIS_OK) {
    error_ = left_.exceeded ? "a reply with too many elements" : reader_->errstr;
    return std::nullopt;
  }
  if (object == nullptr) {
    if (pending_ > limits_.bytes) error_ = "a reply longer than the limit";
    return std::nullopt;
  }
  const std::unique_ptr<Reply> root(static_cast<Reply*>(object));
  left_ = {limits_.elements};
  pending_ = reader_->len - reader_->pos;
  return std::move(*root);
}

}  // namespace dlock::redis
