// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/wire.hpp"

#include "dlock/spi/error.hpp"
#include "dlock/spi/signal.hpp"
#include "tests/simulation/planted.hpp"

namespace dlock::simulation::migration {
namespace {

class WireClaim final : public Claim {
 public:
  WireClaim(ClaimRequest request, Env& env) : Claim(std::move(request)), woken(env) {}
  Signal woken;
  bool granted = false;
  std::uint64_t token = 0;  ///< of the last grant
};

Capabilities declare(const Server& server) {
  Capabilities capabilities;
  capabilities.guarantee = Guarantee::exclusive;
  capabilities.token = TokenStrength::durable;
  capabilities.lease_scope = LeaseScope::claim;
  capabilities.lease = kLease;
  capabilities.shortest_lease = milliseconds(100);
  capabilities.longest_lease = std::chrono::hours(1);
  capabilities.can_raise = true;
  capabilities.can_seal = server.seals();
  capabilities.can_list = true;
  capabilities.can_gate = server.seals();
  if (server.is_lossy()) {
    capabilities.record_losses = {{"it forgets", "nothing helps"}};
    // Its tokens may go back: who knows higher ones asks for one above them.
    capabilities.token = TokenStrength::time_seeded;
  }
  return capabilities;
}

Failure silence() { return make_failure(errc::unavailable, "no answer"); }

class WireBackend final : public Backend, public MigrationStore {
 public:
  WireBackend(Server& server, const Weather& weather, const Link* link, Process& process)
      : server_(server),
        weather_(weather),
        link_(link),
        process_(process),
        capabilities_(declare(server)) {}

  asio::awaitable<Failure> connect(TimePoint) override { co_return Failure{}; }
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  ClaimPtr make_claim(ClaimRequest request) override {
    return std::make_shared<WireClaim>(std::move(request), process_);
  }

  asio::awaitable<ClaimAnswer> claim(ClaimPtr claim, TimePoint deadline) override {
    const auto sent = process_.now();
    auto request = claim->request();
    if (request.gate && is_planted("gate_checked_before_the_claim")) {
      const auto there = co_await note(request.gate->key, deadline);
      if (there.found.value_or(std::string()) == request.gate->text) request.gate = nullptr;
    }
    std::function<Server::Grant(Server&, TimePoint)> question = [request = std::move(request)](
                                                                    Server& server, TimePoint now) {
      return server.claim(request, now);
    };
    const auto grant = co_await ask<Server::Grant>(std::move(question), deadline);
    ClaimAnswer answer;
    if (!grant) {
      answer.status = ClaimStatus::unknown;
      answer.failure = silence();
      co_return answer;
    }
    answer.status = grant->status;
    answer.record = grant->record;
    if (grant->status == ClaimStatus::granted) {
      answer.token = grant->token;
      answer.validity = validity(*claim, sent);
      static_cast<WireClaim&>(*claim).granted = true;
      static_cast<WireClaim&>(*claim).token = grant->token;
    }
    co_return answer;
  }

  asio::awaitable<void> wait(ClaimPtr claim, TimePoint deadline) override {
    auto& mine = static_cast<WireClaim&>(*claim);
    const auto pause = process_.world().between(milliseconds(20), milliseconds(150));
    co_await mine.woken.wait_until(std::min(deadline, process_.now() + pause));
  }
  void interrupt(Claim& claim) noexcept override { static_cast<WireClaim&>(claim).woken.notify(); }

  asio::awaitable<std::vector<ExtendAnswer>> extend(std::vector<ClaimPtr> claims,
                                                    TimePoint deadline) override {
    const auto sent = process_.now();
    std::function<std::vector<bool>(Server&, TimePoint)> question = [claims](Server& server,
                                                                             TimePoint now) {
      std::vector<bool> extended;
      extended.reserve(claims.size());
      for (const auto& claim : claims) {
        extended.push_back(server.extend(claim->request(), now));
      }
      return extended;
    };
    const auto extended = co_await ask<std::vector<bool>>(std::move(question), deadline);
    std::vector<ExtendAnswer> answers(claims.size());
    for (std::size_t i = 0; i < claims.size(); ++i) {
      auto& answer = answers[i];
      answer.status = ExtendStatus::unknown;
      if (!extended) continue;
      answer.status = (*extended)[i] ? ExtendStatus::extended : ExtendStatus::gone;
      answer.reason = LossReason::expired;
      answer.validity = validity(*claims[i], sent);
    }
    co_return answers;
  }

  asio::awaitable<ReleaseAnswer> release(ClaimPtr claim, bool, TimePoint deadline) override {
    std::function<bool(Server&, TimePoint)> question = [request = claim->request()](Server& server,
                                                                                    TimePoint now) {
      return server.release(request, now);
    };
    const auto was_there = co_await ask<bool>(std::move(question), deadline);
    ReleaseAnswer answer;
    answer.status = ReleaseStatus::unknown;
    if (!was_there) co_return answer;
    const bool was_granted = std::exchange(static_cast<WireClaim&>(*claim).granted, false);
    answer.status =
        was_granted && !*was_there ? ReleaseStatus::not_holder : ReleaseStatus::released;
    co_return answer;
  }

  asio::awaitable<Result<LockStatus>> inspect(std::string name, TimePoint deadline) override {
    std::function<LockStatus(Server&, TimePoint)> question = [name](Server& server, TimePoint now) {
      return server.inspect(name, now);
    };
    Result<LockStatus> result;
    result.value = co_await ask<LockStatus>(std::move(question), deadline);
    if (!result.value) result.failure = silence();
    co_return result;
  }
  asio::awaitable<Result<std::vector<LockStatus>>> list(std::string prefix,
                                                        TimePoint deadline) override {
    std::function<std::vector<LockStatus>(Server&, TimePoint)> question =
        [prefix](Server& server, TimePoint now) { return server.list(prefix, now); };
    Result<std::vector<LockStatus>> result;
    result.value = co_await ask<std::vector<LockStatus>>(std::move(question), in_time(deadline));
    if (!result.value) result.failure = silence();
    co_return result;
  }
  asio::awaitable<Result<std::vector<std::string>>> claimed_names(std::string prefix,
                                                                  TimePoint deadline) override {
    std::function<std::vector<std::string>(Server&, TimePoint)> question =
        [prefix](Server& server, TimePoint now) { return server.claimed_names(prefix, now); };
    Result<std::vector<std::string>> result;
    result.value = co_await ask<std::vector<std::string>>(std::move(question), in_time(deadline));
    if (!result.value) result.failure = silence();
    co_return result;
  }
  asio::awaitable<Result<std::uint64_t>> highest_token(TimePoint deadline) override {
    std::function<std::uint64_t(Server&, TimePoint)> question = [](Server& server, TimePoint) {
      return server.highest_token();
    };
    Result<std::uint64_t> result;
    result.value = co_await ask<std::uint64_t>(std::move(question), deadline);
    if (!result.value) result.failure = silence();
    co_return result;
  }
  asio::awaitable<EvictAnswer> evict(EvictRequest, TimePoint) override {
    EvictAnswer answer;
    answer.failure = make_failure(errc::not_supported, "");
    co_return answer;
  }

  asio::awaitable<RecordAnswer> record(std::string name, TimePoint deadline) override {
    if (!server_.seals()) co_return co_await MigrationStore::record(std::move(name), deadline);
    const bool lags = is_planted("move_recheck_from_a_replica") && process_.world().chance(0.5);
    Question question = [name, lags](Server& server, TimePoint now) {
      return Server::Exchange{true, lags ? server.lagging_record(name, now) : server.record(name)};
    };
    co_return co_await exchange(std::move(question), deadline, false);
  }
  asio::awaitable<RecordAnswer> seal(ClaimPtr held, std::string record,
                                     TimePoint deadline) override {
    const auto token = static_cast<WireClaim&>(*held).token;
    Question question = [request = held->request(), token, record](Server& server, TimePoint now) {
      return server.seal(request, token, record, now);
    };
    co_return co_await exchange(std::move(question), deadline, true);
  }
  asio::awaitable<RecordAnswer> set_record_under(GatePtr gate, std::string name, std::string from,
                                                 std::optional<std::string> to,
                                                 std::uint64_t min_token,
                                                 TimePoint deadline) override {
    Question question = [gate, name, from, to, min_token](Server& server, TimePoint now) {
      return server.set_record(name, from, to, min_token, now, gate.get());
    };
    co_return co_await exchange(std::move(question), deadline, true);
  }
  asio::awaitable<RecordAnswer> raise(ClaimPtr held, std::uint64_t min_token,
                                      TimePoint deadline) override {
    Question question = [request = held->request(), min_token](Server& server, TimePoint now) {
      return Server::Exchange{server.raise(request, min_token, now), std::nullopt};
    };
    co_return co_await exchange(std::move(question), deadline, true);
  }
  asio::awaitable<RecordAnswer> note(std::string key, TimePoint deadline) override {
    Question question = [key](Server& server, TimePoint) {
      return Server::Exchange{true, server.note(key)};
    };
    co_return co_await exchange(std::move(question), deadline, false);
  }
  asio::awaitable<RecordAnswer> set_note(std::string key, std::optional<std::string> from,
                                         std::optional<std::string> to,
                                         TimePoint deadline) override {
    Question question = [key, from, to](Server& server, TimePoint) {
      return server.set_note(key, from, to);
    };
    co_return co_await exchange(std::move(question), deadline, true);
  }

  MigrationStore& migration() noexcept override { return *this; }
  asio::awaitable<void> close(TimePoint) override { co_return; }

 private:
  using Question = std::function<Server::Exchange(Server&, TimePoint)>;

  Duration travel() {
    auto& world = process_.world();
    if (world.chance(weather_.late)) return world.between({}, weather_.latest);
    return world.between(microseconds(100), milliseconds(3));
  }

  /// Empty: no answer by the deadline; the server may have done it, or may do it yet.
  template <class Answer>
  asio::awaitable<std::optional<Answer>> ask(std::function<Answer(Server&, TimePoint)> question,
                                             TimePoint deadline) {
    auto& world = process_.world();
    OneShot<Answer> answer(process_);
    if (process_.is_alive() && !world.chance(weather_.loss) && !is_cut()) {
      const bool lost = world.chance(weather_.loss);
      const auto back = travel();
      if (weather_.twice > 0 && world.chance(weather_.twice)) {
        world.after(travel() + world.between({}, weather_.latest), [this, question] {
          if (!server_.is_away()) question(server_, process_.world().now());
        });
      }
      world.after(travel(), [this, question = std::move(question), answer, lost, back] {
        auto& there = process_.world();
        if (server_.is_away()) return;
        auto result = question(server_, there.now());
        if (lost || is_cut()) return;
        there.after(back, [this, answer, result = std::move(result)] { tell(answer, result); });
      });
    }
    auto result = co_await answer.get_until(deadline);
    co_return result;
  }

  bool is_cut() const {
    return server_.is_away() || (link_ != nullptr && process_.world().now() < link_->cut_until);
  }

  template <class Answer>
  void tell(const OneShot<Answer>& answer, const Answer& result) {
    if (!process_.is_alive()) return;
    if (weather_.on_answer) weather_.on_answer(process_);
    if (process_.is_alive()) process_.deliver([answer, result] { answer.set(result); });
  }

  asio::awaitable<RecordAnswer> exchange(Question question, TimePoint deadline, bool writes) {
    const auto told = co_await ask<Server::Exchange>(std::move(question), deadline);
    RecordAnswer answer;
    if (told) {
      answer.status = told->done ? RecordStatus::done : RecordStatus::conflict;
      answer.found = told->found;
      answer.gate = told->gate;
    } else {
      answer.status = writes ? RecordStatus::unknown : RecordStatus::unavailable;
      answer.failure = silence();
    }
    co_return answer;
  }

  /// Of requests that a real store is given long for: a message that is lost is noticed before.
  TimePoint in_time(TimePoint deadline) const {
    return std::min(deadline, process_.now() + seconds(2));
  }

  Validity validity(const Claim& claim, TimePoint sent) const {
    return {sent + claim.request().lease, sent + claim.request().lease / 3};
  }

  Server& server_;
  const Weather& weather_;
  const Link* const link_;
  Process& process_;
  const Capabilities capabilities_;
};

/// A descriptor's factory has no state of its own.
struct Making {
  Server* server = nullptr;
  const Weather* weather = nullptr;
  const Link* link = nullptr;
  Process* process = nullptr;
};
thread_local Making making;

BackendDescriptor make_descriptor() {
  BackendDescriptor descriptor{};
  descriptor.name = "simulated";
  descriptor.lease_option = "lease";
  descriptor.create = [](const StoreOptions&, Env&, EventSink&) -> std::unique_ptr<Backend> {
    return std::make_unique<WireBackend>(*making.server, *making.weather, making.link,
                                         *making.process);
  };
  return descriptor;
}

}  // namespace

std::shared_ptr<core::Store> make_store(const std::shared_ptr<SimHost>& host,
                                        const std::string& name, Server& server,
                                        const Weather& weather, const Link* link) {
  static const BackendDescriptor descriptor = make_descriptor();
  making = {&server, &weather, link, &host->process()};
  core::Store::Setup setup;
  setup.options.name = name;
  setup.options.app = host->process().name();
  setup.settings.request_timeout = milliseconds(600);
  setup.settings.retry.kind = core::RetryPolicy::Kind::forever;
  setup.descriptor = &descriptor;
  return std::make_shared<core::Store>(*host, std::move(setup));
}

}  // namespace dlock::simulation::migration
