// SPDX-License-Identifier: Apache-2.0
//
// Options, connecting, and what the store declares.
#include "backends/zookeeper/backend.hpp"

#include <fmt/format.h>

#include "backends/zookeeper/error.hpp"
#include "backends/zookeeper/options.hpp"
#include "backends/zookeeper/rules/queue.hpp"
#include "backends/zookeeper/rules/words.hpp"
#include "backends/zookeeper/wire/four_letter.hpp"
#include "backends/zookeeper/wire/timeout_probe.hpp"

namespace dlock::zookeeper {

using std::chrono::milliseconds;

namespace {

/// Claims that have requests under way at once: enough to fill a link of 50 ms, few enough that
/// each is answered in time.
constexpr std::size_t kClaimsAtOnce = 256;

Session::Settings session_settings(const StoreOptions& options, const NameMap& names) {
  Session::Settings settings;
  settings.endpoints = options.endpoints;
  settings.timeout = options.duration("session_timeout");
  if (!options.username.empty()) {
    settings.username = options.username;
    settings.password = std::make_shared<Password>(options.password, options.password_file);
  }
  settings.creator_acl = options.string("acl") == "creator";
  settings.root = names.root();
  return settings;
}

}  // namespace

ZooKeeperBackend::ZooKeeperBackend(const StoreOptions& options, Env& env, EventSink& sink,
                                   Library& library)
    : env_(env),
      sink_(sink),
      library_(library),
      options_(options),
      asked_(options.duration("session_timeout")),
      exclusive_kind_(options.string("exclusive_node") == "write" ? Contender::Kind::write
                                                                  : Contender::Kind::mutex),
      names_(options.given("chroot") ? options.string("chroot") : std::string(), options.path),
      session_(std::make_shared<Session>(env, session_settings(options, names_), library, sink)),
      unresolved_creates_(std::make_shared<UnresolvedCreates>(env, session_)),
      listings_(std::make_shared<Listings>(env, session_)),
      claiming_(kClaimsAtOnce),
      releasing_(kClaimsAtOnce),
      token_offset_(session_, names_.offset()) {
  session_->on_beat = [unresolved_creates = std::weak_ptr(unresolved_creates_)] {
    if (const auto alive = unresolved_creates.lock()) alive->search();
  };
  session_->on_down = [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) on_link_down();
  };
  session_->on_children = [this, alive = std::weak_ptr(alive_)](const std::string& directory) {
    if (!alive.expired()) on_children(directory);
  };
  session_->on_over = [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) on_session_over();
  };
  session_->on_new = [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) on_new_session();
  };
}

ZooKeeperBackend::~ZooKeeperBackend() { session_->stop(); }

// After a reconnect to another server, the order of the first notifications does not prove that a
// claim's own node still exists. So the claim lists the queue again. Past the counter's end, a
// claim that lost its node creates one with the same name. That node may no longer be before this
// claim (found by the simulation).
void ZooKeeperBackend::on_link_down() {
  token_offset_.doubt();
  for (const auto& [number, claim] : claims_->all) {
    claim->before_decides = false;
    if (!has_name_of_several(claim->before_path)) continue;
    claim->before_gone = true;
    claim->wake();
  }
  stop_listening();
}

void ZooKeeperBackend::on_session_over() {
  unresolved_creates_->clear();
  token_offset_.forget();
  for (const auto& [number, claim] : claims_->all) {
    claim->leave_queue();
    claim->wake();
  }
}

// The servers' limits may have changed since we connected.
void ZooKeeperBackend::on_new_session() {
  undisturbed_.forget();
  const auto lease = std::chrono::duration_cast<milliseconds>(session_->timeout());
  if (lease == capabilities_.lease) return;
  sink_.on_warning(timeout_error({asked_, lease}, std::nullopt));
  capabilities_.lease = capabilities_.shortest_lease = capabilities_.longest_lease = lease;
  sink_.on_capabilities_changed();
}

asio::awaitable<Failure> ZooKeeperBackend::connect(TimePoint deadline) {
  auto failure = co_await session_->open(deadline);
  if (!failure.error) failure = co_await check_timeout(deadline);
  if (failure.error == Error::session_timeout && may_raise()) {
    failure = co_await raise_timeout(deadline);
  }
  if (!failure.error) failure = co_await make_root(deadline);
  // Reads it now, so that the first lock does not wait for it. A failed read is repeated then.
  if (!failure.error) co_await token_offset_.value(deadline);
  if (failure.error) {
    co_await session_->drop(env_.now() + std::chrono::seconds(1));
    co_return failure;
  }
  const auto patience = std::min<TimePoint>(deadline, env_.now() + milliseconds(500));
  auto words = co_await library_.ask_server(env_, session_->server(), "srvr", patience);
  declare(std::move(words));
  session_->announce();
  co_return Failure{};
}

asio::awaitable<Failure> ZooKeeperBackend::check_timeout(TimePoint deadline) {
  const AskedTimeout session{asked_, std::chrono::duration_cast<milliseconds>(session_->timeout())};
  auto text = timeout_error(session, std::nullopt);
  least_ = least_timeout(session, std::nullopt);
  // Only the connected server: others may not answer, and then the check would use up the deadline.
  if (const auto server = session_->server(); text.empty() && !server.empty()) {
    const auto felt = co_await feel_timeout(library_, env_, server, probe_timeout(asked_),
                                            session_->tries_spent(), deadline);
    text = timeout_error(session, felt);
    least_ = least_timeout(session, felt);
  }
  if (text.empty()) co_return Failure{};
  const auto origin = options_.origin.find("session_timeout");
  if (origin != options_.origin.end()) text = origin->second.text() + ": " + text;
  co_return Failure{Error::session_timeout, std::move(text)};
}

// A Spring starter's block was written for another client; it must work unchanged.
bool ZooKeeperBackend::may_raise() const {
  return least_ && *least_ > asked_ && options_.starter_key.count("session_timeout") != 0;
}

asio::awaitable<Failure> ZooKeeperBackend::raise_timeout(TimePoint deadline) {
  const auto written = std::exchange(asked_, *least_);
  co_await session_->drop(env_.now() + std::chrono::seconds(1));
  session_->ask_for(asked_);
  auto failure = co_await session_->open(deadline);
  if (!failure.error) failure = co_await check_timeout(deadline);
  if (failure.error) co_return failure;
  const auto origin = options_.origin.find("session_timeout");
  sink_.on_warning(fmt::format(
      "{}{}: {} ms is too short for this server, a lock needs three of its ticks; used: {} ms",
      origin == options_.origin.end() ? "" : origin->second.text() + ": ",
      options_.starter_key.find("session_timeout")->second, written.count(), asked_.count()));
  co_return failure;
}

asio::awaitable<Failure> ZooKeeperBackend::make_root(TimePoint deadline) {
  int rc = ZCONNECTIONLOSS;
  while (is_loss(rc)) {
    const bool ready = co_await session_->ready(deadline);
    if (!ready) break;
    auto pending = session_->client().exists(names_.root());
    rc = (co_await reply_until(std::move(pending), deadline)).rc;
    if (rc != ZNONODE) continue;
    for (const auto& node : names_.root_nodes()) {
      if (!session_->connected()) break;
      auto made = session_->client().create(node, {}, Client::Mode::persistent);
      rc = (co_await reply_until(std::move(made), deadline)).rc;
      if (rc == ZNODEEXISTS) rc = ZOK;
      if (rc != ZOK) break;
    }
  }
  if (rc == ZNONODE) co_return Failure{Error::no_chroot, options_.string("chroot")};
  co_return failure_of(rc, "making the root " + names_.root());
}

void ZooKeeperBackend::declare(std::string server_words) {
  capabilities_ = {};
  auto& all = capabilities_;
  all.guarantee = Guarantee::exclusive;
  all.assumptions = {
      {"majority_intact", "a majority of the ensemble keeps what it has confirmed"},
      {"clock_rate_bounded",
       "the clocks of holder and servers run equally fast, within the drift margin"},
      {"two_tick_minimum",
       "the servers' minSessionTimeout is not below its default of two ticks, or the session "
       "timeout is three ticks at least"},
  };
  all.fair = true;
  all.shared_mode = true;
  all.permits = true;
  all.token = TokenStrength::durable;
  all.wake_up = WakeUp::push;
  all.lease_scope = LeaseScope::session;
  all.lease = std::chrono::duration_cast<milliseconds>(session_->timeout());
  all.shortest_lease = all.longest_lease = all.lease;
  all.can_list = true;
  all.can_evict = true;
  all.can_tell_contention = true;
  all.can_bound_queue = true;
  all.can_ask = true;
  all.can_raise = true;
  all.can_seal = true;
  all.can_gate = true;
  all.notes.push_back(
      fmt::format("session timeout {} ms, as the server granted it", all.lease.count()));
  const auto version = line_value(server_words, "Zookeeper version");
  if (!version.empty()) {
    all.notes.push_back(fmt::format("server version {}, {}", version.substr(0, version.find('-')),
                                    line_value(server_words, "Mode")));
  }
}

ClaimPtr ZooKeeperBackend::make_claim(ClaimRequest request) {
  auto path = names_.path(request.name);
  NodeClaimPtr guard;
  if (request.permits != 0) {
    ClaimRequest place;
    place.name = request.name;
    place.owner = request.owner;
    place.queue = request.queue;
    guard = std::make_shared<NodeClaim>(std::move(place), env_, path + "/locks", claims_);
    guard->session = session_->number();
    guard->guards = request.permits;
    path += "/leases";
  }
  auto claim = std::make_shared<NodeClaim>(std::move(request), env_, std::move(path), claims_);
  claim->guard = std::move(guard);
  claim->session = session_->number();
  return claim;
}

}  // namespace dlock::zookeeper
