// SPDX-License-Identifier: Apache-2.0
//
// Asking a holder to release the lock: a small file beside the lock's file has the token of the
// holder that is asked. The holder watches the directory.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "backends/local/backend.hpp"
#include "backends/local/lock/notes.hpp"
#include "backends/local/rules/names.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::local {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kLongestWithin_ms = 365LL * 24 * 3'600'000;
constexpr std::string_view kAskStamp = "v=";
constexpr unsigned kAskFormat = 1;

struct Asking {
  std::uint64_t token = 0;
  Revocation how;
};

/// Returns the text before the next space, and removes it and the space.
std::string_view take_word(std::string_view& text) {
  const auto word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

template <class Number>
bool read_number(std::string_view word, Number& number) {
  const auto* const last = word.data() + word.size();
  const auto [end, error] = std::from_chars(word.data(), last, number);
  return error == std::errc() && end == last;
}

/// Reads `v=1 token within who`, with `-` for no time. Any program may have written the file.
Asking read_asked(std::string_view text) {
  Asking asking;
  if (format_of(take_word(text), kAskStamp) != kAskFormat) return {};
  if (!read_number(take_word(text), asking.token)) return {};
  std::int64_t within = 0;
  if (read_number(take_word(text), within)) {
    asking.how.within = milliseconds(std::clamp<std::int64_t>(within, 0, kLongestWithin_ms));
  }
  asking.how.who = text;
  return asking;
}

std::string write_asked(std::uint64_t token, const Revocation& how) {
  const auto within = how.within ? fmt::format("{}", how.within->count()) : std::string("-");
  return fmt::format("{}{} {} {} {}", kAskStamp, kAskFormat, token, within, how.who);
}

}  // namespace

void LocalBackend::hear_asking(const std::string& lock_file) {
  const auto queue = queues_.find(lock_file);
  if (!queue || !directory_) return;
  std::optional<Asking> asking;
  for (const auto& claim : queue->everybody()) {
    const bool listens = claim->state == LocalClaim::State::granted && claim->request().tell_asked;
    if (!listens) continue;
    if (!asking) asking = read_asked(text_of_asking(ask_file_name(lock_file)));
    if (asking->token == claim->ticket) sink_.on_asked(claim, asking->how);
  }
}

/// Warns once of a newer dlock's file.
std::string LocalBackend::text_of_asking(const std::string& file) {
  auto text = read_small_file(*directory_, file);
  const auto newer = newer_format(directory_->path_of(file), text, kAskStamp, kAskFormat);
  if (!newer.empty() && !std::exchange(request_told_, true)) {
    sink_.on_warning("a request to release a lock cannot be read: " + newer);
  }
  return text;
}

asio::awaitable<AskAnswer> LocalBackend::ask(std::string name, std::uint64_t token, Revocation how,
                                             TimePoint deadline) {
  AskAnswer answer;
  const auto standing = co_await record(name, deadline);
  answer.failure = standing.failure;
  if (answer.failure.error) co_return answer;
  if (standing.found) {
    answer.failure = make_failure(Error::sealed, "dlock migrate moves or opens it");
    co_return answer;
  }
  auto found = co_await inspect(name, deadline);
  answer.failure = found.failure;
  if (answer.failure.error) co_return answer;
  const auto& status = *found.value;
  const auto holds = [&](const SharedHolder& reader) { return reader.token == token; };
  const bool is_meant = token == 0 || status.token == token ||
                        std::any_of(status.readers.begin(), status.readers.end(), holds);
  answer.token = token != 0 && is_meant ? token : status.token.value_or(0);
  if (!status.held) answer.failure = make_failure(Error::not_held, "");
  if (status.held && !is_meant) {
    answer.failure = make_failure(Error::other_token, fmt::format("its token is {}", answer.token));
  }
  if (answer.failure.error) co_return answer;
  auto failure = std::make_shared<Failure>();
  Job job = [failure, directory = directory_, file = ask_file_name(file_name(name)),
             text = write_asked(answer.token, how), unique = make_uuid(env_)] {
    auto newer = newer_format(directory->path_of(file), read_small_file(*directory, file),
                              kAskStamp, kAskFormat);
    if (!newer.empty()) {
      *failure = make_failure(Error::newer_format, std::move(newer));
      return;
    }
    *failure = put_small_file(*directory, file, text, unique);
  };
  const bool done = co_await helper_.run(std::move(job), deadline);
  answer.failure = done ? *failure : helper_.why_late(path_);
  co_return answer;
}

}  // namespace dlock::local
