// SPDX-License-Identifier: Apache-2.0
//
// ZooKeeper's floor, on the single-threaded C client, a session per client: create and list in one
// round trip, watch the predecessor, take its end for the turn, delete.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

#include "compare/drivers/floor.hpp"
#include "compare/drivers/zookeeper_session.hpp"

namespace dlock::compare {
namespace {

constexpr const char* kRoot = "/dlock-floor";

class ZooKeeperClient : public Client {
 public:
  ZooKeeperClient(const Address& address, std::string lock) : session_(address.hosts) {
    std::replace(lock.begin(), lock.end(), '/', '_');
    parent_ = fmt::format("{}/{}", kRoot, lock);
    session_.make(kRoot);
    session_.make(parent_);
  }

  void acquire() override {
    auto place = session_.join_line(parent_, "n-");
    own_ = place.own.path;
    const auto name = own_.substr(own_.rfind('/') + 1);
    const auto mine = std::find(place.children.begin(), place.children.end(), name);
    if (mine == place.children.end()) throw std::runtime_error("zookeeper: our node is not there");
    if (mine == place.children.begin()) return;
    bool gone = false;
    if (session_.watch(parent_ + "/" + *std::prev(mine), [&gone] { gone = true; })) {
      session_.drive_until([&gone] { return gone; });
    }
  }
  void release() override { session_.remove(own_); }

 private:
  ZooKeeperSession session_;
  std::string parent_;
  std::string own_;
};

/// Nodes of one session, and one write each quarter of its timeout, whatever their number.
class Crowded : public Crowd {
 public:
  Crowded(const Address& address, std::chrono::milliseconds lease)
      : session_(address.hosts, lease), lease_(lease) {
    session_.make(kRoot);
    session_.make(parent());
  }
  ~Crowded() override { stop_and_join(); }

  void hold(int count) {
    for (int i = 0; i < count; ++i) session_.create_sequential(parent() + "/n-");
    start();
  }
  void wait(int count) {
    std::string last = session_.create_sequential(parent() + "/n-").path;
    for (int i = 0; i < count; ++i) {
      session_.watch(last, [] {});
      last = session_.create_sequential(parent() + "/n-").path;
    }
    start();
  }

 private:
  static std::string parent() { return fmt::format("{}/many", kRoot); }
  void start() {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        session_.prove(parent());
        const auto next = ZooKeeperSession::Clock::now() + lease_ / 4;
        session_.drive_until(
            [&] { return stop.stop_requested() || ZooKeeperSession::Clock::now() >= next; });
      }
    });
  }
  void stop_and_join() { thread_ = {}; }

  ZooKeeperSession session_;
  std::chrono::milliseconds lease_;
  std::jthread thread_;
};

class ZooKeeperFloor : public Driver {
 public:
  ZooKeeperFloor(Address address, std::chrono::milliseconds lease)
      : address_(std::move(address)), lease_(lease) {}

  std::unique_ptr<Client> client(const std::string& lock, Use) override {
    return std::make_unique<ZooKeeperClient>(address_, lock);
  }
  std::unique_ptr<Crowd> holders(int count) override {
    auto crowd = std::make_unique<Crowded>(address_, lease_);
    crowd->hold(count);
    return crowd;
  }
  std::unique_ptr<Crowd> waiters(int count) override {
    auto crowd = std::make_unique<Crowded>(address_, lease_);
    crowd->wait(count);
    return crowd;
  }

 private:
  Address address_;
  std::chrono::milliseconds lease_;
};

}  // namespace

std::unique_ptr<Driver> zookeeper_floor(const Address& address, std::chrono::milliseconds lease) {
  return std::make_unique<ZooKeeperFloor>(address, lease);
}

}  // namespace dlock::compare
