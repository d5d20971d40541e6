// SPDX-License-Identifier: Apache-2.0
//
// Connecting, and what the store declares.
#include "backends/redis/backend.hpp"

#include <fmt/format.h>

#include "backends/redis/error.hpp"
#include "backends/redis/rules/poll.hpp"
#include "backends/redis/rules/value.hpp"

namespace dlock::redis {
namespace {

constexpr std::chrono::milliseconds kShortestLease{100};
constexpr std::chrono::hours kLongestLease{24 * 30};

bool same_promise(const Capabilities& a, const Capabilities& b) {
  if (a.guarantee != b.guarantee || a.wake_up != b.wake_up ||
      a.shortfalls.size() != b.shortfalls.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.shortfalls.size(); ++i) {
    if (a.shortfalls[i].reason != b.shortfalls[i].reason) return false;
  }
  return true;
}

}  // namespace

RedisBackend::RedisBackend(const StoreOptions& options, DialSettings settings, Env& env,
                           EventSink& sink)
    : env_(env),
      sink_(sink),
      settings_(std::make_shared<const DialSettings>(std::move(settings))),
      names_(options.string("key")),
      lease_(options.duration("lease")),
      poll_(options.duration("poll")),
      waiting_texts_(waiter_patience(poll_)),
      waking_(fmt::format("{} {} {}", kChannelPrefix, kFirstTry.count(),
                          waiter_patience(poll_).count())),
      lock_delay_(options.duration("lock_delay")),
      fair_(options.flag("fair")),
      fsync_declared_(options.string("durability") == "appendfsync-always"),
      instance_(make_uuid(env)),
      link_(std::make_shared<Link>(env, settings_, static_cast<Link::Listener&>(*this))),
      subscriber_(make_subscriber()),
      presence_(
          std::make_shared<Presence>(env, link_, instance_, waiter_patience(poll_),
                                     [this] { return waiting_ > 0 && subscriber_->stands(); })),
      handed_over_(options.string("key") == kOwnTemplate && lock_delay_.count() == 0),
      capabilities_(declare(facts_, declaration())),
      self_test_(env) {}

RedisBackend::~RedisBackend() {
  presence_->stop();
  subscriber_->stop();
  link_->stop();
}

std::shared_ptr<Subscriber> RedisBackend::make_subscriber() {
  Subscriber::Callbacks callbacks;
  callbacks.on_message = [this](const std::string& text) { on_message(text); };
  callbacks.on_subscribed = [this] {
    refusal_told_ = false;
    if (std::exchange(wake_up_denied_, false)) capabilities_ = declare(facts_, declaration());
    wake_all();
    look_for_others_of_all();
    for (const auto& [channel, name] : observed_) sink_.on_holder_changed(name);
  };
  callbacks.on_refused = [this](const Failure& why) {
    const bool denied = why.error == Error::access_denied || why.error == Error::password_wanted;
    if (denied && !std::exchange(wake_up_denied_, true)) {
      capabilities_ = declare(facts_, declaration());
      if (announced_ && !listening_.empty()) sink_.on_capabilities_changed();
    }
    if (std::exchange(refusal_told_, true)) return;
    sink_.on_warning(fmt::format("waiters can only poll, SUBSCRIBE is refused: {} ({})", why.text,
                                 why.error.message()));
  };
  callbacks.in_use = [this] { return waiting_ > 0 || !listening_.empty() || !observed_.empty(); };
  return std::make_shared<Subscriber>(env_, settings_, std::string(kChannelPrefix) + instance_,
                                      std::move(callbacks));
}

// Ignores a grant that names a presence message from before the current connection: another server
// may have received that message.
void RedisBackend::on_message(std::string_view text) {
  if (!observed_.empty()) {
    const auto observed = observed_.find(std::string(text));
    if (observed != observed_.end()) return sink_.on_holder_changed(observed->second);
  }
  const auto message = read_message(text);
  if (text.substr(message.owner_id.size()) == kBrokenMessage) {
    return hear_of_break(std::string(message.owner_id));
  }
  if (!listening_.empty()) hear(std::string(message.owner_id));
  const auto found = claims_->find(message.owner_id);
  if (found == claims_->end()) return;
  auto& claim = *found->second;
  if (message.grant && claim.maybe_queued) {
    const auto sent = presence_->sent(message.grant->word);
    if (sent) claim.handed = handed_lock(*message.grant, *sent, claim.request().lease);
  }
  claim.wake();
}

Declaration RedisBackend::declaration() const {
  Declaration declaration;
  declaration.fsync_always_declared = fsync_declared_;
  declaration.wake_up_denied = wake_up_denied_;
  declaration.fair = fair_;
  declaration.lease = lease_;
  declaration.lock_delay = lock_delay_;
  declaration.shortest_lease = kShortestLease;
  declaration.longest_lease = kLongestLease;
  return declaration;
}

asio::awaitable<Failure> RedisBackend::connect(TimePoint deadline) {
  auto failure = co_await link_->open(deadline);
  announced_ = !failure.error;
  co_return failure;
}

void RedisBackend::on_inspected(const ServerFacts& facts, ServerChange change) {
  if (facts_.publish_refused.empty() && !facts.publish_refused.empty()) {
    sink_.on_warning("waiters can only poll, PUBLISH is refused: " + facts.publish_refused);
  }
  facts_ = facts;
  if (facts.time != 0) server_clock_.learn(facts.time, facts.time_asked);
  if (!facts_.info_known || facts_.run_id != tested_run_) self_test_.close();
  if (change != ServerChange::none) {
    ++epoch_;
    last_change_ =
        change == ServerChange::failed_over ? LossReason::failover : LossReason::store_restarted;
  }
  auto now = declare(facts_, declaration());
  const bool changed = !same_promise(capabilities_, now);
  capabilities_ = std::move(now);
  if (changed && announced_) sink_.on_capabilities_changed();
}

// The core checks every held lock at once. Waiters poll at once, because their queue may be lost.
void RedisBackend::on_up() {
  presence_->forget();
  if (!announced_) return;
  sink_.on_link_up();
  wake_all();
}

void RedisBackend::on_down(const Failure& why) {
  if (announced_) sink_.on_link_down(why);
}

void RedisBackend::on_old_connection_kept() {
  sink_.on_warning(
      "an old connection could not be killed: a request that arrives late may keep a lock busy for "
      "one lease; ACL SETUSER <user> +client|kill +client|id");
}

void RedisBackend::on_login_refused(const Failure& why) {
  if (!announced_) return;
  sink_.on_link_down(why);
  sink_.on_warning(
      fmt::format("{}: {}; what is held here is lost when its lease is over, unless the server and "
                  "the files of the configuration agree before",
                  why.error.message(), why.text));
}

void RedisBackend::wake_all() {
  for (const auto& [id, claim] : *claims_) claim->wake();
}

ClaimPtr RedisBackend::make_claim(ClaimRequest request) {
  auto keys = names_.base(request.name);
  const bool is_told = request.tell_contention || request.tell_asked;
  auto waiter = write_waiter(instance_, request.owner, is_told);
  auto claim = detail::make_recycled<KeyClaim>(std::move(request), env_, std::move(keys),
                                               std::move(waiter), claims_);
  claim->epoch = epoch_;
  claim->kind = waiter_kind(claim->request(), handed_over_);
  return claim;
}

asio::awaitable<void> RedisBackend::close(TimePoint deadline) {
  closed_ = true;
  announced_ = false;
  wake_all();
  subscriber_->stop();
  presence_->stop();
  link_->stop();
  co_await presence_->stopped(deadline);
  co_await subscriber_->stopped(deadline);
  co_await link_->stopped(deadline);
}

}  // namespace dlock::redis
