// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/support/pair_test.hpp"

#include <thread>

namespace dlock::interop {

LockManager open(const std::string& url) {
  auto options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  return LockManager::open(url, std::move(options));
}

PairTest::PairTest() : store_(peer().start_store()), locks_(open(url())), lock_(locks_.lock(name)) {
  locks_.connect();
}

testkit::ProcessOptions PairTest::our_program() const {
  testkit::ProcessOptions options;
  options.argv = {DLOCK_BINARY, "--store", url(), "hold", name};
  return options;
}

std::future<Grant> PairTest::acquire_later() {
  return std::async(std::launch::async, [lock = lock_] {
    auto handle = lock->acquire({.wait = 60s});
    return Grant{std::move(handle), Clock::now()};
  });
}

void PairTest::expect_we_do_not_get_it() {
  EXPECT_FALSE(lock_->try_acquire()) << "two holders";
  error_code ec;
  EXPECT_FALSE(lock_->acquire({.wait = 300ms}, {}, ec)) << "two holders";
  EXPECT_EQ(ec, errc::timed_out) << ec.message();
}

std::string PairTest::holder() const {
  const auto status = locks_.status(name);
  if (!status.held) return {};
  if (status.owner && !status.owner->id.empty()) return status.owner->id;
  // Memcached's says of a foreign value only that it is one.
  return status.notes.empty() ? std::string() : status.notes.front();
}

Counter::Counter() { testkit::write_file(file(), "0"); }

void Counter::increment() const {
  const auto number = value();
  std::this_thread::sleep_for(1ms);
  testkit::write_file(file(), std::to_string(number + 1));
}

long Counter::value() const { return std::stol(testkit::read_file(file())); }

}  // namespace dlock::interop
