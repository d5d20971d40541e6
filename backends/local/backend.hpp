// SPDX-License-Identifier: Apache-2.0
//
// The embedded store: one file per lock, a queue of kernel locks on its bytes. README.md has the
// algorithm and what it promises.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/local/lock/claim.hpp"
#include "backends/local/lock/enqueue.hpp"
#include "backends/local/lock/local_queue.hpp"
#include "backends/local/lock/lock_contents.hpp"
#include "backends/local/wire/directory.hpp"
#include "backends/local/wire/helper.hpp"
#include "backends/local/wire/watcher.hpp"
#include "dlock/spi/backend.hpp"
#include "dlock/spi/env.hpp"
#include "dlock/spi/event_sink.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::local {

/// The longest interval between two checks of a waiter, in case a notification of the kernel is
/// lost.
inline constexpr auto kLookAnyway = std::chrono::milliseconds(250);

class LocalBackend final : public Backend, public MigrationStore, private Watcher::Listener {
 public:
  /// How waiters notice a change. `looks`: by checking periodically, if inotify has no instance
  /// left, or the executor cannot wait for descriptors.
  enum class WakeBy { inotify, looks };
  LocalBackend(const StoreOptions& options, Env& env, EventSink& sink,
               WakeBy wake_by = WakeBy::inotify);
  ~LocalBackend() override;

  asio::awaitable<Failure> connect(TimePoint deadline) override;
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
  Job leave_behind(ClaimPtr claim) override;
  asio::awaitable<void> close(TimePoint deadline) override;

 private:
  using LocalClaimPtr = std::shared_ptr<LocalClaim>;

  void on_file_closed(int watch) override;
  void on_file_written(int watch) override;
  void on_name_changed(std::string_view file) override;
  void on_directory_gone() override;
  void on_events_lost() override;
  void on_way_changed() override { look_at_path(); }

  // Entering the queue.
  bool takes_guard_at_once(LocalClaim& claim);
  /// True: the guard is taken. Else `answer` is set, or something has changed: begin again.
  asio::awaitable<bool> come_to_guard(LocalClaimPtr claim, TimePoint deadline,
                                      std::optional<ClaimAnswer>& answer);
  Entry enter_line(LocalClaim& claim);
  /// Empty: something has changed meanwhile, do it again.
  std::optional<ClaimAnswer> settle(const LocalClaimPtr& claim, Entry& entry);
  asio::awaitable<std::optional<ClaimAnswer>> settle_raised(LocalClaimPtr claim, Entry entry,
                                                            TimePoint deadline);
  asio::awaitable<Failure> open_directory_in_time(TimePoint deadline);
  asio::awaitable<Failure> find_directory(TimePoint deadline);
  asio::awaitable<Failure> settle_directory(TimePoint deadline);
  void adopt(const DirectoryPtr& directory);
  asio::awaitable<Failure> open_file(LocalClaimPtr claim, TimePoint deadline);
  asio::awaitable<SystemResult> take_guard(LockFile& file, TimePoint deadline);
  asio::awaitable<Failure> raise_limit(LocalClaimPtr claim, std::uint64_t raised,
                                       TimePoint deadline);
  Capabilities describe(const Directory& directory) const;
  void take_place(const LocalClaimPtr& claim, std::uint64_t ticket, LocalClaim::State state);

  // Migration.
  using Step = std::function<RecordAnswer(const GuardedFile&)>;
  using NoteStep = std::function<RecordAnswer(const Directory&)>;
  /// `if_missing`: of a lock that has no file.
  asio::awaitable<RecordAnswer> under_guard(std::string name, Step step, RecordAnswer if_missing,
                                            TimePoint deadline);
  asio::awaitable<RecordAnswer> under_guard_once(const std::string& name, const Step& step,
                                                 const RecordAnswer& if_missing,
                                                 TimePoint deadline);
  asio::awaitable<RecordAnswer> with_notes(NoteStep step, TimePoint deadline);

  // Permits.
  asio::awaitable<ClaimAnswer> claim_permits(LocalClaimPtr claim, TimePoint deadline);
  /// Empty: something has changed meanwhile, do it again.
  asio::awaitable<std::optional<ClaimAnswer>> take_permits(LocalClaimPtr claim, TimePoint deadline);
  std::optional<ClaimAnswer> check_limit(LocalClaim& claim);
  std::optional<ClaimAnswer> fill_slots(const LocalClaimPtr& claim, std::uint32_t limit);
  asio::awaitable<Failure> write_limit(std::string name, std::uint32_t limit, bool if_absent,
                                       TimePoint deadline);
  asio::awaitable<void> wait_for_permits(LocalClaimPtr claim, TimePoint deadline);
  void drop_permits(LocalClaim& claim);

  // In the queue.
  ClaimAnswer look_at_contents(LocalClaim& claim, bool others_before);
  bool finds_record(LocalClaim& claim) const;
  asio::awaitable<void> wait_behind_record(LocalClaimPtr claim, TimePoint deadline);
  ClaimAnswer look(LocalClaim& claim);
  bool has_others_before(LocalClaim& claim) const;
  bool start_watching(const LocalClaimPtr& claim);
  static bool must_wake_others(const LocalClaim& claim);
  void drop(LocalClaim& claim);
  void leave_queue(LocalClaim& claim);
  void retire_if_empty(LocalQueue& queue);
  void check_file(const std::shared_ptr<LocalQueue>& queue);
  void lose(const LocalClaimPtr& claim);
  // The path: whether it still leads to the directory that we have.
  void look_at_path();
  void look_at_path_later();
  void leave_directory(const std::string& why);

  ClaimAnswer grant(const LocalClaim& claim);
  ClaimAnswer waiting(const LocalClaim& claim) const;
  void hear_asking(const std::string& lock_file);
  std::string text_of_asking(const std::string& file);
  /// A lock whose holder is observed.
  struct Observed {
    std::string file;
    int watch = -1;  ///< watch of the file; -1: the file does not exist, or without inotify
    TimerId again = 0;
  };
  void set_observing(Observed& observed);
  void set_all_observing();
  void tell_observers(const std::string& name, Observed& observed);
  bool is_observed(int watch) const noexcept;
  void end_watch(int watch) noexcept;
  void listen_for_others(LocalQueue& queue);
  static bool has_others_behind(const LocalClaim& claim);
  void remember(const LocalClaim& claim);
  std::uint64_t known_token(const std::string& file) const;

  Env& env_;
  EventSink& sink_;
  const std::string path_;
  const bool trust_file_system_;
  const std::optional<mode_t> file_mode_;  ///< option `mode`
  const WakeBy wake_by_;
  Capabilities capabilities_;
  bool was_open_ = false;   ///< a directory was there once
  DirectoryPtr directory_;  ///< null: not connected, or gone
  DirectoryPtr found_;      ///< the directory that the path leads to; no lock is granted in it yet
  TimePoint settles_at_{};
  TimerId path_timer_ = 0;
  LocalQueues queues_;
  std::unordered_map<std::string, Observed> observed_;  ///< by the locks' names
  Helper helper_;
  Watcher watcher_;
  /// Tokens this process has seen, to notice a counter that decreases.
  std::unordered_map<std::string, std::uint64_t> tokens_;
  bool request_told_ = false;  ///< a request to release a lock cannot be read
  bool closed_ = false;
};

}  // namespace dlock::local
