// SPDX-License-Identifier: Apache-2.0
//
// The programs that measure speed and size, the same for every driver.
#include <fmt/format.h>

#include <atomic>
#include <barrier>
#include <boost/json/array.hpp>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "compare/drivers/driver.hpp"
#include "compare/drivers/histogram.hpp"
#include "compare/drivers/worker.hpp"
#include "testkit/await.hpp"

namespace dlock::compare {

namespace {

using testkit::Clock;

std::unique_ptr<Driver> driver_of(const Job& job) {
  return make_driver(job.text("driver"), job.text("url"));
}

/// Runs `body(i)` on `count` threads; the first exception of any is thrown here, when all are done.
template <class Body>
void on_threads(std::size_t count, Body&& body) {
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        body(i);
      } catch (...) {
        const std::scoped_lock guard(mutex);
        if (!failure) failure = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

struct Measured {
  Histogram acquire;
  Histogram pair;
};

/// Acquire and release, back to back, until `over`, once at least; or `count` times.
void pairs_of(Client& client, const std::atomic<bool>& over, std::int64_t count, Measured& out) {
  const auto goes_on = [&](std::int64_t done) {
    return count == 0 ? done == 0 || !over.load(std::memory_order_relaxed) : done < count;
  };
  for (std::int64_t i = 0; goes_on(i); ++i) {
    const auto start = now_ns();
    client.acquire();
    const auto held = now_ns();
    client.release();
    const auto end = now_ns();
    out.acquire.add(static_cast<std::uint64_t>(held - start));
    out.pair.add(static_cast<std::uint64_t>(end - start));
  }
}

std::vector<std::unique_ptr<Client>> clients_of(Driver& driver, const Job& job, Use use) {
  std::vector<std::unique_ptr<Client>> clients;
  const auto base = job.text("lock", "speed");
  for (std::int64_t i = 0; i < job.number("clients", 1); ++i) {
    clients.push_back(driver.client(use == Use::own ? fmt::format("{}/{}", base, i) : base, use));
  }
  return clients;
}

/// `work(over)` for so long, and what it measured.
template <class Work>
void measure_for(std::chrono::milliseconds duration, Work&& work) {
  std::atomic<bool> over{false};
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  std::jthread clock([&](const std::stop_token& stop) {
    const auto end = start + duration;
    while (Clock::now() < end && !stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    over = true;
  });
  const Measured all = work(over);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  say({{"event", "result"},
       {"pairs", all.pair.count()},
       {"seconds", seconds},
       {"cpu_seconds", cpu_seconds() - cpu},
       {"acquire", all.acquire.to_json()},
       {"pair", all.pair.to_json()}});
}

void measure_pairs(const std::vector<std::unique_ptr<Client>>& clients, std::int64_t count,
                   std::chrono::milliseconds duration) {
  measure_for(duration, [&](const std::atomic<bool>& over) {
    std::vector<Measured> measured(clients.size());
    on_threads(clients.size(),
               [&](std::size_t i) { pairs_of(*clients[i], over, count, measured[i]); });
    Measured all;
    for (const auto& one : measured) {
      all.acquire.add(one.acquire);
      all.pair.add(one.pair);
    }
    return all;
  });
}

Measured turns_of(Tasks& tasks, const std::atomic<bool>& over) {
  Measured all;
  tasks.run(over, [&](std::int64_t acquire, std::int64_t pair) {
    all.acquire.add(static_cast<std::uint64_t>(acquire));
    all.pair.add(static_cast<std::uint64_t>(pair));
  });
  return all;
}

void measure_turns(const std::vector<std::unique_ptr<Client>>& clients, const Job& job) {
  const auto end = Clock::now() + job.milliseconds("duration_ms", 1000);
  const auto hold = std::chrono::microseconds(job.number("hold_us", 0));
  std::vector<boost::json::array> grants(clients.size());
  // Enough to judge by; a lock that is only a system call would make millions.
  const auto most = static_cast<std::size_t>(job.number("max_turns", 20'000));
  on_threads(clients.size(), [&](std::size_t i) {
    while (Clock::now() < end && grants[i].size() < most) {
      const auto asked = now_ns();
      clients[i]->acquire();
      const auto got = now_ns();
      if (hold.count() > 0) std::this_thread::sleep_for(hold);
      const auto gave = now_ns();
      clients[i]->release();
      grants[i].push_back({i, asked, got, gave});
    }
  });
  boost::json::array all;
  for (auto& one : grants) {
    for (auto& grant : one) all.push_back(std::move(grant));
  }
  say({{"event", "result"}, {"grants", std::move(all)}});
}

/// What one client takes in turn.
struct Sharer {
  std::unique_ptr<Client> alone;   ///< as a writer; or a permit
  std::unique_ptr<Client> reader;  ///< null: it never reads
};

std::vector<Sharer> sharers_of(Driver& driver, const Job& job) {
  std::vector<Sharer> sharers;
  const auto name = job.text("lock", "speed");
  const auto permits = static_cast<std::uint32_t>(job.number("permits", 0));
  for (std::int64_t i = 0; i < job.number("clients", 1); ++i) {
    if (permits > 0) {
      sharers.push_back({driver.permit(name, permits), nullptr});
    } else {
      sharers.push_back({driver.client(name, Use::contended), driver.reader(name)});
    }
  }
  return sharers;
}

/// Rows of `contend`, with a 1 behind those of readers.
void measure_sharing(const std::vector<Sharer>& sharers, const Job& job, std::minstd_rand& dice) {
  const auto end = Clock::now() + job.milliseconds("duration_ms", 1000);
  const auto hold = std::chrono::microseconds(job.number("hold_us", 1000));
  const auto readers = static_cast<std::uint64_t>(job.number("readers_percent", 0));
  std::vector<boost::json::array> grants(sharers.size());
  std::vector<std::minstd_rand> own;
  for (std::size_t i = 0; i < sharers.size(); ++i) own.emplace_back(dice());
  on_threads(sharers.size(), [&](std::size_t i) {
    while (Clock::now() < end) {
      const bool reads = own[i]() / 16 % 100 < readers;
      auto& client = reads ? *sharers[i].reader : *sharers[i].alone;
      const auto asked = now_ns();
      client.acquire();
      const auto got = now_ns();
      std::this_thread::sleep_for(hold);
      const auto gave = now_ns();
      client.release();
      grants[i].push_back({i, asked, got, gave, reads ? 1 : 0});
    }
  });
  boost::json::array all;
  for (auto& one : grants) {
    for (auto& grant : one) all.push_back(std::move(grant));
  }
  say({{"event", "result"}, {"grants", std::move(all)}});
}

// Each request has its time; one that starts late because another took long counts from when it
// was due, so a stall shows in every request that it delayed (coordinated omission).
void measure_open(Client& client, const Job& job) {
  const std::int64_t rate = job.number("rate", 200);
  const std::int64_t total =
      std::max<std::int64_t>(1, rate * job.number("duration_ms", 1000) / 1000);
  const auto start = Clock::now();
  Histogram latency;
  for (std::int64_t i = 0; i < total; ++i) {
    const auto due = start + std::chrono::nanoseconds(1'000'000'000 / rate) * i;
    std::this_thread::sleep_until(due);
    client.acquire();
    const auto waited = Clock::now() - due;
    client.release();
    latency.add(static_cast<std::uint64_t>(std::max<std::int64_t>(waited.count(), 0)));
  }
  say({{"event", "result"}, {"rate", rate}, {"acquire", latency.to_json()}});
}

}  // namespace

void run_pairs(const Job& job) {
  const auto driver = driver_of(job);
  const auto clients = clients_of(*driver, job, Use::own);
  const std::int64_t count = job.number("count", 0);
  std::atomic<bool> never{false};
  // Connections, scripts and parents are made by the first pairs: they are not what is measured.
  on_threads(clients.size(), [&](std::size_t i) {
    Measured own;
    pairs_of(*clients[i], never, job.number("warmup", 5), own);
  });
  await_go();
  do {
    measure_pairs(clients, count, job.milliseconds("duration_ms", 1000));
  } while (next_go());
}

void run_tasks(const Job& job) {
  const auto driver = driver_of(job);
  const auto tasks = driver->tasks(job.text("lock", "tasks"), job.number("clients", 1));
  const std::atomic<bool> at_once{true};
  turns_of(*tasks, at_once);
  await_go();
  do {
    measure_for(job.milliseconds("duration_ms", 1000),
                [&](const std::atomic<bool>& over) { return turns_of(*tasks, over); });
  } while (next_go());
}

void run_open(const Job& job) {
  const auto driver = driver_of(job);
  const auto client = driver->client(job.text("lock", "open"), Use::own);
  std::atomic<bool> never{false};
  Measured warmup;
  pairs_of(*client, never, 5, warmup);
  await_go();
  do {
    measure_open(*client, job);
  } while (next_go());
}

void run_contend(const Job& job) {
  const auto driver = driver_of(job);
  const auto clients = clients_of(*driver, job, Use::contended);
  await_go();
  do {
    measure_turns(clients, job);
  } while (next_go());
}

void run_share(const Job& job) {
  const auto driver = driver_of(job);
  const auto sharers = sharers_of(*driver, job);
  std::minstd_rand dice(std::random_device{}());
  await_go();
  do {
    measure_sharing(sharers, job, dice);
  } while (next_go());
}

void run_crowd(const Job& job) {
  const auto driver = driver_of(job);
  const int count = static_cast<int>(job.number("count", 100));
  await_go();
  const bool holders = job.text("of") == "holders";
  auto crowd = holders ? driver->holders(count) : driver->waiters(count);
  say({{"event", "there"}});
  std::string line;
  read_command(line);  // the suite looks at us meanwhile
  crowd.reset();
  say({{"event", "result"}});
}

}  // namespace dlock::compare
