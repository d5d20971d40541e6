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
  bool evict(const std::string& name, std::uint64_t token) {
    try {
      inside.evict(name, token);
      return true;
    } catch (const LockError&) {
      return false;
    }
  }
  /// Whose lease is over holds nothing, though nobody has looked yet.
  void drop_overdue(const std::string& name) {
    const auto token = server->drop_overdue(name, BoottimeClock::now());
    if (token) evict(name, *token);
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
      }};
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
  impl_->drop_overdue(name);
  const auto token = impl_->server->drop(name, reason);
  if (!token) return false;
  // Who gave it back just then was told that it was too late.
  if (impl_->evict(name, *token)) impl_->server->wait_until_told(name, *token);
  return true;
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

bool Store::hold(const std::string& name) {
  impl_->drop_overdue(name);
  auto held = impl_->inside.lock(name)->try_acquire();
  if (!held) return false;
  const std::lock_guard lock(impl_->mutex);
  impl_->of_somebody_else[name] = std::move(*held);
  return true;
}

void Store::let_go(const std::string& name) {
  LockHandle held;
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->of_somebody_else.find(name);
  if (found == impl_->of_somebody_else.end()) return;
  held = std::move(found->second);
  impl_->of_somebody_else.erase(found);
  held.release();
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
  return impl_->server->holder_token(name, BoottimeClock::now());
}

std::size_t Store::waiting(const std::string& name) const {
  return impl_->inside.status(name).waiting.size();
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

bool Store::wait_for_waiting(const std::string& name, std::size_t count,
                             milliseconds patience) const {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (waiting(name) < count) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

}  // namespace dlock::testing
