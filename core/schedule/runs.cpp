// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/runs.hpp"

#include <utility>

#include "core/config/routes.hpp"
#include "core/schedule/record.hpp"
#include "core/store/store.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/name.hpp"

namespace dlock::core {
namespace {

using std::chrono::milliseconds;

struct Read {
  Failure failure;
  std::string text;
  milliseconds now{0};
  Owner me;
};

TimePoint request_deadline(Store& store) { return store.env().now() + store.request_timeout(); }

asio::awaitable<Read> read_note(std::shared_ptr<Store> store, std::string key) {
  Read read;
  read.failure = co_await store->connected();
  if (read.failure.error) co_return read;
  auto note = co_await store->backend().migration().note(std::move(key), request_deadline(*store));
  if (note.status != RecordStatus::done) {
    read.failure = std::move(note.failure);
    if (!read.failure.error) read.failure = make_failure(errc::unavailable, {});
    co_return read;
  }
  read.text = std::move(note.found).value_or(std::string());
  co_return read;
}

asio::awaitable<Read> read_run(std::shared_ptr<Store> store, std::string key) {
  auto read = co_await read_note(store, std::move(key));
  if (read.failure.error) co_return read;
  auto time = co_await store->backend().migration().time(request_deadline(*store));
  if (time.value) {
    read.now = *time.value;
  } else {
    read.failure = std::move(time.failure);
    if (!read.failure.error) read.failure = make_failure(errc::protocol, "no time was answered");
  }
  read.me = store->me();
  co_return read;
}

asio::awaitable<RecordAnswer> write_run(std::shared_ptr<Store> store, std::string key,
                                        std::string from, std::string to) {
  RecordAnswer answer;
  answer.failure = co_await store->connected();
  if (answer.failure.error) co_return answer;
  std::optional<std::string> before = std::move(from);
  std::optional<std::string> after = std::move(to);
  answer = co_await store->backend().migration().set_note(
      std::move(key), std::move(before), std::move(after), request_deadline(*store));
  co_return answer;
}

std::string home_of_runs(const Engine& engine, const std::string& name) {
  const auto& route = engine.route(name);
  if (other_store(route) == nullptr) return route.store;
  throw LockError(make_error_code(errc::not_supported),
                  {name, route.store,
                   "the route of this lock has `migrate`, and its runs would be known in one of "
                   "its stores only; scheduled runs need a route without"});
}

std::string checked_key(const std::string& name) {
  auto key = run_key(name);
  if (auto wrong = name_error(key); !wrong.empty()) {
    throw LockError(make_error_code(errc::invalid_name), {name, {}, std::move(wrong)});
  }
  return key;
}

}  // namespace

Runs::Runs(std::shared_ptr<Engine> engine, std::string name)
    : engine_(std::move(engine)),
      name_(std::move(name)),
      key_(checked_key(name_)),
      store_(home_of_runs(*engine_, name_)) {}

Runs::Seen Runs::look() {
  auto read = engine_->run_on<Read>(
      store_, [key = key_](std::shared_ptr<Store> at) { return read_run(std::move(at), key); });
  if (read.failure.error) throw LockError(read.failure.error, {name_, store_, read.failure.text});
  Seen seen;
  seen.last = parsed(read.text);
  seen.text = std::move(read.text);
  seen.now = read.now;
  seen.me = std::move(read.me);
  return seen;
}

std::optional<RunRecord> Runs::last() {
  auto read = engine_->run_on<Read>(
      store_, [key = key_](std::shared_ptr<Store> at) { return read_note(std::move(at), key); });
  if (read.failure.error) throw LockError(read.failure.error, {name_, store_, read.failure.text});
  return parsed(read.text);
}

std::optional<RunRecord> Runs::parsed(const std::string& text) const {
  auto run = parse_run(text);
  if (run || text.empty()) return run;
  if (auto newer = newer_run(text); !newer.empty()) {
    throw LockError(make_error_code(errc::newer_format), {name_, store_, std::move(newer)});
  }
  throw LockError(make_error_code(errc::protocol),
                  {name_, store_, "the note of its last run is another program's text"});
}

Runs::Written Runs::try_replace(const std::string& from, const std::string& to) {
  auto answer = engine_->run_on<RecordAnswer>(
      store_, [&](std::shared_ptr<Store> at) { return write_run(std::move(at), key_, from, to); });
  if (answer.status == RecordStatus::done) return Written::yes;
  if (answer.status == RecordStatus::conflict) return Written::no;
  if (answer.status == RecordStatus::unknown) return Written::unknown;
  throw LockError(answer.failure.error ? answer.failure.error : make_error_code(errc::unavailable),
                  {name_, store_, answer.failure.text});
}

// No two texts are equal, because each has its run's id: the text that is read there is that of
// this run. A late copy of a request finds another text than `from` once any run has replaced it.
bool Runs::replace(const std::string& from, const std::string& to) {
  auto written = try_replace(from, to);
  constexpr int kMost = 3;
  for (int tries = 0; written == Written::unknown && tries < kMost; ++tries) {
    const auto text = look().text;
    if (text == to) return true;
    if (text != from) return false;
    written = try_replace(from, to);
    if (written == Written::no) return look().text == to;
  }
  if (written != Written::unknown) return written == Written::yes;
  throw LockError(make_error_code(errc::unavailable),
                  {name_, store_, "it is not known whether the run was written"});
}

}  // namespace dlock::core
