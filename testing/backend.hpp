// SPDX-License-Identifier: Apache-2.0
//
// The store of a test, as managers see it: the SPI over the memory store's, with a lease, and with
// what the test has commanded (server.hpp).
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "dlock/spi/descriptor.hpp"
#include "dlock/spi/signal.hpp"
#include "testing/server.hpp"

namespace dlock::testing {

class FaultyBackend final : public Backend, private EventSink, private Server::Listener {
 public:
  /// Throws LockError{config_invalid}: there is no such store any more.
  FaultyBackend(const StoreOptions& options, Env& env, EventSink& sink);
  ~FaultyBackend() override;

  asio::awaitable<Failure> connect(TimePoint deadline) override;
  Failure link_failure() const override { return server_->link_failure(); }
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  ClaimPtr make_claim(ClaimRequest request) override;
  asio::awaitable<ClaimAnswer> claim(ClaimPtr claim, TimePoint deadline) override;
  asio::awaitable<void> wait(ClaimPtr claim, TimePoint deadline) override;
  void interrupt(Claim& claim) noexcept override { inner_->interrupt(claim); }
  asio::awaitable<std::vector<ExtendAnswer>> extend(std::vector<ClaimPtr> claims,
                                                    TimePoint deadline) override;
  asio::awaitable<ReleaseAnswer> release(ClaimPtr claim, bool search, TimePoint deadline) override;
  asio::awaitable<Result<LockStatus>> inspect(std::string name, TimePoint deadline) override;
  asio::awaitable<Result<std::vector<LockStatus>>> list(std::string prefix,
                                                        TimePoint deadline) override;
  asio::awaitable<EvictAnswer> evict(EvictRequest request, TimePoint deadline) override;
  asio::awaitable<DowngradeAnswer> downgrade(ClaimPtr held, TimePoint deadline) override;
  asio::awaitable<AskAnswer> ask(std::string name, std::uint64_t token, Revocation how,
                                 TimePoint deadline) override;
  asio::awaitable<Result<SemaphoreStatus>> inspect_semaphore(std::string name,
                                                             TimePoint deadline) override;
  asio::awaitable<Result<std::vector<SemaphoreStatus>>> list_semaphores(
      std::string prefix, TimePoint deadline) override;
  asio::awaitable<Failure> set_limit(std::string name, std::uint32_t limit,
                                     TimePoint deadline) override;
  asio::awaitable<EvictAnswer> evict_permits(EvictRequest request, TimePoint deadline) override;
  bool watch_holder(const std::string& name) override { return inner_->watch_holder(name); }
  void unwatch_holder(const std::string& name) noexcept override { inner_->unwatch_holder(name); }
  asio::awaitable<void> close(TimePoint deadline) override;

 private:
  /// How news from other threads find their way to the loop, as long as the backend lives.
  struct Mailbox {
    FaultyBackend* backend;
  };

  // The memory store's news.
  void on_link_up() override { sink_.on_link_up(); }
  void on_link_down(const Failure& why) override { sink_.on_link_down(why); }
  void on_session_gone(LossReason why) override { sink_.on_session_gone(why); }
  void on_claim_gone(const ClaimPtr& claim, LossReason why) override;
  void on_claim_broken(const ClaimPtr& claim, const std::string& by) override;
  void on_asked(const ClaimPtr& claim, const Revocation& how) override;
  void on_holder_changed(const std::string& name) override;
  void on_capabilities_changed() override { sink_.on_capabilities_changed(); }
  void on_warning(std::string_view text) override { sink_.on_warning(text); }

  void on_change() override;
  void look_at_the_link();
  void tell_of_the_end(const ClaimPtr& claim, LossReason why);
  asio::awaitable<void> next_news(TimePoint deadline);
  asio::awaitable<bool> answered(TimePoint deadline);
  asio::awaitable<void> drop_overdue(Thing what, TimePoint deadline);
  /// From the memory store.
  asio::awaitable<EvictAnswer> take_away(Thing what, EvictRequest request, TimePoint deadline);
  asio::awaitable<EvictAnswer> evict_thing(Thing what, EvictRequest request, TimePoint deadline);
  asio::awaitable<ClaimAnswer> carry_out(ClaimPtr claim, TimePoint deadline);
  asio::awaitable<ReleaseAnswer> carry_out_release(ClaimPtr claim, bool search, TimePoint deadline);

  const std::shared_ptr<Server> server_;
  Env& env_;
  EventSink& sink_;
  const std::shared_ptr<Mailbox> mailbox_;
  const std::unique_ptr<Backend> inner_;
  Capabilities capabilities_;
  std::list<Signal*> news_;                               ///< of calls that wait for a change
  std::vector<ClaimPtr> missed_;                          ///< their ends, while the link was down
  std::vector<std::pair<ClaimPtr, Revocation>> unheard_;  ///< likewise
  bool is_link_down_ = false;
  bool is_closed_ = false;
};

}  // namespace dlock::testing
