// SPDX-License-Identifier: Apache-2.0
//
// Taking a lock that nobody else wants with a token that is ours already: what shows that it may be
// believed.
#include <array>
#include <charconv>

#include "backends/redis/backend.hpp"
#include "backends/redis/rules/value.hpp"
#include "backends/redis/wire/set_and_look.hpp"

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

// Nobody was granted the lock since the fence was raised for us: that would have raised it further,
// in the same step. Nobody can be from the SET on, for the lock is ours. That is as long as the
// answer is not late: no fence that was lost and came back, with all that happened meanwhile
// forgotten, is that quick.
bool is_proof(const KeyClaim& claim, const TokenRanges::Token& token,
              const std::vector<Reply>& values) {
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

// Whatever has come of it, the lock may be ours from here on with a token that others may have
// overtaken: until it is proven, a script is to believe no grant of ours that is not above it.
asio::awaitable<ClaimAnswer> RedisBackend::claim_with(TokenRanges::Token token, KeyClaimPtr claim,
                                                      TimePoint deadline) {
  using Kind = SetAndLook::Kind;
  const std::array<Word, 3> keys{claim->keys.lock(), claim->beside(kFenceKey),
                                 claim->beside(kNextKey)};
  const TokenText text(token.token);
  const auto connection = link_->connection();
  const auto sent = env_.now();
  claim->unproven = token.token;
  const auto asked = set_and_look(env_, *connection, keys, {text.with_colon(), claim->owner},
                                  claim->kept_for(lock_delay_));
  co_await asked.look.settled(deadline);
  const auto answer = asked.answer(env_, *connection);
  const auto now = env_.now();
  const bool late = now >= token.until;
  const bool alone = answer.kind == Kind::found && is_proof(*claim, token, answer.values);
  if (alone && !late) {
    claim->unproven = 0;
    auto taken = granted(*claim, token.token, sent);
    listen_for_others(claim);
    co_return taken;
  }
  if (!alone) token_ranges_.met_others(claim->keys.text, now);
  if (answer.kind == Kind::found) {
    co_return co_await claim_by_script(std::move(claim), WithRange::no, deadline);
  }
  ClaimAnswer failed;
  failed.status = answer.kind == Kind::unknown ? ClaimStatus::unknown : ClaimStatus::unavailable;
  failed.failure = answer.failure;
  co_return failed;
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
