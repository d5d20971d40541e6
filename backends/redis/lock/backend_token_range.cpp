// SPDX-License-Identifier: Apache-2.0
//
// Acquires an uncontended lock with a token that this process already owns. Proves that the grant
// is valid.
#include <array>
#include <charconv>
#include <utility>

#include "backends/redis/backend.hpp"
#include "backends/redis/rules/value.hpp"

namespace dlock::redis {
namespace {

/// A token in decimal, and a colon.
class TokenText {
 public:
  explicit TokenText(std::uint64_t token)
      : end_(std::to_chars(text_.data(), text_.data() + text_.size() - 1, token).ptr) {
    *end_ = ':';
  }
  TokenText(const TokenText&) = delete;
  TokenText& operator=(const TokenText&) = delete;

  std::string_view plain() const {
    return {text_.data(), static_cast<std::size_t>(end_ - text_.data())};
  }
  std::string_view with_colon() const { return {text_.data(), plain().size() + 1}; }

 private:
  std::array<char, 24> text_{};
  char* const end_;
};

// No client was granted the lock since the fence was raised for this process: a grant raises the
// fence further, in the same step. After the SET no grant is possible, because this claim holds the
// lock. Both are true if the answer is in time: a server does not restart and forget a fence that
// quickly.
bool is_proof(const KeyClaim& claim, const TokenRanges::Token& token, const Replies& values) {
  if (values.size() != 3) return false;
  const TokenText ours(token.token);
  const TokenText fence(token.fence);
  const std::string_view held = values[0].text;
  const bool stands =
      held.starts_with(ours.with_colon()) && held.substr(ours.with_colon().size()) == claim.owner;
  const bool nobody_since = values[1].text == fence.plain();
  const bool nobody_next = values[2].kind == Reply::Kind::nil;
  return stands && nobody_since && nobody_next;
}

ClaimAnswer failed_claim(ClaimStatus status, Failure failure) {
  ClaimAnswer answer;
  answer.status = status;
  answer.failure = std::move(failure);
  return answer;
}

}  // namespace

bool RedisBackend::may_use_tokens(const KeyClaim& claim) const noexcept {
  const auto& request = claim.request();
  const bool is_plain =
      request.mode == Mode::exclusive && request.permits == 0 && !request.adoption && !request.gate;
  return is_plain && !capabilities_.fair && !claim.maybe_queued;
}

std::optional<TokenRanges::Token> RedisBackend::next_token(const KeyClaim& claim) {
  if (claim.handed || !link_->up() || !may_use_tokens(claim)) return std::nullopt;
  return token_ranges_.take(link_->connection(), claim.keys.text, claim.min_token(), env_.now());
}

// After this call this claim may hold the lock with a token that other grants have passed. Until it
// is proven, a script must not accept a grant with a token that is not above it.
SetAndLook RedisBackend::ask_with(const TokenRanges::Token& token, KeyClaim& claim,
                                  Connection& connection) {
  const std::array<Word, 3> keys{claim.keys.lock(), claim.beside(kFenceKey),
                                 claim.beside(kNextKey)};
  const TokenText text(token.token);
  claim.unproven = token.token;
  return set_and_look(env_, connection, keys, {text.with_colon(), claim.owner},
                      claim.kept_for(lock_delay_));
}

// Its frame is small, for there is one for each lock that is under way: what needs room is done
// apart.
asio::awaitable<ClaimAnswer> RedisBackend::claim_with(TokenRanges::Token token, KeyClaimPtr claim,
                                                      TimePoint deadline) {
  const auto connection = link_->connection();
  const auto asked = ask_with(token, *claim, *connection);
  co_await asked.look.settled(deadline);
  Failure failure;
  switch (prove(token, *claim, asked, *connection, failure)) {
    case Proof::given:
      co_return granted_alone(claim, token.token, asked.since);
    case Proof::none:
      co_return co_await claim_by_script(std::move(claim), WithRange::no, deadline);
    case Proof::unknown:
      co_return failed_claim(ClaimStatus::unknown, std::move(failure));
    case Proof::not_asked:
      break;
  }
  co_return failed_claim(ClaimStatus::unavailable, std::move(failure));
}

RedisBackend::Proof RedisBackend::prove(const TokenRanges::Token& token, const KeyClaim& claim,
                                        const SetAndLook& asked, Connection& connection,
                                        Failure& failure) {
  using Kind = SetAndLook::Kind;
  auto answer = asked.answer(env_, connection);
  const auto now = env_.now();
  const bool late = now >= token.until;
  const bool alone = answer.kind == Kind::found && is_proof(claim, token, answer.values);
  if (alone && !late) return Proof::given;
  if (!alone) token_ranges_.met_others(claim.keys.text, now);
  if (answer.kind == Kind::found) return Proof::none;
  failure = std::move(answer.failure);
  return answer.kind == Kind::unknown ? Proof::unknown : Proof::not_asked;
}

ClaimAnswer RedisBackend::granted_alone(const KeyClaimPtr& claim, std::uint64_t token,
                                        TimePoint sent) {
  claim->unproven = 0;
  auto taken = granted(*claim, token, sent);
  listen_for_others(claim);
  return taken;
}

bool RedisBackend::take_range(KeyClaim& claim, const TokenRanges::Connection& on,
                              const ScriptAnswer& answer, TimePoint sent) {
  const bool brings = answer.code() == static_cast<int>(AcquireCode::granted_with_range) &&
                      answer.items.size() == 3;
  if (!brings) return true;
  const TokenRanges::Span span{read_token(answer.items[1].text), read_token(answer.items[2].text)};
  if (token_ranges_.put(on, claim.keys.text, span, sent, env_.now())) return true;
  claim.unproven = span.token;
  return false;
}

}  // namespace dlock::redis
