// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/wire/library_client.hpp"

#include <libmemcached/memcached.h>

#include <algorithm>
#include <new>

#include "backends/memcached/error.hpp"

namespace dlock::memcached {
namespace {

using std::chrono::milliseconds;

Answer no_time() { return {Outcome::unavailable, failure(Error::no_answer, "no time was left")}; }

void behave(memcached_st* handle, memcached_behavior_t behavior, std::int64_t value) {
  memcached_behavior_set(handle, behavior, static_cast<std::uint64_t>(value));
}

Error error_of(memcached_return_t code) {
  switch (code) {
    case MEMCACHED_TIMEOUT:
      return Error::no_answer;
    case MEMCACHED_HOST_LOOKUP_FAILURE:
      return Error::unknown_host;
    case MEMCACHED_AUTH_PROBLEM:
    case MEMCACHED_AUTH_FAILURE:
      return Error::access_denied;
    case MEMCACHED_PROTOCOL_ERROR:
    case MEMCACHED_PARTIAL_READ:
      return Error::unexpected;
    default:
      return Error::connection_lost;
  }
}

memcached_return_t take_stat_line(const memcached_instance_st*, const char* key,
                                  std::size_t key_length, const char* value,
                                  std::size_t value_length, void* into) {
  take_stat(*static_cast<ServerInfo*>(into), {key, key_length}, {value, value_length});
  return MEMCACHED_SUCCESS;
}

/// On the stack: one from the heap is freed by the library at the end of the answer.
class FetchedItem {
 public:
  explicit FetchedItem(memcached_st* handle) { memcached_result_create(handle, &result_); }
  ~FetchedItem() { memcached_result_free(&result_); }
  FetchedItem(const FetchedItem&) = delete;
  FetchedItem& operator=(const FetchedItem&) = delete;

  bool next(memcached_st* handle, memcached_return_t& rc) {
    return memcached_fetch_result(handle, &result_, &rc) != nullptr;
  }
  std::string key() const {
    return {memcached_result_key_value(&result_), memcached_result_key_length(&result_)};
  }
  Item item() const {
    return {{memcached_result_value(&result_), memcached_result_length(&result_)},
            memcached_result_cas(&result_)};
  }

 private:
  memcached_result_st result_{};
};

}  // namespace

void LibraryClient::Free::operator()(memcached_st* handle) const noexcept {
  // It says `quit` and waits for the server to hang up: not for long.
  behave(handle, MEMCACHED_BEHAVIOR_POLL_TIMEOUT, 20);
  memcached_free(handle);
}

LibraryClient::LibraryClient(Env& env, Endpoint server, std::uint32_t flags)
    : env_(env), server_(std::move(server)), flags_(flags) {}

LibraryClient::~LibraryClient() = default;

void LibraryClient::open() {
  handle_.reset(memcached_create(nullptr));
  auto* handle = handle_.get();
  if (handle == nullptr) throw std::bad_alloc();
  behave(handle, MEMCACHED_BEHAVIOR_NO_BLOCK, 1);
  behave(handle, MEMCACHED_BEHAVIOR_TCP_NODELAY, 1);
  behave(handle, MEMCACHED_BEHAVIOR_SUPPORT_CAS, 1);
  behave(handle, MEMCACHED_BEHAVIOR_TCP_KEEPALIVE, 1);
  memcached_server_add(handle, server_.host.c_str(), server_.port);
}

void LibraryClient::drop() { handle_.reset(); }

bool LibraryClient::limit() {
  const auto left = std::chrono::floor<milliseconds>(deadline() - env_.now()).count();
  if (left < 1 || !handle_) return false;
  auto* handle = handle_.get();
  const auto limit_ms = std::min<std::int64_t>(left, 60'000);
  behave(handle, MEMCACHED_BEHAVIOR_POLL_TIMEOUT, limit_ms);
  behave(handle, MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT, limit_ms);
  behave(handle, MEMCACHED_BEHAVIOR_SND_TIMEOUT, limit_ms * 1000);
  behave(handle, MEMCACHED_BEHAVIOR_RCV_TIMEOUT, limit_ms * 1000);
  return true;
}

Answer LibraryClient::judge(int code) {
  const auto rc = static_cast<memcached_return_t>(code);
  switch (rc) {
    case MEMCACHED_SUCCESS:
    case MEMCACHED_STORED:
    case MEMCACHED_END:
      return {Outcome::done, {}};
    case MEMCACHED_NOTSTORED:
      return {Outcome::not_stored, {}};
    case MEMCACHED_NOTFOUND:
    case MEMCACHED_DATA_DOES_NOT_EXIST:
      return {Outcome::not_found, {}};
    case MEMCACHED_DATA_EXISTS:
      return {Outcome::exists, {}};
    default:
      break;
  }
  const auto* words = memcached_last_error_message(handle_.get());
  std::string text = words == nullptr ? memcached_strerror(handle_.get(), rc) : words;
  // It begins with the handle's address, which says nothing to anybody.
  if (const auto space = text.find(") "); text.starts_with("(0x") && space != std::string::npos) {
    text.erase(0, space + 2);
  }
  // And ends with a line of the library's source.
  text.erase(std::min(text.size(), text.rfind(" -> ")));
  switch (rc) {
    case MEMCACHED_SERVER_MEMORY_ALLOCATION_FAILURE:
      return {Outcome::refused, failure(Error::out_of_memory, std::move(text))};
    case MEMCACHED_SERVER_ERROR: {
      const bool memory = text.find("out of memory") != std::string::npos;
      if (memory) return {Outcome::refused, failure(Error::out_of_memory, std::move(text))};
      // A proxy's, as a rule, that has lost its server in the midst of it: maybe done.
      return {Outcome::unknown, failure(Error::server_error, std::move(text))};
    }
    case MEMCACHED_CLIENT_ERROR: {
      const bool login = text.find("unauthenticated") != std::string::npos;
      return {Outcome::refused,
              failure(login ? Error::access_denied : Error::refused, std::move(text))};
    }
    case MEMCACHED_INVALID_ARGUMENTS:
    case MEMCACHED_ERROR:
      // It is said on accepting, and the connection closed; and a route that leads nowhere
      // (`blackhole`) makes connect() fail with EINVAL.
      drop();
      if (text.find("open connections") != std::string::npos) {
        return {Outcome::unavailable, failure(Error::no_places, std::move(text))};
      }
      return {Outcome::refused, failure(Error::refused, std::move(text))};
    case MEMCACHED_E2BIG:
    case MEMCACHED_BAD_KEY_PROVIDED:
    case MEMCACHED_KEY_TOO_BIG:
      return {Outcome::refused, failure(Error::refused, std::move(text))};
    default:
      drop();
      return {Outcome::unknown, failure(error_of(rc), std::move(text))};
  }
}

Answer LibraryClient::add(const std::string& key, const std::string& value, std::time_t exptime) {
  if (!limit()) return no_time();
  return judge(memcached_add(handle_.get(), key.data(), key.size(), value.data(), value.size(),
                             exptime, flags_));
}

Answer LibraryClient::cas(const std::string& key, const std::string& value, std::time_t exptime,
                          std::uint64_t cas) {
  if (!limit()) return no_time();
  return judge(memcached_cas(handle_.get(), key.data(), key.size(), value.data(), value.size(),
                             exptime, flags_, cas));
}

Number LibraryClient::increment(const std::string& key, std::uint64_t by) {
  Number number;
  if (!limit()) return {no_time(), 0};
  // The plain call takes 32 bits only; the group key chooses among servers, and there is one.
  number.answer = judge(memcached_increment_by_key(handle_.get(), key.data(), key.size(),
                                                   key.data(), key.size(), by, &number.value));
  return number;
}

Found LibraryClient::gets(const std::vector<std::string>& keys) {
  Found found;
  if (!limit()) return {no_time(), {}};
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  texts.reserve(keys.size());
  lengths.reserve(keys.size());
  for (const auto& key : keys) {
    texts.push_back(key.data());
    lengths.push_back(key.size());
  }
  auto rc = memcached_mget(handle_.get(), texts.data(), lengths.data(), keys.size());
  if (rc == MEMCACHED_SUCCESS) {
    FetchedItem fetched(handle_.get());
    while (fetched.next(handle_.get(), rc)) {
      found.items.insert_or_assign(fetched.key(), fetched.item());
    }
  }
  // The end of the answer is NOTFOUND when none of the keys is there.
  if (rc == MEMCACHED_NOTFOUND) rc = MEMCACHED_END;
  found.answer = judge(rc);
  return found;
}

Answer LibraryClient::stats(const char* what, ServerInfo& into) {
  if (!limit()) return no_time();
  return judge(memcached_stat_execute(handle_.get(), what, &take_stat_line, &into));
}

}  // namespace dlock::memcached
