// SPDX-License-Identifier: Apache-2.0
#include "compare/suite/stage.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "compare/drivers/address.hpp"
#include "compare/drivers/worker.hpp"
#include "compare/drivers/zookeeper_session.hpp"

namespace dlock::compare {

namespace {

using boost::json::object;
using checkers::EventKind;
using testkit::Direction;
using testkit::within;

/// Beyond the leases that a step grants: for a machine that is busy with other things.
constexpr auto kSlack = std::chrono::seconds(6);

std::string text(const boost::json::value& value) { return std::string(value.as_string()); }

bool lists(const object& scenario, const char* field, const std::string& name) {
  const auto* list = scenario.if_contains(field);
  if (list == nullptr) return false;
  const auto& names = list->as_array();
  return std::any_of(names.begin(), names.end(),
                     [&](const auto& one) { return one.as_string() == name; });
}

TimePoint moment(const boost::json::value& nanoseconds) {
  return TimePoint(Duration(nanoseconds.to_number<std::int64_t>()));
}

std::string unique_id() {
  static std::atomic<int> last{0};
  return fmt::format("{}-{}", ::getpid(), ++last);  // others may compare on the same store
}

}  // namespace

GuardedResource::GuardedResource(std::filesystem::path socket)
    : path_(std::move(socket)), socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path_.string();
  if (text.size() >= sizeof address.sun_path) throw std::runtime_error("path too long: " + text);
  std::memcpy(address.sun_path, text.c_str(), text.size());
  if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw std::system_error(errno, std::generic_category(), "bind");
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { receive(stop); });
}

GuardedResource::~GuardedResource() {
  take();
  ::close(socket_);
}

std::vector<Arrival> GuardedResource::take() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  return std::exchange(incoming_plans_, {});
}

void GuardedResource::receive(const std::stop_token& stop) {
  std::array<char, 128> buffer{};
  while (true) {
    pollfd polled{socket_, POLLIN, 0};
    if (::poll(&polled, 1, 20) <= 0) {
      if (stop.stop_requested()) return;  // only when all that came is taken
      continue;
    }
    const ssize_t size = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (size <= 0) continue;
    Arrival arrival;
    arrival.at = BoottimeClock::now();
    const char* end = buffer.data() + size;
    const auto grant = std::from_chars(buffer.data(), end, arrival.grant);
    std::from_chars(std::min(grant.ptr + 1, end), end, arrival.token);
    incoming_plans_.push_back(arrival);
  }
}

Stage::Stage(Context& context, const object& scenario, Store& store, DriverProgram driver)
    : context_(context),
      scenario_(scenario),
      store_(store),
      driver_(std::move(driver)),
      id_(unique_id()),
      resource_(context.folder / ("resource-" + id_)) {}

void Stage::play() {
  declared_ = run_worker(context_, {{"program", "inspect"}, {"url", store_.url()}});
  for (const auto& name : scenario_.at("clients").as_array()) {
    const bool proxied = lists(scenario_, "through_proxy", text(name));
    start_client(text(name), proxied);
  }
  for (const auto& words : scenario_.at("steps").as_array()) step(words.as_array());
  listen(within(std::chrono::milliseconds(50)));
  for (auto& [name, client] : clients_) client.worker->process().kill_and_wait();
  outcome_.writes = resource_.take();
}

void Stage::start_client(const std::string& name, bool through_proxy) {
  Client& client = clients_[name];
  std::string url = store_.url();
  if (through_proxy && store_.port() != 0) {
    client.proxy = std::make_unique<testkit::FaultProxy>(store_.port());
    url = store_.url_through(client.proxy->port());
  }
  client.first_grant = static_cast<std::int64_t>(clients_.size()) * 1000;
  object job{{"program", "guard"},
             {"driver", driver_.name},
             {"url", url},
             {"lock", "dlock-compare/" + id_},
             {"resource", (context_.folder / ("resource-" + id_)).string()},
             {"first_grant", client.first_grant},
             {"lease_ms", store_.lease().count()}};
  if (driver_.name == "naive") {
    job["naive"] = scenario_.at("naive");
    if (const auto* lease = scenario_.if_contains("lease_ms")) job["lease_ms"] = *lease;
    if (name == "A" && scenario_.contains("pause_between")) job["pause_between"] = 1;
  } else if (const auto& plant = context_.options.plant; !plant.empty()) {
    // One client is enough to break a promise; of two that dawdle the order would be right again.
    if ((plant == "dawdle") == (name == "B")) job["plant"] = plant;
  }
  if (const auto* by = scenario_.if_contains("ours_hold_by")) job["hold_by"] = *by;
  client.worker = std::make_unique<Worker>(context_, job, driver_.command);
  client.worker->await("ready", within(kWorkerPatience));
}

// What a step is: a verb and its words; `naive` or `ours` before it restricts it to that driver.
void Stage::step(const boost::json::array& words) {
  context_.interrupt.check();
  if (words.at(0) == "naive" || words.at(0) == "ours") {
    if ((words.at(0) == "naive") != (driver_.name == "naive")) return;
    return step(boost::json::array(words.begin() + 1, words.end()));
  }
  const std::string verb = text(words.at(0));
  const auto number = [&](std::size_t at, double otherwise) {
    return words.size() > at ? words.at(at).to_number<double>() : otherwise;
  };
  if (verb == "rest") {
    return listen(within(std::chrono::milliseconds(words.at(1).to_number<std::int64_t>())));
  }
  if (verb == "await" || verb == "watch") {
    await(text(words.at(1)), text(words.at(2)), number(3, 0), verb == "await");
    return;
  }
  if (verb == "release_all") return release_all(words.at(1).to_number<std::int64_t>());
  if (verb == "remove_parent") {
    ZooKeeperSession session(parse_address(store_.url()).hosts);
    return session.remove("/dlock/dlock-compare/" + id_);
  }
  if (verb == "fault" || verb == "heal") {
    if (verb == "fault") mark(EventKind::faulted);
    store_.apply(text(words.at(1)));
    if (verb == "heal") mark(EventKind::healed);
    return;
  }
  const std::string name = text(words.at(1));
  if (verb == "cut" || verb == "mend" || verb == "lose_reply" || verb == "mute") {
    return act_on_network(verb, name);
  }
  act_on_client(verb, name);
}

void Stage::act_on_client(const std::string& verb, const std::string& name) {
  Client& client = clients_.at(name);
  if (verb == "acquire" || verb == "release") return client.worker->command(verb);
  if (verb == "foreign_release") return client.worker->command("release_by_another_thread");
  if (verb == "kill") {
    listen(within(std::chrono::milliseconds(1)));
    client.alive = false;
    mark(EventKind::faulted, name);
    mark(EventKind::died, name);  // before, as somebody may be granted the lock before we know
    client.worker->process().kill_and_wait();
    return;
  }
  if (verb == "pause") {
    mark(EventKind::faulted, name);
    client.worker->process().pause();
    return;
  }
  if (verb == "resume") {
    mark(EventKind::healed);
    client.worker->process().resume();
    return;
  }
  throw std::invalid_argument("a scenario has an unknown step: " + verb);
}

void Stage::act_on_network(const std::string& verb, const std::string& name) {
  auto& proxy = *clients_.at(name).proxy;
  if (verb == "cut" || verb == "mend") {
    const bool cut = verb == "cut";
    if (cut) mark(EventKind::faulted, name);
    if (!cut) proxy.drop_all();  // a partition this long ends with new connections
    proxy.hold(Direction::to_server, cut);
    proxy.hold(Direction::to_client, cut);
    if (!cut) mark(EventKind::healed);
    return;
  }
  mark(EventKind::faulted);
  if (verb == "mute") return proxy.swallow(Direction::to_client, true);
  proxy.on_data(
      [done = false](Direction direction, testkit::ConnectionId, std::string_view) mutable {
        if (done || direction == Direction::to_server) return testkit::Verdict::forward;
        done = true;
        return testkit::Verdict::reset;
      });
}

bool Stage::await(const std::string& name, const std::string& event, double leases, bool patient) {
  const auto lease = std::chrono::duration<double>(store_.lease()) * leases;
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(lease);
  const auto deadline = within(patient ? nanoseconds + kSlack : nanoseconds);
  const std::string key = name + " " + event;
  while (said_[key] == 0) {
    if (testkit::Clock::now() >= deadline) {
      if (patient) {
        outcome_.missed.push_back(
            fmt::format("client {} was to come to '{}' and did not, {:.0f} s "
                        "after it was due",
                        name, event, std::chrono::duration<double>(kSlack).count()));
      }
      return false;
    }
    listen(within(std::chrono::milliseconds(5)));
  }
  if (patient) --said_[key];  // what is only watched may be awaited later
  return true;
}

/// Whoever has the lock gives it back, as often as that.
void Stage::release_all(std::int64_t count) {
  std::string holder = text(scenario_.at("clients").at(0));
  for (std::int64_t i = 0; i <= count; ++i) {
    clients_.at(holder).worker->command("release");
    if (i == count) return static_cast<void>(await(holder, "released", 1, true));
    holder.clear();
    const auto deadline = within(store_.lease() * 3 + kSlack);
    while (holder.empty() && testkit::Clock::now() < deadline) {
      listen(within(std::chrono::milliseconds(5)));
      for (const auto& [name, client] : clients_) {
        if (said_[name + " granted"] > 0 && name != "A") holder = name;
      }
    }
    if (holder.empty()) {
      outcome_.missed.emplace_back("the lock was given back, and nobody in line was granted it");
      return;
    }
    --said_[holder + " granted"];
    listen(within(std::chrono::milliseconds(60)));
  }
}

void Stage::listen(testkit::Deadline until) {
  do {
    bool silent = true;
    for (auto& [name, client] : clients_) {
      if (!client.alive) continue;
      while (const auto event = client.worker->next(testkit::Clock::now())) {
        hear(name, *event);
        silent = false;
      }
    }
    context_.interrupt.check();
    if (silent) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  } while (testkit::Clock::now() < until);
}

void Stage::hear(const std::string& name, const object& said) {
  static const std::map<std::string_view, EventKind> kinds{
      {"wanted", EventKind::wanted},       {"granted", EventKind::granted},
      {"extended", EventKind::extended},   {"releasing", EventKind::releasing},
      {"told_lost", EventKind::told_lost},
  };
  const std::string what = text(said.at("event"));
  ++said_[name + " " + what];
  if (what == "late_release") ++said_[name + " released"];
  object copy = said;
  copy["client"] = name;
  events_.push_back(std::move(copy));
  const auto kind = kinds.find(what);
  if (kind == kinds.end()) return;
  checkers::Event event;
  event.at = moment(said.at("at"));
  event.kind = kind->second;
  event.name = "lock";
  event.client = name;
  if (event.kind != EventKind::wanted) {
    event.grant = said.at("grant").to_number<checkers::GrantId>();
  }
  if (const auto* token = said.if_contains("token"))
    event.token = token->to_number<std::uint64_t>();
  if (const auto* until = said.if_contains("until")) event.until = moment(*until);
  outcome_.history.push_back(std::move(event));
}

void Stage::mark(EventKind kind, const std::string& client) {
  checkers::Event event;
  event.at = BoottimeClock::now();
  event.kind = kind;
  event.client = client;
  outcome_.history.push_back(event);
  const char* name = kind == EventKind::died     ? "died"
                     : kind == EventKind::healed ? "healed"
                                                 : "fault";
  events_.push_back(
      object{{"event", name}, {"at", event.at.time_since_epoch().count()}, {"client", client}});
}

bool Stage::was_granted(const std::string& client) const {
  return std::any_of(outcome_.history.begin(), outcome_.history.end(), [&](const auto& event) {
    return event.kind == EventKind::granted && event.client == client;
  });
}

bool Stage::was_told_lost(const std::string& client) const {
  return std::any_of(outcome_.history.begin(), outcome_.history.end(), [&](const auto& event) {
    return event.kind == EventKind::told_lost && event.client == client;
  });
}

}  // namespace dlock::compare
