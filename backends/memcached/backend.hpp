// SPDX-License-Identifier: Apache-2.0
//
// The Memcached backend: README.md says what it does and why. Here are the SPI's calls; each
// becomes one procedure on the line of the name's server (acquire.hpp, renew.hpp, release.hpp,
// look.hpp).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/memcached/lock/claim.hpp"
#include "backends/memcached/lock/server.hpp"
#include "backends/memcached/rules/names.hpp"
#include "backends/memcached/rules/placement.hpp"
#include "dlock/spi/backend.hpp"
#include "dlock/spi/event_sink.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::memcached {

class MemcachedBackend final : public Backend, public MigrationStore {
 public:
  MemcachedBackend(const StoreOptions& options, Env& env, EventSink& sink,
                   const MakeClient& make_client = text_driver());
  ~MemcachedBackend() override;

  asio::awaitable<Failure> connect(TimePoint deadline) override;
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  asio::awaitable<std::vector<SelfTestReport>> self_test(TimePoint deadline) override;
  ClaimPtr make_claim(ClaimRequest request) override;
  asio::awaitable<ClaimAnswer> claim(ClaimPtr claim, TimePoint deadline) override;
  asio::awaitable<void> wait(ClaimPtr claim, TimePoint deadline) override;
  void interrupt(Claim& claim) noexcept override;
  asio::awaitable<std::vector<ExtendAnswer>> extend(std::vector<ClaimPtr> claims,
                                                    TimePoint deadline) override;
  asio::awaitable<ReleaseAnswer> release(ClaimPtr claim, bool search, TimePoint deadline) override;
  asio::awaitable<Failure> offer(ClaimPtr held, std::string proof, std::chrono::milliseconds within,
                                 TimePoint deadline) override;
  asio::awaitable<Result<LockStatus>> inspect(std::string name, TimePoint deadline) override;
  asio::awaitable<Result<std::vector<LockStatus>>> list(std::string prefix,
                                                        TimePoint deadline) override;
  asio::awaitable<EvictAnswer> evict(EvictRequest request, TimePoint deadline) override;
  asio::awaitable<RecordAnswer> raise(ClaimPtr held, std::uint64_t min_token,
                                      TimePoint deadline) override;
  asio::awaitable<RecordAnswer> note(std::string key, TimePoint deadline) override;
  asio::awaitable<RecordAnswer> set_note(std::string key, std::optional<std::string> from,
                                         std::optional<std::string> to,
                                         TimePoint deadline) override;
  MigrationStore& migration() noexcept override { return *this; }
  asio::awaitable<void> close(TimePoint deadline) override;

 private:
  using Claims = std::vector<KeyClaimPtr>;

  asio::awaitable<Failure> reach(std::shared_ptr<Server> server, TimePoint deadline);
  asio::awaitable<SelfTestReport> test(std::shared_ptr<Server> server, TimePoint deadline);
  void declare();
  void on_changed();
  const std::shared_ptr<Server>& server_of_name(const std::string& name) const;
  asio::awaitable<std::vector<ExtendAnswer>> extend_on(std::shared_ptr<Server> server,
                                                       Claims claims, TimePoint deadline);
  asio::awaitable<std::vector<ExtendAnswer>> extend_portion(std::shared_ptr<Server> server,
                                                            Claims claims, TimePoint deadline);

  asio::awaitable<RecordAnswer> run_record(
      std::shared_ptr<Server> server, std::function<asio::awaitable<RecordAnswer>(Commands&)> step,
      TimePoint deadline);

  Env& env_;
  EventSink& sink_;
  const StoreOptions options_;
  const KeyMap names_;
  const Placement placement_;
  std::vector<std::shared_ptr<Server>> servers_;  ///< in the order of the URL, permanently
  Capabilities capabilities_;
  bool connected_ = false;
};

}  // namespace dlock::memcached
