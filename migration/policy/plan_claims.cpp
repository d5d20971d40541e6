// SPDX-License-Identifier: Apache-2.0
#include "migration/policy/plan_claims.hpp"

#include <utility>

#include "core/store/store.hpp"
#include "migration/gate.hpp"
#include "migration/policy/target_guard.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {
namespace {

/// As everybody, but for what a plan adds.
class PlanClaims : public ClaimPolicy {
 public:
  PlanClaims(Store& store, std::string program)
      : store_(store), guard_(TargetGuard::of(store)), program_(std::move(program)) {}

  asio::awaitable<Confirmation> confirm(std::string name,
                                        std::optional<std::uint64_t> token) override {
    return guard_.confirm(std::move(name), token);
  }
  void prepare(ClaimRequest& request) const override {
    guard_.prepare(request);
    request.owner.id.replace(0, program_.size(), program_);
  }
  Failure sealed(std::string_view record, std::string_view name) const override {
    return guard_.sealed(record, name);
  }

 protected:
  Store& store_;
  TargetGuard& guard_;

 private:
  const std::string program_;
};

class SourceClaims final : public PlanClaims {
 public:
  SourceClaims(Store& store, std::string program, GatePtr gate)
      : PlanClaims(store, std::move(program)), gate_(std::move(gate)) {}

  // An earlier plan may not have come to its end here.
  asio::awaitable<Admission> admit(std::string name) override {
    return guard_.admit(std::move(name));
  }
  void prepare(ClaimRequest& request) const override {
    PlanClaims::prepare(request);
    if (store_.backend().capabilities().can_gate) request.gate = gate_;
  }
  asio::awaitable<bool> open(std::string name, std::string record) override {
    const auto there = parse_record(record);
    const bool is_own = there && gate_ && gate_->key == gate_key(there->plan);
    // What is read anew would not say otherwise of it.
    if (is_own) return guard_.open_left(std::move(name), std::move(record));
    return guard_.open_by_plans(std::move(name), std::move(record));
  }

 private:
  const GatePtr gate_;
};

class TargetClaims final : public PlanClaims {
 public:
  TargetClaims(Store& store, StartedPlan plan, std::string program)
      : PlanClaims(store, std::move(program)), plan_(std::move(plan)) {}

  asio::awaitable<Admission> admit(std::string) override {
    Admission admission;
    admission.failure = co_await guard_.check_plan(plan_.name, plan_.id);
    co_return admission;
  }
  asio::awaitable<bool> open(std::string name, std::string record) override {
    const auto there = parse_record(record);
    if (!there || there->target == plan_.source) co_return false;
    const bool opened = co_await guard_.open_by_plans(std::move(name), std::move(record));
    co_return opened;
  }

 private:
  const StartedPlan plan_;
};

}  // namespace

std::shared_ptr<ClaimPolicy> source_claims(Store& store, std::string program, GatePtr gate) {
  return std::make_shared<SourceClaims>(store, std::move(program), std::move(gate));
}

std::shared_ptr<ClaimPolicy> target_claims(Store& store, StartedPlan plan, std::string program) {
  return std::make_shared<TargetClaims>(store, std::move(plan), std::move(program));
}

}  // namespace dlock::core::migration
