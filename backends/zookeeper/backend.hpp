// SPDX-License-Identifier: Apache-2.0
//
// The ZooKeeper backend: Curator's lock recipe in the fewest round trips, on one session. README.md
// says what it does and why; the decisions are in queue.hpp, deadline.hpp and session_timeout.hpp.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/zookeeper/lock/claim.hpp"
#include "backends/zookeeper/lock/listings.hpp"
#include "backends/zookeeper/lock/token_offset.hpp"
#include "backends/zookeeper/lock/unresolved_creates.hpp"
#include "backends/zookeeper/rules/known_gates.hpp"
#include "backends/zookeeper/rules/known_seals.hpp"
#include "backends/zookeeper/rules/names.hpp"
#include "backends/zookeeper/rules/queue.hpp"
#include "backends/zookeeper/rules/undisturbed.hpp"
#include "backends/zookeeper/wire/gate.hpp"
#include "backends/zookeeper/wire/session.hpp"
#include "dlock/spi/backend.hpp"
#include "dlock/spi/event_sink.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::zookeeper {

/// Listings that are on their way at once.
inline constexpr std::size_t kListingsAtOnce = 128;

class ZooKeeperBackend final : public Backend, public MigrationStore {
 public:
  /// `library` outlives the backend.
  ZooKeeperBackend(const StoreOptions& options, Env& env, EventSink& sink, Library& library);
  ~ZooKeeperBackend() override;

  asio::awaitable<Failure> connect(TimePoint deadline) override;
  Failure link_failure() const override { return session_->link_failure(); }
  std::string pending_attempt() const override { return session_->pending_attempt(); }
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
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
  asio::awaitable<Result<SemaphoreStatus>> inspect_semaphore(std::string name,
                                                             TimePoint deadline) override;
  asio::awaitable<Failure> set_limit(std::string name, std::uint32_t limit,
                                     TimePoint deadline) override;
  asio::awaitable<Result<std::vector<SemaphoreStatus>>> list_semaphores(
      std::string prefix, TimePoint deadline) override;
  asio::awaitable<EvictAnswer> evict_permits(EvictRequest request, TimePoint deadline) override;
  bool watch_holder(const std::string& name) override;
  void unwatch_holder(const std::string& name) noexcept override;
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
  Job leave_behind(ClaimPtr claim) override;
  asio::awaitable<void> close(TimePoint deadline) override;

 private:
  using Answer = std::optional<ClaimAnswer>;  ///< empty: check the claim's state again

  // connect
  asio::awaitable<Failure> check_timeout(TimePoint deadline);
  bool may_raise() const;
  asio::awaitable<Failure> raise_timeout(TimePoint deadline);
  asio::awaitable<Failure> make_root(TimePoint deadline);
  void declare(std::string server_words);
  void on_link_down();
  void on_session_over();
  void on_new_session();

  // claim
  void forget_old_session(NodeClaim& claim);
  /// Connected, and the claim's node belongs to this session.
  bool usable(const NodeClaim& claim) const;
  /// The next thing to do on the way to the lock.
  asio::awaitable<Answer> go_on(NodeClaimPtr claim, TimePoint deadline);
  asio::awaitable<bool> let_in(NodeClaimPtr claim, Gate::Pass& pass, Duration patience);
  asio::awaitable<Answer> enter(NodeClaimPtr claim, TimePoint deadline);
  asio::awaitable<Answer> find_own(NodeClaimPtr claim, TimePoint deadline);
  asio::awaitable<Answer> look(NodeClaimPtr claim, TimePoint deadline);
  asio::awaitable<Answer> judge(NodeClaimPtr claim, std::shared_ptr<const Queue> line,
                                TimePoint deadline);
  /// `birth`: of the node to be watched, where it had to be asked for; else 0.
  asio::awaitable<Answer> stand_behind(NodeClaimPtr claim, QueueDecision decision,
                                       std::int64_t birth, TimePoint deadline);
  void ask_ahead(const NodeClaimPtr& claim, const std::string& seal);
  void watch_before(const NodeClaimPtr& claim, const std::string& path, bool decides);
  asio::awaitable<Answer> stand_behind_seal(NodeClaimPtr claim, std::string seal,
                                            TimePoint deadline);
  /// Returns whether enough of the session is left for a grant.
  bool has_patience() const noexcept;
  asio::awaitable<Answer> take(NodeClaimPtr claim, TimePoint deadline);
  /// Gives up a node that an operator has marked before it was handed out. ZOK: it has no mark.
  asio::awaitable<int> check_own_mark(NodeClaimPtr claim, TimePoint deadline);
  asio::awaitable<Answer> give_up_place(NodeClaimPtr claim, ClaimAnswer answer, TimePoint deadline);
  void share_own_watch(const NodeClaimPtr& claim);
  void watch_own_node(const NodeClaimPtr& claim);
  void watch_own_node_later(NodeClaim& claim);
  void arm_own_watches(TimePoint when);
  void watch_own_nodes();
  void be_sure_of_own_watch(const NodeClaimPtr& claim);
  void listen_for_others(const NodeClaimPtr& claim);
  static asio::awaitable<void> hear_others(std::weak_ptr<bool> alive, ZooKeeperBackend* self,
                                           NodeClaimPtr claim, PendingReply asked);
  void listen_for_askings(const NodeClaimPtr& claim);
  void look_at_own_data(const NodeClaimPtr& claim);
  static asio::awaitable<void> read_own_data(std::weak_ptr<bool> alive, ZooKeeperBackend* self,
                                             NodeClaimPtr claim, PendingReply asked);
  /// Returns whether the data has an operator's mark.
  bool hear_of_break(const NodeClaimPtr& claim, std::string_view data);
  void on_children(const std::string& directory);
  void stop_listening();
  // An observed lock. Watches its first node, or its directory while it has no node.
  struct Observed {
    std::unique_ptr<Session::Watch> watch;
    std::string watched;  ///< the node that `watch` is of
    bool by_children = false;
    bool looking = false;  ///< a request for the node to watch is under way
    bool again = false;
  };
  using ObservedPtr = std::shared_ptr<Observed>;
  void look_for_first(const std::string& name, const ObservedPtr& observed);
  static asio::awaitable<void> find_first(std::weak_ptr<bool> alive, ZooKeeperBackend* self,
                                          std::string name, ObservedPtr observed);
  asio::awaitable<bool> watch_first(std::weak_ptr<bool> alive, std::string name,
                                    ObservedPtr observed);
  PendingReply watch_node(const std::string& name, const ObservedPtr& observed,
                          const std::string& path, bool also_absent);
  void on_watched(const std::string& name, WatchEvent event);
  void tell_next(const NodeClaim& granted);
  void on_own_node(const NodeClaimPtr& claim, WatchEvent event);
  void remove_strays(const NodeClaim& claim, const Queue& line);

  Failure unreached() const;

  // permits
  asio::awaitable<ClaimAnswer> claim_permits(NodeClaimPtr claim, TimePoint deadline);
  asio::awaitable<Answer> check_limit(NodeClaimPtr claim, TimePoint deadline);
  asio::awaitable<Answer> count_permits(NodeClaimPtr claim, TimePoint deadline);
  asio::awaitable<Answer> agree_on_limit(NodeClaimPtr claim, Reply found, std::uint32_t& limit,
                                         TimePoint deadline);
  asio::awaitable<Answer> make_leases(NodeClaimPtr claim, std::size_t count, TimePoint deadline);
  asio::awaitable<Answer> find_leases(NodeClaimPtr claim, TimePoint deadline);
  asio::awaitable<Answer> identify(NodeClaimPtr claim, std::vector<std::string> nodes,
                                   TimePoint deadline);
  asio::awaitable<Answer> take_permits(NodeClaimPtr claim, std::vector<std::string> nodes,
                                       std::int64_t czxid, TimePoint deadline);
  asio::awaitable<Answer> leave_line(NodeClaimPtr claim, ClaimAnswer answer, TimePoint deadline);
  void stop_counting(NodeClaim& claim) noexcept;
  asio::awaitable<ReleaseAnswer> release_permits(NodeClaimPtr claim, bool search,
                                                 TimePoint deadline);
  /// ZOK: one of them was there and is gone; ZNONODE: none was.
  asio::awaitable<int> remove_leases(NodeClaimPtr claim, bool search, TimePoint deadline);
  struct LeasesFound {
    int rc = ZCONNECTIONLOSS;
    std::vector<std::string> nodes;  ///< nodes of the holder with that token, its first one last
    bool any = false;                ///< any client holds permits
  };
  asio::awaitable<LeasesFound> leases_with(std::uint64_t token, std::string directory,
                                           TimePoint deadline);
  /// These set `refused` where a node's data cannot be read.
  asio::awaitable<int> describe_leases(std::string directory, SemaphoreStatus& status,
                                       Failure& refused, TimePoint deadline);
  asio::awaitable<int> describe_line(std::string directory, SemaphoreStatus& status,
                                     Failure& refused, TimePoint deadline);

  // downgrade
  bool is_ours(const NodeClaim& claim) const;
  asio::awaitable<std::optional<DowngradeAnswer>> step_down(NodeClaimPtr claim, bool& sent,
                                                            TimePoint deadline);
  /// Finds out whether the node was replaced by its heir. Empty: unknown.
  asio::awaitable<std::optional<DowngradeStatus>> find_heir(NodeClaimPtr claim, TimePoint deadline);
  void become_heir(const NodeClaimPtr& claim);

  // release
  void tell_refused(NodeClaim& claim, const Failure& why);
  asio::awaitable<int> remove_own(NodeClaimPtr claim, TimePoint deadline);
  asio::awaitable<int> remove_copies(NodeClaimPtr claim, TimePoint deadline);

  // migration
  struct Text {
    int rc = ZCONNECTIONLOSS;
    std::string node;  ///< empty: there is none
    std::string text;
    std::int32_t version = 0;
  };
  asio::awaitable<Text> find_seal(std::string directory, TimePoint deadline);
  asio::awaitable<Text> read_text(std::string node, std::optional<PendingReply> pending,
                                  TimePoint deadline);
  asio::awaitable<int> raise_for(std::string node, std::uint64_t min_token, TimePoint deadline);
  asio::awaitable<int> write_note(std::string path, Text found, std::string text,
                                  TimePoint deadline);

  // gate
  /// Empty `check`: the gate has `text` instead, or `rc` is not ZOK.
  struct GateLook {
    int rc = ZCONNECTIONLOSS;
    std::optional<Client::Check> check;
    std::string text;
  };
  asio::awaitable<GateLook> look_at_gate(GatePtr gate, TimePoint deadline);
  asio::awaitable<int> make_gate(std::string key, TimePoint deadline);
  asio::awaitable<Answer> turned_away(NodeClaimPtr claim, std::string gate, TimePoint deadline);

  // inspect
  /// `settled`: whatever this session sent before is in it, or never will be; costs a write.
  asio::awaitable<Reply> fresh_children(std::string path, bool settled, TimePoint deadline);
  /// Returns the births of those of `nodes` that exist. Neither value nor failure: the connection
  /// was lost.
  asio::awaitable<Result<Births>> births_of(std::string path, std::vector<std::string> nodes,
                                            TimePoint deadline);
  struct Holder {
    int rc = ZCONNECTIONLOSS;
    std::string node;           ///< empty: none has that token
    std::uint64_t present = 0;  ///< the first one's token
    Failure refused{};          ///< a node's data cannot be read
  };
  asio::awaitable<Holder> holder_with(std::uint64_t token, std::string path,
                                      std::vector<Contender> line, TimePoint deadline);
  /// Asks the holder of that node. Empty: list the queue again.
  asio::awaitable<std::optional<AskAnswer>> ask_node(std::string path, Contender holder,
                                                     Revocation how, TimePoint deadline);
  struct Found {
    int rc = ZCONNECTIONLOSS;
    std::vector<std::pair<std::string, std::vector<std::string>>> locks;  ///< with their nodes
    std::vector<std::string> semaphores;
    Failure left_out{};  ///< the first node that could not be listed
  };
  /// Outcome of mark_node().
  enum class Marking { done, again };
  /// Marks the node, or answers the time until a marked node may be deleted.
  asio::awaitable<Marking> mark_node(std::string node, Break mark, EvictAnswer& answer,
                                     TimePoint deadline);
  void forget_marks(const std::string& directory);
  /// Everything below it.
  asio::awaitable<Found> walk(std::string prefix, TimePoint deadline);
  asio::awaitable<Result<LockStatus>> describe(std::string name, std::vector<std::string> children,
                                               TimePoint deadline);

  Env& env_;
  EventSink& sink_;
  Library& library_;
  const StoreOptions options_;
  std::chrono::milliseconds asked_;                 ///< the requested session timeout
  std::optional<std::chrono::milliseconds> least_;  ///< the shortest sufficient timeout, if the
                                                    ///< requested one is too short
  const Contender::Kind exclusive_kind_;            ///< kind of an exclusive claim's node
  const NameMap names_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<UnresolvedCreates> unresolved_creates_;
  std::shared_ptr<Listings> listings_;
  Gate claiming_;
  Gate releasing_;
  TokenOffset token_offset_;
  KnownSeals seals_;
  Undisturbed undisturbed_;
  KnownGates gates_;
  Capabilities capabilities_;
  TimerId own_watches_ = 0;
  /// Held locks whose holders listen for other requests, by their directories.
  std::unordered_map<std::string, std::weak_ptr<NodeClaim>> listening_;
  /// The first waiters for permits, which watch the leases, by the directories of the leases.
  std::unordered_map<std::string, std::weak_ptr<NodeClaim>> counting_;
  std::unordered_map<std::string, ObservedPtr> observed_;  ///< by the locks' names
  /// When each marked node may be deleted: one session timeout after this process saw the mark. By
  /// `PATH@CZXID`.
  std::unordered_map<std::string, TimePoint> marked_;
  bool closed_ = false;
  bool keeps_session_ = false;  ///< close() leaves the session to its timeout
  /// Callbacks that outlive this object check it.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::shared_ptr<ClaimRegistry> claims_ = std::make_shared<ClaimRegistry>();
};

}  // namespace dlock::zookeeper
