// SPDX-License-Identifier: Apache-2.0
//
// The SPI over SharedStore. Every call returns at once. Wake-ups arrive from the loop that
// released, and are posted to the backend's loop.
#include <map>
#include <mutex>
#include <set>

#include "backends/memory/error.hpp"
#include "backends/memory/store.hpp"
#include "dlock/memory.hpp"
#include "dlock/sequencer.hpp"
#include "dlock/spi/descriptor.hpp"
#include "dlock/spi/env.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::memory {
namespace {

class MemoryClaim final : public Claim {
 public:
  MemoryClaim(ClaimRequest request, Env& env) : Claim(std::move(request)), moved(env) {}
  Signal moved;
  bool granted = false;
  bool is_break_told = false;
};

Failure failure(Error error) { return {make_error_code(error), {}}; }

RecordAnswer found(std::string text) {
  RecordAnswer answer;
  answer.status = RecordStatus::done;
  if (!text.empty()) answer.found = std::move(text);
  return answer;
}

RecordAnswer answer_of(SharedStore::Exchange exchange) {
  auto answer = found(std::move(exchange.found));
  answer.gate = std::move(exchange.gate);
  if (!exchange.done) answer.status = RecordStatus::conflict;
  return answer;
}

bool is_below(const std::string& name, const std::string& prefix) {
  return prefix.empty() || name == prefix || name.starts_with(prefix + "/");
}

Capabilities declare() {
  Capabilities capabilities;
  capabilities.guarantee = Guarantee::exclusive;
  capabilities.assumptions = {{"one_process", "all users of the lock are threads of one process"}};
  capabilities.fair = true;
  capabilities.shared_mode = true;
  capabilities.permits = true;
  capabilities.token = TokenStrength::durable;
  capabilities.wake_up = WakeUp::push;
  capabilities.lease_scope = LeaseScope::none;
  capabilities.can_list = true;
  capabilities.can_evict = true;
  capabilities.can_tell_contention = true;
  capabilities.can_bound_queue = true;
  capabilities.can_head_start = true;
  capabilities.can_ask = true;
  capabilities.can_adopt = true;
  capabilities.can_raise = true;
  capabilities.can_seal = true;
  capabilities.can_gate = true;
  capabilities.notes = {"in process: for tests of code that uses locks"};
  return capabilities;
}

/// Receives the wakes of other loops while the backend exists.
struct Mailbox {
  Mailbox(Env& of, EventSink& events) : env(&of), sink(&events) {}

  void close() {
    const std::lock_guard lock(mutex);
    env = nullptr;
    sink = nullptr;
  }
  /// On whichever thread: the loop stays until it has the job.
  void post(Job job) {
    const std::lock_guard lock(mutex);
    if (env != nullptr) env->post(std::move(job));
  }

  std::mutex mutex;
  Env* env;         ///< null when the backend has gone
  EventSink* sink;  ///< null when the backend has gone; used on the loop only
};

class MemoryBackend final : public Backend, public MigrationStore {
 public:
  MemoryBackend(const StoreOptions& options, Env& env, EventSink& sink)
      : env_(env),
        name_(options.endpoints.empty() ? std::string() : options.endpoints.front().host),
        mailbox_(std::make_shared<Mailbox>(env, sink)) {}
  ~MemoryBackend() override {
    mailbox_->close();
    forget_watches();
  }

  asio::awaitable<Failure> connect(TimePoint) override {
    store_ = SharedStore::get(name_);
    co_return Failure{};
  }

  const Capabilities& capabilities() const noexcept override { return capabilities_; }

  ClaimPtr make_claim(ClaimRequest request) override {
    return std::make_shared<MemoryClaim>(std::move(request), env_);
  }

  asio::awaitable<ClaimAnswer> claim(ClaimPtr claim, TimePoint) override {
    auto mine = std::static_pointer_cast<MemoryClaim>(claim);
    const auto& request = mine->request();
    if (request.permits != 0) co_return claim_permits(mine);
    if (request.adoption) co_return adopt(mine);
    const auto grant = store_->claim(request, env_.now(), wake_of(mine));
    ClaimAnswer answer;
    answer.status = grant.granted           ? ClaimStatus::granted
                    : grant.gate            ? ClaimStatus::gate_changed
                    : !grant.record.empty() ? ClaimStatus::sealed
                    : request.queue         ? ClaimStatus::waiting
                                            : ClaimStatus::busy;
    answer.record = grant.gate.value_or(grant.record);
    if (grant.granted) answer.token = grant.token;
    mine->granted = grant.granted;
    if (request.max_queue) answer.waiting_before = grant.waiting_before;
    if (grant.granted && request.tell_contention) listen(mine);
    if (grant.granted && request.tell_asked) listen_for_askings(mine);
    co_return answer;
  }

  asio::awaitable<void> wait(ClaimPtr claim, TimePoint deadline) override {
    auto mine = std::static_pointer_cast<MemoryClaim>(claim);
    co_await mine->moved.wait_until(deadline);
  }

  void interrupt(Claim& claim) noexcept override {
    static_cast<MemoryClaim&>(claim).moved.notify();
  }

  asio::awaitable<std::vector<ExtendAnswer>> extend(std::vector<ClaimPtr> claims,
                                                    TimePoint) override {
    co_return std::vector<ExtendAnswer>(claims.size());
  }

  asio::awaitable<ReleaseAnswer> release(ClaimPtr claim, bool, TimePoint) override {
    auto& mine = static_cast<MemoryClaim&>(*claim);
    const bool was_granted = std::exchange(mine.granted, false);
    const auto& request = mine.request();
    const bool was_there = request.permits != 0
                               ? store_->semaphores().release(request.name, request.owner.id)
                               : store_->release(request.name, request.owner.id);
    ReleaseAnswer answer;
    answer.status = was_granted && !was_there ? ReleaseStatus::not_holder : ReleaseStatus::released;
    co_return answer;
  }

  asio::awaitable<DowngradeAnswer> downgrade(ClaimPtr claim, TimePoint) override {
    const auto& request = claim->request();
    DowngradeAnswer answer;
    const bool ours = store_->downgrade(request.name, request.owner.id);
    answer.status = ours ? DowngradeStatus::shared : DowngradeStatus::gone;
    const bool broken = store_->mark_of(request.name, request.owner.id).has_value();
    if (!ours) answer.reason = broken ? LossReason::broken : LossReason::removed;
    co_return answer;
  }

  asio::awaitable<Failure> offer(ClaimPtr held, std::string proof, std::chrono::milliseconds within,
                                 TimePoint) override {
    const auto& request = held->request();
    const auto until = env_.now() + within;
    const bool ours = store_->offer(request.name, request.owner.id, std::move(proof), until);
    co_return ours ? Failure{} : failure(Error::not_holder);
  }

  asio::awaitable<Result<LockStatus>> inspect(std::string name, TimePoint) override {
    Result<LockStatus> result;
    result.value = store_->inspect(name, env_.now());
    co_return result;
  }

  asio::awaitable<Result<std::vector<LockStatus>>> list(std::string prefix, TimePoint) override {
    Result<std::vector<LockStatus>> result;
    result.value.emplace();
    for (const auto& name : store_->held_names()) {
      if (is_below(name, prefix)) result.value->push_back(store_->inspect(name, env_.now()));
    }
    co_return result;
  }

  asio::awaitable<EvictAnswer> evict(EvictRequest request, TimePoint) override {
    EvictAnswer answer;
    if (!store_->record(request.name).empty()) {
      answer.failure = failure(Error::sealed);
      co_return answer;
    }
    const auto* const mark = request.at_once ? nullptr : &request.mark;
    co_return evicted(request, store_->evict(request.name, request.token, mark));
  }

  asio::awaitable<AskAnswer> ask(std::string name, std::uint64_t token, Revocation how,
                                 TimePoint) override {
    AskAnswer answer;
    if (!store_->record(name).empty()) {
      answer.failure = failure(Error::sealed);
      co_return answer;
    }
    const auto asked = store_->ask(name, token, how);
    answer.token = asked.token;
    answer.heard = asked.heard ? Heard::yes : Heard::no;
    if (asked.token == 0) answer.failure = failure(Error::not_held);
    if (asked.is_another) answer.failure = failure(Error::not_holder);
    co_return answer;
  }

  asio::awaitable<Result<SemaphoreStatus>> inspect_semaphore(std::string name, TimePoint) override {
    Result<SemaphoreStatus> result;
    result.value = store_->semaphores().inspect(name, env_.now());
    co_return result;
  }

  asio::awaitable<Failure> set_limit(std::string name, std::uint32_t limit, TimePoint) override {
    store_->semaphores().set_limit(name, limit);
    co_return Failure{};
  }

  asio::awaitable<Result<std::vector<SemaphoreStatus>>> list_semaphores(std::string prefix,
                                                                        TimePoint) override {
    Result<std::vector<SemaphoreStatus>> result;
    result.value.emplace();
    auto& semaphores = store_->semaphores();
    for (const auto& name : semaphores.names()) {
      if (is_below(name, prefix)) result.value->push_back(semaphores.inspect(name, env_.now()));
    }
    co_return result;
  }

  asio::awaitable<EvictAnswer> evict_permits(EvictRequest request, TimePoint) override {
    const auto* const mark = request.at_once ? nullptr : &request.mark;
    co_return evicted(request, store_->semaphores().evict(request.name, request.token, mark));
  }

  bool watch_holder(const std::string& name) override {
    store_->watch(name, this, [box = std::weak_ptr(mailbox_), name] {
      const auto to = box.lock();
      if (!to) return;
      to->post([box, name] {
        const auto mailbox = box.lock();
        if (mailbox && mailbox->sink != nullptr) mailbox->sink->on_holder_changed(name);
      });
    });
    watched_.insert(name);
    return true;
  }

  void unwatch_holder(const std::string& name) noexcept override {
    if (store_ && watched_.erase(name) != 0) store_->unwatch(name, this);
  }

  asio::awaitable<RecordAnswer> record(std::string name, TimePoint) override {
    co_return found(store_->record(name));
  }

  asio::awaitable<RecordAnswer> seal(ClaimPtr held, std::string record, TimePoint) override {
    auto& mine = static_cast<MemoryClaim&>(*held);
    const auto& request = mine.request();
    auto answer = answer_of(
        store_->seal(request.name, request.owner.id, std::move(record), request.gate.get()));
    if (!answer.gate) mine.granted = false;
    co_return answer;
  }

  asio::awaitable<RecordAnswer> set_record_under(GatePtr gate, std::string name, std::string from,
                                                 std::optional<std::string> to,
                                                 std::uint64_t min_token, TimePoint) override {
    co_return answer_of(
        store_->set_record(name, from, to.value_or(std::string()), min_token, gate.get()));
  }

  asio::awaitable<Result<std::vector<std::string>>> claimed_names(std::string prefix,
                                                                  TimePoint) override {
    Result<std::vector<std::string>> result;
    result.value = store_->claimed_names();
    std::erase_if(*result.value, [&](const auto& name) { return !is_below(name, prefix); });
    co_return result;
  }

  asio::awaitable<Result<std::uint64_t>> highest_token(TimePoint) override {
    Result<std::uint64_t> result;
    result.value = store_->highest_token();
    co_return result;
  }

  asio::awaitable<RecordAnswer> raise(ClaimPtr held, std::uint64_t min_token, TimePoint) override {
    const auto& request = held->request();
    if (min_token >= kTokenEnd - 1) {
      RecordAnswer refused;
      refused.status = RecordStatus::failed;
      refused.failure = failure(Error::token_too_low);
      co_return refused;
    }
    const bool ours = store_->raise(request.name, request.owner.id, min_token);
    co_return answer_of({ours, {}});
  }

  asio::awaitable<RecordAnswer> note(std::string key, TimePoint) override {
    co_return found(store_->note(key));
  }

  asio::awaitable<RecordAnswer> set_note(std::string key, std::optional<std::string> from,
                                         std::optional<std::string> to, TimePoint) override {
    co_return answer_of(
        store_->set_note(key, from.value_or(std::string()), to.value_or(std::string())));
  }

  asio::awaitable<Result<std::chrono::milliseconds>> time(TimePoint) override {
    Result<std::chrono::milliseconds> result;
    result.value = std::chrono::milliseconds(env_.wall_clock_ms());
    co_return result;
  }

  MigrationStore& migration() noexcept override { return *this; }
  Job leave_behind(ClaimPtr claim) override {
    static_cast<MemoryClaim&>(*claim).granted = false;
    const auto& request = claim->request();
    return [store = store_, name = request.name, id = request.owner.id, permits = request.permits] {
      if (permits != 0) {
        store->semaphores().release(name, id);
      } else {
        store->release(name, id);
      }
    };
  }

  asio::awaitable<void> close(TimePoint) override {
    forget_watches();
    store_.reset();
    co_return;
  }

 private:
  static EvictAnswer evicted(const EvictRequest& request,
                             const std::optional<std::uint64_t>& other) {
    EvictAnswer answer;
    if (other) answer.failure = failure(*other == 0 ? Error::not_held : Error::not_holder);
    answer.is_free = !other && request.at_once;
    return answer;
  }

  ClaimAnswer claim_permits(const std::shared_ptr<MemoryClaim>& claim) {
    const auto& request = claim->request();
    auto grant = store_->semaphores().claim(request, env_.now(), wake_of(claim));
    claim->granted = grant.granted;
    ClaimAnswer answer;
    answer.status = grant.granted         ? ClaimStatus::granted
                    : grant.refused.error ? ClaimStatus::failed
                    : request.queue       ? ClaimStatus::waiting
                                          : ClaimStatus::busy;
    if (grant.granted) answer.token = grant.token;
    answer.failure = std::move(grant.refused);
    return answer;
  }

  ClaimAnswer adopt(const std::shared_ptr<MemoryClaim>& claim) {
    const auto& request = claim->request();
    const auto adopted = store_->adopt(request, env_.now(), wake_of(claim));
    ClaimAnswer answer;
    claim->granted = adopted.token != 0;
    answer.status = claim->granted ? ClaimStatus::granted : ClaimStatus::failed;
    if (claim->granted) {
      answer.token = adopted.token;
      if (request.tell_contention) listen(claim);
      if (request.tell_asked) listen_for_askings(claim);
    } else {
      answer.failure = not_adoptable(adopted.holder, request.adoption->token);
    }
    return answer;
  }

  SharedStore::Wake wake_of(const std::shared_ptr<MemoryClaim>& claim) {
    return [store = std::weak_ptr(store_), box = std::weak_ptr(mailbox_),
            weak = std::weak_ptr(claim)] {
      const auto to = box.lock();
      if (!to) return;
      to->post([store, box, weak] {
        const auto mine = weak.lock();
        const auto mailbox = box.lock();
        const auto shared = store.lock();
        if (!mine || !mailbox || mailbox->sink == nullptr || !shared) return;
        mine->moved.notify();
        const auto& request = mine->request();
        const bool holds = request.permits != 0
                               ? shared->semaphores().holds(request.name, request.owner.id)
                               : shared->holds(request.name, request.owner.id);
        const auto mark = request.permits != 0
                              ? shared->semaphores().mark_of(request.name, request.owner.id)
                              : shared->mark_of(request.name, request.owner.id);
        if (mine->granted && mark && !std::exchange(mine->is_break_told, true)) {
          mailbox->sink->on_claim_broken(mine, break_words(*mark));
        }
        if (mine->granted && !holds) {
          mine->granted = false;
          mailbox->sink->on_claim_gone(mine, LossReason::broken);
        }
      });
    };
  }

  void listen(const std::shared_ptr<MemoryClaim>& claim) {
    const auto& request = claim->request();
    SharedStore::Wake contended = [box = std::weak_ptr(mailbox_), weak = std::weak_ptr(claim)] {
      const auto to = box.lock();
      if (!to) return;
      to->post([box, weak] {
        const auto mine = weak.lock();
        const auto mailbox = box.lock();
        if (mine && mailbox && mailbox->sink != nullptr) mailbox->sink->on_contended(mine);
      });
    };
    if (!store_->tell_contention(request.name, request.owner.id, std::move(contended))) {
      mailbox_->sink->on_contended(claim);
    }
  }

  void listen_for_askings(const std::shared_ptr<MemoryClaim>& claim) {
    const auto& request = claim->request();
    store_->tell_asked(
        request.name, request.owner.id,
        [box = std::weak_ptr(mailbox_), weak = std::weak_ptr(claim)](const Revocation& how) {
          const auto to = box.lock();
          if (!to) return;
          to->post([box, weak, how] {
            const auto mine = weak.lock();
            const auto mailbox = box.lock();
            if (mine && mailbox && mailbox->sink != nullptr) mailbox->sink->on_asked(mine, how);
          });
        });
  }

  void forget_watches() noexcept {
    if (!store_) return;
    for (const auto& name : watched_) store_->unwatch(name, this);
    watched_.clear();
  }

  Env& env_;
  const std::string name_;
  std::shared_ptr<Mailbox> mailbox_;
  std::shared_ptr<SharedStore> store_;
  std::set<std::string> watched_;
  const Capabilities capabilities_ = declare();
};

}  // namespace

const BackendDescriptor& backend() {
  static const BackendDescriptor descriptor{
      .name = "memory",
      .schemes = {"memory"},
      .address = BackendDescriptor::Address::name,
      .default_port = 0,
      .options = {cache_option(), max_queue_option()},
      .lease_option = {},
      .refused_schemes = {},
      .create = [](const StoreOptions& options, Env& env,
                   EventSink& sink) -> std::unique_ptr<Backend> {
        return std::make_unique<MemoryBackend>(options, env, sink);
      },
      .path_schemes = {},
      .has_shared_mode = true,
      .has_permits = true,
      .has_adoption = true};
  return descriptor;
}

}  // namespace dlock::memory
