// SPDX-License-Identifier: Apache-2.0
//
// The commands. What needs a hand inside the store (to drop a grant, to hold a lock as somebody
// else, to count who waits) is done by a manager of our own on the memory store below.
#include "dlock/testing/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "dlock/memory.hpp"
#include "dlock/spi/error.hpp"
#include "testing/backend.hpp"
#include "testing/server.hpp"

namespace dlock::testing {
namespace {

using std::chrono::milliseconds;

OpenOptions on_the_memory_store() {
  OpenOptions options;
  options.backends = {&memory::backend()};
  options.log = [](LogLevel, std::string_view) {};
  options.log_losses = false;
  return options;
}

std::vector<OptionSpec> option_specs() {
  std::vector<OptionSpec> specs;
  specs.push_back({.name = "lease",
                   .kind = OptionSpec::Kind::duration,
                   .default_value = "10s",
                   .min = 100,
                   .max = 86'400'000,
                   .choices = {},
                   .help = "how long the store keeps a lock without news from its holder"});
  return specs;
}

}  // namespace

struct Store::Impl {
  /// False: it was given back meanwhile.
  bool evict(const Thing& what, std::uint64_t token) {
    try {
      EvictOptions options;
      options.at_once = true;
      what.is_semaphore ? inside.evict_permits(what.name, token, options)
                        : inside.evict(what.name, token, options);
      return true;
    } catch (const LockError&) {
      return false;
    }
  }
  /// Whose lease is over holds nothing, though nobody has looked yet.
  void drop_overdue(const Thing& what) {
    for (const auto token : server->drop_overdue(what, BoottimeClock::now())) evict(what, token);
  }
  bool lose(const Thing& what, LossReason reason, std::optional<std::uint64_t> token) {
    drop_overdue(what);
    const auto tokens = server->drop(what, reason, token);
    // Who gave it back just then was told that it was too late.
    std::vector<std::uint64_t> evicted;
    for (const auto each : tokens) {
      if (evict(what, each)) evicted.push_back(each);
    }
    for (const auto each : evicted) server->wait_until_told(what, each);
    return !tokens.empty();
  }
  bool keep(std::map<std::string, LockHandle>& among, const std::string& name,
            std::optional<LockHandle> held) {
    if (!held) return false;
    const std::lock_guard lock(mutex);
    among[name] = std::move(*held);
    return true;
  }
  void let_go(std::map<std::string, LockHandle>& among, const std::string& name) {
    const std::lock_guard lock(mutex);
    auto found = among.extract(name);
    if (!found.empty()) found.mapped().release();
  }

  explicit Impl(Times with)
      : times(with),
        server(Server::make()),
        inside(LockManager::open("memory://" + server->name(), on_the_memory_store())) {
    inside.connect();  // from now on the store below keeps its tokens
  }

  const Times times;
  const std::shared_ptr<Server> server;
  LockManager inside;
  std::mutex mutex;
  std::map<std::string, LockHandle> of_somebody_else;
  std::map<std::string, LockHandle> permits_of_somebody_else;
};

Store::Store(Times times) : impl_(std::make_unique<Impl>(times)) {}

Store::~Store() {
  allow();
  delay(milliseconds(0));
  reachable();
}

const BackendDescriptor& Store::backend() {
  static const BackendDescriptor descriptor{
      .name = "testing",
      .schemes = {"testing"},
      .address = BackendDescriptor::Address::name,
      .default_port = 0,
      .options = option_specs(),
      .lease_option = "lease",
      .refused_schemes = {},
      .create = [](const StoreOptions& options, Env& env,
                   EventSink& sink) -> std::unique_ptr<Backend> {
        return std::make_unique<FaultyBackend>(options, env, sink);
      },
      .path_schemes = {},
      .has_shared_mode = true,
      .has_permits = true};
  return descriptor;
}

std::string Store::url() const {
  const auto lease = impl_->times.lease.count();
  const auto patience = impl_->times.patience.count();
  return fmt::format(
      "testing://{}?lease={}ms&connect_timeout={}ms&request_timeout={}ms&release_timeout={}ms",
      impl_->server->name(), lease, patience, patience, patience);
}

Config Store::config() const { return Config::from_url(url()); }

LockManager Store::open(OpenOptions options) const {
  options.backends.push_back(&backend());
  return LockManager::from_config(config(), std::move(options));
}

bool Store::lose(const std::string& name, LossReason reason) {
  return impl_->lose({name, false}, reason, std::nullopt);
}

bool Store::lose_permits(const std::string& name, LossReason reason,
                         std::optional<std::uint64_t> token) {
  return impl_->lose({name, true}, reason, token);
}

void Store::delay(milliseconds by) { impl_->server->set_delay(by); }

void Store::refuse(errc error, std::string text, std::optional<unsigned> times) {
  impl_->server->set_refusal(error, std::move(text), times);
}

void Store::allow() { impl_->server->end_refusal(); }

void Store::out_of_reach(std::string why) {
  impl_->server->set_link_failure(make_failure(errc::unavailable, std::move(why)));
}

void Store::reachable() { impl_->server->set_link_failure({}); }

bool Store::hold(const std::string& name, Mode mode) {
  impl_->drop_overdue({name, false});
  AcquireOptions options;
  options.mode = mode;
  return impl_->keep(impl_->of_somebody_else, name, impl_->inside.lock(name)->try_acquire(options));
}

void Store::let_go(const std::string& name) { impl_->let_go(impl_->of_somebody_else, name); }

bool Store::hold_permits(const std::string& name, std::uint32_t count, std::uint32_t limit) {
  impl_->drop_overdue({name, true});
  try {
    return impl_->keep(impl_->permits_of_somebody_else, name,
                       impl_->inside.semaphore(name, limit).try_acquire(count));
  } catch (const LockError&) {  // another limit, more than there are
    return false;
  }
}

void Store::let_go_permits(const std::string& name) {
  impl_->let_go(impl_->permits_of_somebody_else, name);
}

bool Store::ask_back(const std::string& name, std::optional<milliseconds> within) {
  impl_->drop_overdue({name, false});
  try {
    return impl_->inside.ask(name, std::nullopt, within).heard.value_or(false);
  } catch (const LockError&) {
    return false;
  }
}

void Store::tokens_from(std::uint64_t first) {
  impl_->server->set_min_token(first == 0 ? 0 : first - 1);
}

std::optional<std::uint64_t> Store::held(const std::string& name) const {
  {
    const std::lock_guard lock(impl_->mutex);
    const auto found = impl_->of_somebody_else.find(name);
    if (found != impl_->of_somebody_else.end()) return found->second.token();
  }
  return impl_->server->holder_token({name, false}, BoottimeClock::now());
}

std::uint64_t Store::permits_held(const std::string& name) const {
  impl_->drop_overdue({name, true});
  return impl_->inside.semaphore_status(name).held();
}

std::size_t Store::waiting(const std::string& name) const {
  return impl_->inside.status(name).waiting.size();
}

std::size_t Store::waiting_for_permits(const std::string& name) const {
  return impl_->inside.semaphore_status(name).waiting.size();
}

std::vector<Event> Store::history() const { return impl_->server->history(); }

std::size_t Store::count(Event::Kind kind, const std::string& name) const {
  const auto all = history();
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const Event& event) {
    return event.kind == kind && event.name == name;
  }));
}

bool Store::wait_for(Event::Kind kind, const std::string& name, std::size_t times,
                     milliseconds patience) const {
  return impl_->server->wait_for(kind, name, times, patience);
}

namespace {

template <class Reached>
bool wait_until(const Reached& reached, milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!reached()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

}  // namespace

bool Store::wait_for_waiting(const std::string& name, std::size_t count,
                             milliseconds patience) const {
  return wait_until([&] { return waiting(name) >= count; }, patience);
}

bool Store::wait_for_waiting_for_permits(const std::string& name, std::size_t count,
                                         milliseconds patience) const {
  return wait_until([&] { return waiting_for_permits(name) >= count; }, patience);
}

}  // namespace dlock::testing
