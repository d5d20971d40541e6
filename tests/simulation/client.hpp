// SPDX-License-Identifier: Apache-2.0
//
// Client: one simulated program that uses locks: a process, its stores, and several actors in it,
// each of which wants a lock, works under it, gives it back, and wants one again.
#pragma once

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/store/acquisition.hpp"
#include "core/store/cached_lock.hpp"
#include "dlock/spi/signal.hpp"
#include "tests/simulation/host.hpp"
#include "tests/simulation/mail.hpp"
#include "tests/simulation/recorder.hpp"
#include "tests/simulation/side.hpp"
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
  /// Of `locks`, the two of one name, in two stores; now and then just these.
  std::vector<std::string> twins = {};
  /// Locks stay with a program when they are given back.
  bool cached = false;
  core::CachedLock::Limits keep = {};
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

/// What a program has on one of the stores.
struct Seat {
  Side& side;
  Calls calls = {};
  std::shared_ptr<core::Store> store = nullptr;
  /// An operator's break that it sent may strike until then.
  TimePoint breaking_until{};
};

class Client {
 public:
  Client(World& world, Recorder& recorder, std::list<Side>& sides, const Work& work,
         std::string name, Process::Clock clock);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void start();
  /// The actors finish what they are at and end.
  void stop() noexcept { stopping_ = true; }
  bool is_idle() const noexcept { return running_ == 0; }
  /// Killed: unseen by everybody it takes itself apart.
  void crash();
  /// Closes the stores; true when done, after the world has run on.
  void close();
  bool is_closed() const noexcept { return closed_ == seats_.size(); }
  /// After that: the stores' end.
  void destroy();

  Process& process() noexcept { return process_; }
  std::list<Seat>& seats() noexcept { return seats_; }

 private:
  /// What a holder has heard of its loss: by a callback, by asking, or both.
  struct Told {
    bool noticed = false;
    int callbacks = 0;
  };
  struct Outcome {
    error_code ec;
    LockHandle handle;
    GrantId grant = 0;
    std::shared_ptr<Told> told;
  };

  asio::awaitable<void> act(std::string actor);
  asio::awaitable<void> act_with_several(std::string actor);
  asio::awaitable<void> look_around();
  asio::awaitable<void> break_lock(Seat& seat, std::string lock, TimePoint deadline);
  /// `letter`: null, or the exported grant that it wants to adopt.
  OneShot<Outcome> want(const std::string& actor, const std::string& lock, LetterPtr letter);
  std::function<void()> start(const std::string& lock, core::Acquisition::Request request,
                              detail::AcquireHandler handler);
  OneShot<Outcome> want_several(const std::string& actor, std::shared_ptr<Parts> parts);
  void judge_several(LockHandle& handle, const Parts& parts, std::size_t asked);
  asio::awaitable<void> work(std::string lock, Outcome& held);
  asio::awaitable<void> read_on(std::string lock, Outcome& held);
  /// To whoever gets the letter; he may believe on for a while, if he is let.
  asio::awaitable<void> send_on(std::string lock, Outcome& held);
  asio::awaitable<void> give_back(Outcome held);
  asio::awaitable<void> think();
  Duration hold_time();
  bool ends() const;
  /// Of a lock, as the observer calls it.
  Seat& seat_of(const std::string& lock);
  /// As that store knows it.
  std::string some_name(const Seat& seat);
  std::string some_lock() { return work_.locks[world_.below(work_.locks.size())]; }

  World& world_;
  Recorder& recorder_;
  const Work& work_;
  std::list<Seat> seats_;
  Process process_;
  std::shared_ptr<SimHost> host_;
  std::map<std::string, std::shared_ptr<core::CachedLock>> cached_;
  int running_ = 0;
  bool stopping_ = false;
  std::size_t closed_ = 0;
};

}  // namespace dlock::simulation
