// SPDX-License-Identifier: Apache-2.0
//
// An allocation that fails in the library's work ends the process with one line.
#include "dlock/detail/out_of_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "core/loop/driving.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/signal.hpp"
#include "dlock/spi/thread.hpp"
#include "tests/support/virtual_env.hpp"

namespace dlock {
namespace {

using ::testing::ExitedWithCode;

constexpr const char* kLine = "^dlock: out of memory; [^\n]*\n$";

void fail() { throw std::bad_alloc(); }

asio::awaitable<void> fail_later(Env& env) {
  co_await sleep_until(env, env.now() + std::chrono::seconds(1));
  fail();
}

TEST(OutOfMemory, EndsTheProcessWithOneLineAndNoExitHandler) {
  const auto exits = [] {
    std::signal(SIGABRT, [](int) { ::_exit(2); });
    std::atexit([] { ::_exit(3); });
    or_end(fail);
  };
  EXPECT_EXIT(exits(), ExitedWithCode(kOutOfMemoryStatus), kLine);
}

TEST(OutOfMemory, EndsTheProcessAlsoWhereStandardErrorIsFull) {
  const auto fill = [] {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_NONBLOCK) != 0) ::_exit(2);
    const std::array<char, 4096> bytes{};
    while (::write(ends[1], bytes.data(), bytes.size()) > 0) continue;
    ::fcntl(ends[1], F_SETFL, 0);
    ::dup2(ends[1], STDERR_FILENO);
    end_out_of_memory();
  };
  EXPECT_EXIT(fill(), ExitedWithCode(kOutOfMemoryStatus), "");
}

TEST(OutOfMemory, OtherExceptionsPass) {
  EXPECT_THROW(or_end([] { throw std::runtime_error("another"); }), std::runtime_error);
  end_if_out_of_memory(std::runtime_error("another"));
  end_if_out_of_memory(std::make_exception_ptr(2));
  EXPECT_EQ(or_end([] { return 3; }), 3);
}

TEST(OutOfMemory, EndsTheProcessInAThreadATaskAndAFailure) {
  EXPECT_EXIT(start_thread(fail).join(), ExitedWithCode(kOutOfMemoryStatus), kLine);
  EXPECT_EXIT(failure_of(std::bad_alloc()), ExitedWithCode(kOutOfMemoryStatus), kLine);
  const auto task = [] {
    tests::VirtualEnv env;
    spawn(env, fail_later(env));
    env.run_for(std::chrono::seconds(2));
  };
  EXPECT_EXIT(task(), ExitedWithCode(kOutOfMemoryStatus), kLine);
}

TEST(OutOfMemory, EndsTheProcessInTheLoop) {
  const auto loop = [] {
    core::RealEnv env;
    const auto driving = std::make_shared<core::Driving>(env);
    env.serve(*driving);
    env.post(fail);
    driving->run_here([](const char*) {});
  };
  EXPECT_EXIT(loop(), ExitedWithCode(kOutOfMemoryStatus), kLine);
}

}  // namespace
}  // namespace dlock
