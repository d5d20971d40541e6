// SPDX-License-Identifier: Apache-2.0
//
// Client: one simulated program that uses locks: a process, its store, and several actors in it,
// each of which wants a lock, works under it, gives it back, and wants one again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/store/acquisition.hpp"
#include "dlock/spi/signal.hpp"
#include "tests/simulation/host.hpp"
#include "tests/simulation/mail.hpp"
#include "tests/simulation/recorder.hpp"
#include "tests/simulation/sim_lock.hpp"
#include "tests/simulation/tap.hpp"

namespace dlock::simulation {

/// What the programs of a run do.
struct Work {
  std::vector<std::string> locks;
  int actors = 2;
  /// Some read only, and some who write read on.
  bool readers = false;
  /// They want permits of a semaphore that has so many, some of them all; 0: locks.
  std::uint32_t permits = 0;
  /// They want two of the locks at once, or more.
  bool several = false;
  /// By which grants change their program; null: they do not.
  Mail* mail = nullptr;
  bool may_export = true;
  Duration longest_think{};
  Duration longest_hold{};  ///< now and then twice a lease
  Duration lease{};
  /// How many grants make a run.
  std::uint64_t enough = 60;
  /// For a while: long pauses.
  bool resting = false;
};

class Client {
 public:
  Client(World& world, Recorder& recorder, SimStore& kind, const Work& work, std::string name,
         Process::Clock clock);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void start();
  /// The actors finish what they are at and end.
  void stop() noexcept { stopping_ = true; }
  bool is_idle() const noexcept { return running_ == 0; }
  /// Killed: unseen by everybody it takes itself apart.
  void crash();
  /// Closes the store; true when done, after the world has run on.
  void close();
  bool is_closed() const noexcept { return closed_; }
  /// After that: the store's end.
  void destroy() { store_.reset(); }

  Process& process() noexcept { return process_; }
  /// An operator's break that it sent may strike until then.
  TimePoint breaking_until() const noexcept { return breaking_until_; }
  Calls& calls() noexcept { return calls_; }

 private:
  struct Told;
  struct Outcome {
    error_code ec;
    LockHandle handle;
    GrantId grant = 0;
    std::shared_ptr<Told> told;
  };

  asio::awaitable<void> act(std::string actor);
  asio::awaitable<void> act_with_several(std::string actor);
  asio::awaitable<void> look_around();
  asio::awaitable<void> break_lock(std::string lock, TimePoint deadline);
  /// `letter`: null, or the exported grant that it wants to adopt.
  OneShot<Outcome> want(const std::string& actor, const std::string& lock, LetterPtr letter);
  OneShot<Outcome> want_several(const std::string& actor, std::shared_ptr<Parts> parts);
  asio::awaitable<void> work(std::string lock, Outcome& held);
  asio::awaitable<void> read_on(std::string lock, Outcome& held);
  /// To whoever gets the letter; he may believe on for a while, if he is let.
  asio::awaitable<void> send_on(std::string lock, Outcome& held);
  asio::awaitable<void> give_back(Outcome held);
  asio::awaitable<void> think();
  Duration hold_time();
  bool ends() const;

  World& world_;
  Recorder& recorder_;
  SimStore& kind_;
  const Work& work_;
  Calls calls_;
  Process process_;
  std::shared_ptr<SimHost> host_;
  std::shared_ptr<core::Store> store_;
  int running_ = 0;
  bool stopping_ = false;
  bool closed_ = false;
  TimePoint breaking_until_{};
};

}  // namespace dlock::simulation
