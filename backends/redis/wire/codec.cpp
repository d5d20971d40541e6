// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/wire/codec.hpp"

#include <hiredis/hiredis.h>

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

redisReplyObjectFunctions functions{&on_string, &on_array, &on_integer, &on_nil, &free_root};

}  // namespace

void append_command(const Command& command, std::string& out) {
  std::vector<const char*> words;
  std::vector<std::size_t> lengths;
  words.reserve(command.size());
  lengths.reserve(command.size());
  for (const auto& word : command) {
    words.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* text = nullptr;
  const int length =
      ::redisFormatCommandArgv(&text, static_cast<int>(words.size()), words.data(), lengths.data());
  if (length < 0) throw std::bad_alloc();
  out.append(text, static_cast<std::size_t>(length));
  ::redisFreeCommand(text);
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
