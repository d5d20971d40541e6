// SPDX-License-Identifier: Apache-2.0
//
// A store whose secret or URL is not where the configuration says. Its locks fail, and say why; the
// locks of other stores are none of its business.
#include "core/config/options.hpp"

namespace dlock::core {

namespace {

constexpr std::string_view kWhy = "why";

class UnusableBackend final : public Backend {
 public:
  explicit UnusableBackend(std::string why) : why_(std::move(why)) {}

  asio::awaitable<Failure> connect(TimePoint) override { co_return failure(); }
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  ClaimPtr make_claim(ClaimRequest request) override {
    return std::make_shared<Claim>(std::move(request));
  }
  asio::awaitable<ClaimAnswer> claim(ClaimPtr, TimePoint) override {
    ClaimAnswer answer;
    answer.status = ClaimStatus::failed;
    answer.failure = failure();
    co_return answer;
  }
  asio::awaitable<void> wait(ClaimPtr, TimePoint) override { co_return; }
  void interrupt(Claim&) noexcept override {}
  asio::awaitable<std::vector<ExtendAnswer>> extend(std::vector<ClaimPtr> claims,
                                                    TimePoint) override {
    co_return std::vector<ExtendAnswer>(claims.size());
  }
  asio::awaitable<ReleaseAnswer> release(ClaimPtr, bool, TimePoint) override {
    ReleaseAnswer nothing_was_there;
    nothing_was_there.status = ReleaseStatus::released;
    co_return nothing_was_there;
  }
  asio::awaitable<Result<LockStatus>> inspect(std::string, TimePoint) override {
    Result<LockStatus> result;
    result.failure = failure();
    co_return result;
  }
  asio::awaitable<Result<std::vector<LockStatus>>> list(std::string, TimePoint) override {
    Result<std::vector<LockStatus>> result;
    result.failure = failure();
    co_return result;
  }
  asio::awaitable<EvictAnswer> evict(EvictRequest, TimePoint) override {
    EvictAnswer answer;
    answer.failure = failure();
    co_return answer;
  }
  asio::awaitable<void> close(TimePoint) override { co_return; }

 private:
  Failure failure() const { return {make_error_code(errc::config_invalid), why_}; }

  const std::string why_;
  const Capabilities capabilities_;
};

const BackendDescriptor& descriptor() {
  static const BackendDescriptor unusable = [] {
    BackendDescriptor made;
    made.name = "unusable";
    made.create = [](const StoreOptions& options, Env&, EventSink&) -> std::unique_ptr<Backend> {
      return std::make_unique<UnusableBackend>(options.string(kWhy));
    };
    made.has_shared_mode = true;  // a use then fails with the reason
    made.has_permits = true;
    return made;
  }();
  return unusable;
}

}  // namespace

ResolvedStore unusable_store(const StoreConfig& store, const LockError& error) {
  ResolvedStore resolved;
  resolved.backend = &descriptor();
  resolved.options.name = store.name;
  resolved.options.text[std::string(kWhy)] = error.server_text();
  return resolved;
}

}  // namespace dlock::core
