// SPDX-License-Identifier: Apache-2.0
//
// How a grant is exported, in this order: the store knows that it may be adopted; this process
// stops using it; the text is returned. A failure before the second step leaves the lock unchanged,
// because no other process has the secret.
#include <fmt/format.h>

#include "core/store/grant_text.hpp"
#include "core/store/store.hpp"
#include "dlock/duration.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::core {
namespace {

constexpr std::chrono::milliseconds kLongestWithin = std::chrono::hours(24);

Failure cannot_change(std::string_view why) {
  return make_failure(errc::not_supported,
                      fmt::format("this grant cannot change its process: {}", why));
}

}  // namespace

Failure Store::refused_adoption() const {
  const auto& descriptor = *setup_.descriptor;
  const bool has_it =
      descriptor.has_adoption && (link_ != Link::up || backend_->capabilities().can_adopt);
  if (has_it) return {};
  return make_failure(
      errc::not_supported,
      fmt::format("{} store '{}' gives no grant to another process: {}; route this name to a store "
                  "that does (`require: adoption` says so at the start)",
                  descriptor.name, name(), descriptor.why_no_adoption));
}

Failure Store::refused_export(const Hold& hold, std::chrono::milliseconds within) const {
  const auto& held = hold.identity();
  if (auto refused = refused_adoption(); refused.error) return refused;
  if (held.permits != 0) return cannot_change("it is of a semaphore's permits, not of a lock");
  if (held.mode == Mode::shared) return cannot_change("it is a reader's, beside others");
  if (!held.token) return cannot_change("it has no token");
  if (hold.dependency()) {
    return cannot_change(
        "its lock stays with the process when it is given back (`cache`, `cohort`), or rests on a "
        "second one; route it to a store without that option");
  }
  if (auto why = host_.refused_export(held.name); !why.empty()) return cannot_change(why);
  if (within.count() > 0 && within <= kLongestWithin) return {};
  return make_failure(errc::invalid_argument,
                      fmt::format("within {}: write 1ms to {}", format_duration(within),
                                  format_duration(kLongestWithin)));
}

void Store::export_grant(const std::shared_ptr<Hold>& hold, std::chrono::milliseconds within,
                         const std::shared_ptr<detail::Grant::Exported>& done) {
  const auto claim = hold->claim();
  if (closed_) return (*done)(make_error_code(errc::closed), {});
  if (!claim || hold->state() == HandleState::lost) {
    return (*done)(make_error_code(errc::lock_lost), to_string(hold->reason()));
  }
  auto refused = refused_export(*hold, within);
  if (!refused.error) return tasks_.spawn(offer_claim(hold, claim, within, done));
  (*done)(refused.error, std::move(refused.text));
}

asio::awaitable<void> Store::offer_claim(std::shared_ptr<Hold> hold, ClaimPtr claim,
                                         std::chrono::milliseconds within,
                                         std::shared_ptr<detail::Grant::Exported> done) {
  const auto self = shared_from_this();
  Result<std::string> made;
  try {
    made = co_await offer(hold, claim, within);
  } catch (const std::exception& error) {
    made.failure = failure_of(error);
  }
  if (made.value) {
    (*done)({}, std::move(*made.value));
  } else {
    (*done)(made.failure.error, std::move(made.failure.text));
  }
}

asio::awaitable<Result<std::string>> Store::offer(std::shared_ptr<Hold> hold, ClaimPtr claim,
                                                  std::chrono::milliseconds within) {
  const auto& held = hold->identity();
  // The same when it is tried again: a late copy of the first request changes nothing then.
  if (hold->secret().empty()) hold->secret() = make_secret();
  GrantText grant{{held.name, held.store, *held.token}, claim->request().owner.id, hold->secret()};
  Result<std::string> made;
  auto text = grant.write();
  auto proof = proof_of(grant.secret);
  const auto until = env_.now() + request_timeout();
  made.failure = co_await backend_->offer(claim, std::move(proof), within, until);
  if (made.failure.error && portable(made.failure.error) == errc::not_holder) {
    renewer_->on_claim_gone(*claim, LossReason::removed);
    made.failure.error = make_error_code(errc::lock_lost);
  }
  if (made.failure.error) co_return made;
  env_.call_at(env_.now() + within, [weak = weak_from_this(), given = std::weak_ptr(hold)] {
    const auto store = weak.lock();
    const auto kept = given.lock();
    if (store && kept && kept->is_given_away()) store->release(kept, {});
  });
  if (hold->give_away()) {
    made.value = std::move(text);
  } else {
    made.failure = make_failure(errc::lock_lost, to_string(hold->reason()));
  }
  co_return made;
}

}  // namespace dlock::core
