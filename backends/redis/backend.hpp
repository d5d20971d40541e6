// SPDX-License-Identifier: Apache-2.0
//
// The Redis backend: one string key per lock, scripts that decide atomically, one connection for
// all locks and one to be woken on. README.md says what it does and why.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/redis/lock/claim.hpp"
#include "backends/redis/rules/guarantee.hpp"
#include "backends/redis/rules/names.hpp"
#include "backends/redis/rules/server_clock.hpp"
#include "backends/redis/rules/token_ranges.hpp"
#include "backends/redis/rules/waiting.hpp"
#include "backends/redis/wire/calls.hpp"
#include "backends/redis/wire/link.hpp"
#include "backends/redis/wire/presence.hpp"
#include "backends/redis/wire/set_and_look.hpp"
#include "backends/redis/wire/subscriber.hpp"
#include "dlock/spi/backend.hpp"
#include "dlock/spi/event_sink.hpp"
#include "dlock/spi/options.hpp"
#include "dlock/spi/self_test/gate.hpp"

namespace dlock::redis {

/// Locks that are asked about at once.
inline constexpr std::size_t kNamesAtOnce = 256;

class RedisBackend final : public Backend, public MigrationStore, private Link::Listener {
 public:
  RedisBackend(const StoreOptions& options, DialSettings settings, Env& env, EventSink& sink);
  ~RedisBackend() override;

  asio::awaitable<Failure> connect(TimePoint deadline) override;
  Failure link_failure() const override { return link_->last_failure(); }
  std::string pending_attempt() const override { return link_->pending_attempt(); }
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  asio::awaitable<std::vector<SelfTestReport>> self_test(TimePoint deadline) override;
  ClaimPtr make_claim(ClaimRequest request) override;
  asio::awaitable<ClaimAnswer> claim(ClaimPtr claim, TimePoint deadline) override;
  asio::awaitable<void> wait(ClaimPtr claim, TimePoint deadline) override;
  void interrupt(Claim& claim) noexcept override;
  asio::awaitable<std::vector<ExtendAnswer>> extend(std::vector<ClaimPtr> claims,
                                                    TimePoint deadline) override;
  asio::awaitable<ReleaseAnswer> release(ClaimPtr claim, bool search, TimePoint deadline) override;
  asio::awaitable<DowngradeAnswer> downgrade(ClaimPtr held, TimePoint deadline) override;
  asio::awaitable<Result<LockStatus>> inspect(std::string name, TimePoint deadline) override;
  asio::awaitable<Result<std::vector<LockStatus>>> list(std::string prefix,
                                                        TimePoint deadline) override;
  asio::awaitable<EvictAnswer> evict(EvictRequest request, TimePoint deadline) override;
  asio::awaitable<AskAnswer> ask(std::string name, std::uint64_t token, Revocation how,
                                 TimePoint deadline) override;
  asio::awaitable<Failure> offer(ClaimPtr held, std::string proof, std::chrono::milliseconds within,
                                 TimePoint deadline) override;
  asio::awaitable<Result<SemaphoreStatus>> inspect_semaphore(std::string name,
                                                             TimePoint deadline) override;
  asio::awaitable<Failure> set_limit(std::string name, std::uint32_t limit,
                                     TimePoint deadline) override;
  asio::awaitable<Result<std::vector<SemaphoreStatus>>> list_semaphores(
      std::string prefix, TimePoint deadline) override;
  asio::awaitable<EvictAnswer> evict_permits(EvictRequest request, TimePoint deadline) override;
  bool watch_holder(const std::string& name) override;
  void unwatch_holder(const std::string& name) noexcept override;
  void tell_holder_changed(const std::string& name) override;
  asio::awaitable<RecordAnswer> record(std::string name, TimePoint deadline) override;
  asio::awaitable<RecordAnswer> seal(ClaimPtr held, std::string record,
                                     TimePoint deadline) override;
  asio::awaitable<RecordAnswer> raise(ClaimPtr held, std::uint64_t min_token,
                                      TimePoint deadline) override;
  asio::awaitable<RecordAnswer> note(std::string key, TimePoint deadline) override;
  asio::awaitable<RecordAnswer> set_note(std::string key, std::optional<std::string> from,
                                         std::optional<std::string> to,
                                         TimePoint deadline) override;
  asio::awaitable<Result<std::chrono::milliseconds>> time(TimePoint deadline) override;
  asio::awaitable<RecordAnswer> set_record_under(GatePtr gate, std::string name, std::string from,
                                                 std::optional<std::string> to,
                                                 std::uint64_t min_token,
                                                 TimePoint deadline) override;
  asio::awaitable<Result<std::vector<std::string>>> claimed_names(std::string prefix,
                                                                  TimePoint deadline) override;
  asio::awaitable<Result<std::uint64_t>> highest_token(TimePoint deadline) override;
  MigrationStore& migration() noexcept override { return *this; }
  asio::awaitable<void> look_again(TimePoint deadline) override {
    return link_->inspect_again(deadline);
  }
  asio::awaitable<void> close(TimePoint deadline) override;

 private:
  void on_inspected(const ServerFacts& facts, ServerChange change) override;
  void on_up() override;
  void on_down(const Failure& why) override;
  void on_old_connection_kept() override;
  void on_login_refused(const Failure& why) override;

  Declaration declaration() const;
  std::shared_ptr<Subscriber> make_subscriber();
  void on_message(std::string_view text);
  void wake_all();

  ClaimAnswer take_handed(KeyClaim& claim);
  /// Returns whether the claim may use a token of a range that this process already owns.
  bool may_use_tokens(const KeyClaim& claim) const noexcept;
  std::optional<TokenRanges::Token> next_token(const KeyClaim& claim);
  asio::awaitable<ClaimAnswer> claim_with(TokenRanges::Token token, KeyClaimPtr claim,
                                          TimePoint deadline);
  SetAndLook ask_with(const TokenRanges::Token& token, KeyClaim& claim, Connection& connection);
  enum class Proof : std::uint8_t { given, none, unknown, not_asked };
  /// Returns whether the answer proves that this claim holds the lock with the token and that no
  /// other client was granted it since the range. `none`: a script has to decide.
  Proof prove(const TokenRanges::Token& token, const KeyClaim& claim, const SetAndLook& asked,
              Connection& connection, Failure& failure);
  ClaimAnswer granted_alone(const KeyClaimPtr& claim, std::uint64_t token, TimePoint sent);
  enum class WithRange : std::uint8_t { no, if_wanted };
  asio::awaitable<ClaimAnswer> claim_by_script(KeyClaimPtr ours, WithRange range,
                                               TimePoint deadline);
  struct SelfTestSent {
    SelfTest test;
    bool has_unknown_hash = false;
  };
  asio::awaitable<SelfTestSent> send_self_test_by(ScriptBy by,
                                                  std::shared_ptr<Connection> connection,
                                                  TimePoint deadline);
  asio::awaitable<SelfTest> send_self_test(std::shared_ptr<Connection> connection,
                                           TimePoint deadline);
  /// The server has not passed the self-test yet.
  asio::awaitable<ClaimAnswer> claim_after_self_test(KeyClaimPtr ours, WithRange range,
                                                     TimePoint deadline);
  /// Stores the range, if the answer has one. Returns false if the answer arrived too late: the
  /// caller must ask again.
  bool take_range(KeyClaim& claim, const TokenRanges::Connection& on, const ScriptAnswer& answer,
                  TimePoint sent);
  ClaimAnswer granted(KeyClaim& claim, std::uint64_t token, TimePoint sent) const;
  Asked ask_to_release(const KeyClaim& claim, bool search, Connection& connection);
  asio::awaitable<ReleaseAnswer> release_by_text(KeyClaimPtr claim, bool search,
                                                 std::shared_ptr<Connection> connection,
                                                 TimePoint deadline, bool before);
  std::optional<ReleaseAnswer> take_released(KeyClaim& claim, const Asked& asked, bool search,
                                             const std::shared_ptr<Connection>& connection,
                                             bool before);
  ReleaseAnswer take_released(KeyClaim& claim, const ScriptAnswer& answer,
                              const TokenRanges::Connection& connection, bool before);
  ClaimAnswer take_acquired(KeyClaim& claim, const ScriptAnswer& answer, TimePoint sent);
  /// Returns whether the server executed the request after its deadline, and the claim has to ask
  /// once more. Then nothing was changed, and the
  /// next request has a deadline by the server's clock of now.
  bool was_late(KeyClaim& claim, const ScriptAnswer& answer, TimePoint sent);
  asio::awaitable<ClaimAnswer> adopt(KeyClaimPtr claim, TimePoint deadline);
  asio::awaitable<ClaimAnswer> claim_permits(KeyClaimPtr claim, TimePoint deadline);
  ClaimAnswer take_permits(KeyClaim& claim, const ScriptAnswer& answer, TimePoint sent);
  std::string holder_channel(const std::string& name) const;
  asio::awaitable<std::vector<ExtendAnswer>> extend_with(const Script& script,
                                                         std::vector<ClaimPtr> claims,
                                                         TimePoint deadline);
  /// Renews claims of all kinds.
  asio::awaitable<std::vector<ExtendAnswer>> extend_mixed(std::vector<ClaimPtr> claims,
                                                          TimePoint deadline);
  static EvictAnswer take_evicted(const std::string& name, const ScriptAnswer& answer);
  ExtendAnswer take_renewed(KeyClaim& claim, const ScriptAnswer& answer, TimePoint sent);
  Validity validity(const Claim& claim, TimePoint sent) const;
  void tell_of_queue(const KeyClaim& claim, const std::string& why);

  void listen_for_others(const KeyClaimPtr& claim);
  void stop_listening(const KeyClaim& claim) noexcept;
  static asio::awaitable<void> look_for_others(std::weak_ptr<bool> alive, RedisBackend* self,
                                               KeyClaimPtr claim);
  void look_for_others_of_all();
  void hear(const std::string& owner_id);
  void hear_of_break(const std::string& owner_id);
  static asio::awaitable<void> look_for_break(std::weak_ptr<bool> alive, RedisBackend* self,
                                              KeyClaimPtr claim);
  void listen_for_askings(const KeyClaimPtr& claim);
  void tell_of_request(const Failure& why);
  static asio::awaitable<void> look_for_asking(std::weak_ptr<bool> alive, RedisBackend* self,
                                               KeyClaimPtr claim);
  asio::awaitable<std::optional<std::size_t>> waiting_before(KeyClaimPtr claim, TimePoint deadline);

  enum class Access { reads, writes };
  asio::awaitable<RecordAnswer> run_record(const Script& script, ScriptCall call, Access access,
                                           TimePoint deadline);

  asio::awaitable<Result<std::vector<std::string>>> scan_keys(std::string pattern,
                                                              TimePoint deadline);
  asio::awaitable<Result<std::vector<std::string>>> scan(std::string prefix, std::string suffix,
                                                         TimePoint deadline);
  asio::awaitable<Failure> describe(std::vector<std::string> names,
                                    std::shared_ptr<std::vector<LockStatus>> into,
                                    TimePoint deadline);

  Env& env_;
  EventSink& sink_;
  const std::shared_ptr<const DialSettings> settings_;
  const KeyMap names_;
  const std::chrono::milliseconds lease_;
  const std::chrono::milliseconds poll_;
  const WaitingTexts waiting_texts_;
  const std::string waking_;  ///< The argument of scripts that notify a waiter.
  const std::chrono::milliseconds lock_delay_;
  const bool fair_;
  const bool fsync_declared_;
  const std::string instance_;  ///< names our subscription

  std::shared_ptr<Link> link_;
  std::shared_ptr<Subscriber> subscriber_;
  std::shared_ptr<Presence> presence_;
  const bool handed_over_;  ///< releases may grant locks to waiters of this process
  ServerFacts facts_;
  bool wake_up_denied_ = false;
  bool refusal_told_ = false;  ///< the refusal of the subscription was reported
  bool queue_told_ = false;    ///< an unusable queue was reported
  bool request_told_ = false;  ///< an unreadable request to release a lock was reported
  Capabilities capabilities_;  ///< derived from the members above, so it is declared after them
  bool announced_ = false;     ///< the core knows that we are connected
  bool closed_ = false;
  int waiting_ = 0;
  SelfTestGate self_test_;
  std::string tested_run_;   ///< The run id of the server that was tested last.
  std::uint64_t epoch_ = 0;  ///< number of servers that were found behind the address so far
  LossReason last_change_ = LossReason::removed;
  ServerClock server_clock_;
  TokenRanges token_ranges_;
  std::shared_ptr<ClaimRegistry> claims_ = std::make_shared<ClaimRegistry>();
  /// Held locks whose holders listen for other requests, by the owner's id.
  std::unordered_map<std::string, std::weak_ptr<KeyClaim>> listening_;
  /// Observed locks, by the message that reports a change of the holder.
  std::unordered_map<std::string, std::string> observed_;
  /// Coroutines that outlive this object check it.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace dlock::redis
