// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/wire/exchange.hpp"

#include <algorithm>
#include <utility>

#include "backends/memcached/error.hpp"

namespace dlock::memcached {
namespace {

/// Lines of one answer to `stats`.
constexpr int kMostStats = 10'000;
constexpr std::size_t kLongestQuote = 200;

Answer unexpected(std::string_view line) {
  return {
      Outcome::unknown, failure(Error::unexpected, std::string(line.substr(0, kLongestQuote))), {}};
}

/// Converts a server's error line.
Answer judge_error(std::string_view line) {
  std::string text(line.substr(0, kLongestQuote));
  const auto has = [&](std::string_view words) { return line.find(words) != line.npos; };
  if (line.starts_with("SERVER_ERROR")) {
    if (has("out of memory")) {
      return {Outcome::refused, failure(Error::out_of_memory, std::move(text)), {}};
    }
    // A proxy's, as a rule, that has lost its server in the midst of it: maybe done.
    return {Outcome::unknown, failure(Error::server_error, std::move(text)), {}};
  }
  if (line.starts_with("CLIENT_ERROR")) {
    const auto error = has("unauthenticated") ? Error::access_denied : Error::refused;
    return {Outcome::refused, failure(error, std::move(text)), {}};
  }
  if (line.starts_with("ERROR")) {
    // The server sends it right after accepting, and closes the connection.
    if (has("open connections")) {
      return {Outcome::unavailable, failure(Error::no_places, std::move(text)), {}};
    }
    return {Outcome::refused, failure(Error::refused, std::move(text)), {}};
  }
  return unexpected(line);
}

/// Returns whether the next answer can belong to the next request. Not if the server may have read
/// data as commands, or has sent an unknown reply.
bool keeps_step(const Answer& answer) {
  if (answer.outcome == Outcome::refused) {
    return answer.failure.error != make_error_code(Error::refused);
  }
  if (answer.outcome == Outcome::unknown) {
    return answer.failure.error == make_error_code(Error::server_error);
  }
  return answer.outcome != Outcome::unavailable;
}

Exchange::Progress end_of(const Answer& answer) {
  return keeps_step(answer) ? Exchange::Progress::complete : Exchange::Progress::lost;
}

}  // namespace

Exchange::Progress Exchange::take(const Piece& piece) {
  auto judged = judge(piece);
  // An abandoned exchange has been completed already.
  if (judged.progress != Progress::more && !is_over_) end(std::move(judged.answer));
  return judged.progress;
}

void Exchange::end(Answer how) noexcept {
  answer = std::move(how);
  is_over_ = true;
  told_.notify();
}

Answer Exchange::judge_line(std::string_view line) const {
  if (!asked_.is_meta) {
    if (line == "STORED") return {Outcome::done, {}, {}};
    if (line == "NOT_STORED") return {Outcome::not_stored, {}, {}};
    if (line == "NOT_FOUND") return {Outcome::not_found, {}, {}};
    if (line == "EXISTS") return {Outcome::exists, {}, {}};
    return judge_error(line);
  }
  const auto meta = read_meta_line(line);
  if (!meta) return judge_error(line);
  if (meta->tag != asked_.tag) return unexpected("an answer to another request");
  if (meta->code == "HD") return {Outcome::done, {}, {meta->cas, asked_.era}};
  if (meta->code == "NS") return {Outcome::not_stored, {}, {}};
  if (meta->code == "NF") return {Outcome::not_found, {}, {}};
  if (meta->code == "EX") return {Outcome::exists, {}, {}};
  return unexpected(line);
}

Exchange::Judged LineExchange::judge(const Piece& piece) {
  auto said = judge_line(piece.line);
  const auto progress = end_of(said);
  return {progress, std::move(said)};
}

Exchange::Judged TimeExchange::judge(const Piece& piece) {
  const auto meta = read_meta_line(piece.line);
  // A miss is answered without the tag.
  if (meta && meta->code == "EN") return {Progress::complete, {Outcome::not_found, {}, {}}};
  auto said = judge_line(piece.line);
  const auto progress = end_of(said);
  if (said.done() && meta->seconds_left) {
    value = *meta->seconds_left;
  } else if (said.done()) {
    said.outcome = Outcome::refused;
  }
  return {progress, std::move(said)};
}

Exchange::Judged NumberExchange::judge(const Piece& piece) {
  const bool is_meta = asked().is_meta;
  const auto number = read_number(is_meta ? piece.data : piece.line);
  const auto meta = is_meta ? read_meta_line(piece.line) : std::nullopt;
  const bool is_ours = !is_meta || (meta && meta->code == "VA" && meta->tag == asked().tag);
  if (number && is_ours) {
    value = *number;
    return {Progress::complete, {Outcome::done, {}, {}}};
  }
  auto said = judge_line(piece.line);
  if (said.outcome != Outcome::not_found && !said.failure.error) said = unexpected(piece.line);
  // The command has no data: a server that does not count here keeps in step.
  const bool not_a_number = said.failure.error == make_error_code(Error::refused) &&
                            piece.line.starts_with("CLIENT_ERROR");
  const auto progress = not_a_number ? Progress::complete : end_of(said);
  return {progress, std::move(said)};
}

Exchange::Judged ItemsExchange::judge(const Piece& piece) {
  const auto item = piece.has_data ? read_item_line(piece.line) : std::nullopt;
  if (!item) {
    if (piece.line == "END") return {Progress::complete, {Outcome::done, {}, {}}};
    auto said = judge_error(piece.line);
    const auto progress = end_of(said);
    return {progress, std::move(said)};
  }
  if (std::find(keys_.begin(), keys_.end(), item->key) == keys_.end()) {
    return {Progress::lost, unexpected(piece.line)};
  }
  if (!is_over()) {
    items.insert_or_assign(std::string(item->key),
                           Item{std::string(piece.data), {item->cas, asked().era}});
  }
  return {};
}

Exchange::Judged StatsExchange::judge(const Piece& piece) {
  auto line = piece.line;
  if (++lines_ > kMostStats) return {Progress::lost, unexpected("statistics without end")};
  Answer said{Outcome::done, {}, {}};
  if (ended_) {
    has_meta = line == "MN" && !info.is_proxy;
    if (line != "MN" && line != "ERROR") said = judge_error(line);
    const auto progress = end_of(said);
    return {progress, std::move(said)};
  }
  if (line == "END") {
    ended_ = true;
    return {probes_ ? Progress::more : Progress::complete, std::move(said)};
  }
  if (!line.starts_with("STAT ")) {
    said = judge_error(line);
    const auto progress = end_of(said);
    return {progress, std::move(said)};
  }
  line.remove_prefix(5);
  const auto space = std::min(line.find(' '), line.size());
  take_stat(info, line.substr(0, space), line.substr(std::min(space + 1, line.size())));
  return {};
}

}  // namespace dlock::memcached
