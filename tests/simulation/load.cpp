// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/load.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <fstream>
#include <list>

#include "core/store/acquisition.hpp"
#include "tests/simulation/host.hpp"

namespace dlock::simulation {
namespace {

/// As many a program asks for at once.
constexpr std::uint64_t kAtOnce = 64;

std::uint64_t memory_in_use() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

class Holder {
 public:
  Holder(World& world, SimStore& kind, const LoadOptions& options, int number)
      : process_(world, fmt::format("p{}", number), {}),
        host_(std::make_shared<SimHost>(process_)),
        locks_(options.locks / static_cast<std::uint64_t>(options.programs)) {
    core::StoreSettings settings;
    if (kind.descriptor().lease_option == "lease") settings.lease = options.lease;
    store_ = make_store(host_, kind, settings);
    handles_.reserve(locks_);
  }

  void begin() {
    process_.deliver([this] {
      while (asked_ < std::min(locks_, kAtOnce)) ask();
    });
  }
  void end() {
    process_.deliver([this] { handles_.clear(); });
  }
  void close() { asio::co_spawn(process_.executor(), store_->close(), asio::detached); }
  void destroy() { store_.reset(); }

  bool has_all() const noexcept { return handles_.size() == locks_; }
  std::uint64_t lost() {
    return static_cast<std::uint64_t>(
        std::count_if(handles_.begin(), handles_.end(),
                      [](auto& handle) { return handle.state() == HandleState::lost; }));
  }

 private:
  void ask() {
    if (asked_ == locks_) return;
    core::Acquisition::Request request;
    request.name = fmt::format("{}/{}", process_.name(), asked_++);
    const auto& settings = store_->setup().settings;
    request.limits.connect_timeout = settings.connect_timeout;
    request.limits.retry = settings.retry;
    store_->acquire(std::make_shared<core::Acquisition>(store_, std::move(request),
                                                        [this](error_code ec, LockHandle handle) {
                                                          if (ec) return;
                                                          handles_.push_back(std::move(handle));
                                                          if (asked_ < locks_)
                                                            process_.deliver([this] { ask(); });
                                                        }));
  }

  Process process_;
  std::shared_ptr<SimHost> host_;
  const std::uint64_t locks_;
  std::shared_ptr<core::Store> store_;
  std::uint64_t asked_ = 0;
  std::vector<LockHandle> handles_;
};

class LoadRun {
 public:
  explicit LoadRun(const LoadOptions& options)
      : world_(1), network_(world_), store_(options.kind->make(world_, network_, true)) {
    store_->on_command = [this](std::string_view what, std::size_t bytes) { count(what, bytes); };
    const auto before = memory_in_use();
    for (int i = 1; i <= options.programs; ++i) {
      holders_.emplace_back(world_, *store_, options, i);
    }
    begin("acquire");
    for (auto& holder : holders_) holder.begin();
    run_until([this] {
      return std::all_of(holders_.begin(), holders_.end(),
                         [](auto& holder) { return holder.has_all(); });
    });
    const auto locks = std::max<std::uint64_t>(options.locks, 1);
    result_.bytes_a_lock = (std::max(memory_in_use(), before) - before) / locks;
    begin("hold");
    world_.run_until(world_.now() + 2 * std::max<Duration>(options.lease, store_->lease()));
    for (auto& holder : holders_) result_.lost += holder.lost();
    begin("release");
    for (auto& holder : holders_) holder.end();
    run_until([this] { return is_empty(); });
    end_phase();
    store_->on_command = {};
    for (auto& holder : holders_) holder.close();
    world_.run_until(world_.now() + seconds(60));
    for (auto& holder : holders_) holder.destroy();
    world_.run_until(world_.now() + store_->longest_lease() * 2);
    for (const auto& key : store_->belongings().keys) {
      if (!store_->is_permitted(key)) ++result_.left;
    }
  }
  LoadResult result() { return std::move(result_); }

 private:
  void begin(std::string name) {
    if (!result_.phases.empty()) end_phase();
    LoadPhase phase;
    phase.name = std::move(name);
    result_.phases.push_back(std::move(phase));
    began_ = world_.now();
    seconds_.clear();
    hundredths_.clear();
  }
  void end_phase() {
    auto& phase = result_.phases.back();
    phase.took = world_.now() - began_;
    for (const auto& [when, count] : seconds_) {
      phase.most_a_second = std::max(phase.most_a_second, count);
    }
    for (const auto& [when, count] : hundredths_) {
      phase.most_a_hundredth = std::max(phase.most_a_hundredth, count);
    }
  }
  void count(std::string_view what, std::size_t bytes) {
    auto& kind = result_.phases.back().by_kind[std::string(what)];
    ++kind.requests;
    kind.bytes += bytes;
    const auto since = world_.now() - began_;
    ++seconds_[since / seconds(1)];
    ++hundredths_[since / milliseconds(10)];
    last_ = world_.now();
  }
  /// Nothing has been asked for a while, after all that was to be given back was.
  bool is_empty() const { return world_.now() > last_ + milliseconds(500); }
  template <class Predicate>
  void run_until(Predicate done) {
    const auto end = world_.now() + std::chrono::hours(10);
    do {
      world_.run_until(world_.now() + milliseconds(100));
    } while (!done() && world_.now() < end);
  }

  World world_;
  Network network_;
  std::unique_ptr<SimStore> store_;
  std::list<Holder> holders_;
  LoadResult result_;
  TimePoint began_{};
  TimePoint last_{};
  std::map<std::int64_t, std::uint64_t> seconds_;
  std::map<std::int64_t, std::uint64_t> hundredths_;
};

}  // namespace

LoadResult load(const LoadOptions& options) { return LoadRun(options).result(); }

}  // namespace dlock::simulation
