// SPDX-License-Identifier: Apache-2.0
//
// The header with Asio in it, from a user's side.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <dlock/async.hpp>
#include <dlock/dlock.hpp>
#include <memory>
#include <string>

namespace asio = boost::asio;

namespace {

asio::awaitable<bool> take_and_give_back(std::shared_ptr<dlock::DistributedLock> lock) {
  dlock::LockHandle held = co_await lock->async_acquire({}, asio::use_awaitable);
  const bool good = held.token().has_value();
  co_await dlock::async_release(held, asio::use_awaitable);
  co_return good;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto locks = dlock::LockManager::open(argv[1]);
  asio::io_context io;
  auto good = asio::co_spawn(io, take_and_give_back(locks.lock("consumer")), asio::use_future);
  io.run();
  return good.get() ? 0 : 1;
}
