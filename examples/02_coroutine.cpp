// SPDX-License-Identifier: Apache-2.0
//
// The same with coroutines: five workers on one thread, one lock, no thread blocked.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <dlock/async.hpp>
#include <dlock/dlock.hpp>
#include <exception>
#include <iostream>
#include <memory>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

// Arguments of a spawned coroutine are taken by value: it outlives the call.
asio::awaitable<void> work(std::shared_ptr<dlock::DistributedLock> lock, int worker) {
  dlock::LockHandle held = co_await lock->async_acquire({.wait = 10s}, asio::use_awaitable);
  std::cout << "worker " << worker << " has token " << held.token().value_or(0) << '\n';
  co_await dlock::async_release(held, asio::use_awaitable);
}

}  // namespace

int main(int argc, char** argv) try {
  auto locks = dlock::LockManager::open(argc > 1 ? argv[1] : "file:///var/tmp/dlock-example");
  const std::shared_ptr<dlock::DistributedLock> lock = locks.lock("orders/42");

  asio::io_context io;
  int failed = 0;
  for (int worker = 1; worker <= 5; ++worker) {
    asio::co_spawn(io, work(lock, worker), [&failed](std::exception_ptr error) {
      if (!error) return;
      ++failed;
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& reason) {
        std::cerr << reason.what() << '\n';
      }
    });
  }
  io.run();
  return failed == 0 ? 0 : 1;
} catch (const dlock::LockError& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
