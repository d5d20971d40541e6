// SPDX-License-Identifier: Apache-2.0
#include "tests/support/direct_client.hpp"

#include <gtest/gtest.h>

#include "core/config/options.hpp"
#include "dlock/lock_manager.hpp"

namespace dlock::testkit {
namespace {

core::ResolvedStore resolve(const std::string& url, const OpenOptions& options) {
  return core::resolve_store(Config::from_url(url).stores.at(0), options.backends);
}

/// A test holds a lock without renewing it.
constexpr std::chrono::milliseconds kLease = std::chrono::minutes(2);

}  // namespace

DirectClient::DirectClient(const std::string& url, const OpenOptions& options)
    : work_(env_.context().get_executor()) {
  const auto store = resolve(url, options);
  backend_ = store.backend->create(store.options, env_, sink_);
  loop_ = std::thread([this] { env_.context().run(); });
  const auto failure = run(backend_->connect(soon()));
  EXPECT_FALSE(failure.error) << failure.error.message() << ": " << failure.text;
}

DirectClient::~DirectClient() {
  run(end());
  work_.reset();
  env_.context().stop();
  loop_.join();
}

asio::awaitable<int> DirectClient::end() {
  co_await backend_->close(soon());
  claims_.clear();
  backend_.reset();
  co_return 0;
}

asio::awaitable<int> DirectClient::interrupt_on_loop(ClaimPtr claim) {
  backend_->interrupt(*claim);
  co_return 0;
}

TimePoint DirectClient::soon() { return BoottimeClock::now() + std::chrono::seconds(30); }

ClaimPtr DirectClient::make(const std::string& name, bool queue, std::uint64_t min_token) {
  return make(name, queue, min_token, nullptr);
}

ClaimPtr DirectClient::make_under(GatePtr gate, const std::string& name, bool queue) {
  return make(name, queue, 0, std::move(gate));
}

ClaimPtr DirectClient::make(const std::string& name, bool queue, std::uint64_t min_token,
                            GatePtr gate) {
  ClaimRequest request;
  request.name = name;
  request.queue = queue;
  request.min_token = min_token;
  request.gate = std::move(gate);
  request.lease = kLease;
  request.owner = Owner{make_uuid(env_), "host", 1234, "test"};
  return run(make_on_loop(std::move(request)));
}

asio::awaitable<ClaimPtr> DirectClient::make_on_loop(ClaimRequest request) {
  auto claim = backend_->make_claim(std::move(request));
  claims_.push_back(claim);
  co_return claim;
}

std::future<ClaimAnswer> DirectClient::ask_until(const ClaimPtr& claim, Enough enough) {
  return start(ask(claim, enough));
}

asio::awaitable<ClaimAnswer> DirectClient::ask(ClaimPtr claim, Enough enough) {
  const auto end = soon();
  for (;;) {
    auto answer = co_await backend_->claim(claim, end);
    if (enough(answer) || env_.now() >= end) co_return answer;
    co_await backend_->wait(claim, end);
  }
}

ClaimPtr DirectClient::acquire(const std::string& name, std::uint64_t min_token) {
  auto claim = make(name, true, min_token);
  const auto granted = [](const ClaimAnswer& answer) {
    return answer.status == ClaimStatus::granted;
  };
  const auto answer = ask_until(claim, granted).get();
  EXPECT_EQ(answer.status, ClaimStatus::granted)
      << answer.failure.error.message() << ": " << answer.failure.text;
  EXPECT_GE(answer.token.value_or(min_token), min_token);
  tokens_[claim.get()] = answer.token.value_or(0);
  return claim;
}

std::uint64_t DirectClient::token_of(const ClaimPtr& claim) { return tokens_.at(claim.get()); }

}  // namespace dlock::testkit
