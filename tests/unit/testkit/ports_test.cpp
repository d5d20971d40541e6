// SPDX-License-Identifier: Apache-2.0
#include "testkit/ports.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <vector>

#include "testkit/sockets.hpp"

namespace dlock::testkit {
namespace {

TEST(Ports, AreDistinctAndOutsideTheEphemeralRange) {
  unsigned first = 0;
  unsigned last = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last;
  const std::vector<Port> ports(100);
  std::set<std::uint16_t> numbers;
  for (const Port& port : ports) {
    numbers.insert(port.number());
    EXPECT_TRUE(port.number() < first || port.number() > last) << port.number();
    EXPECT_GE(port.number(), 10000);
  }
  EXPECT_EQ(numbers.size(), ports.size());
}

TEST(Ports, CanBeListenedOnAgainAndAgain) {
  const Port port;
  for (int round = 0; round < 3; ++round) {
    TcpListener listener(port.number());
    auto client = TcpStream::connect(port.number());
    ASSERT_TRUE(client);
    auto accepted = listener.accept();
    ASSERT_TRUE(accepted);
    accepted->close();  // the server's side closes first: its port goes into TIME_WAIT
    EXPECT_EQ(client->wait_for_end(), TcpStream::End::closed);
  }
}

TEST(Ports, AreFreeAgainWhenTheObjectIsGone) {
  std::uint16_t number = 0;
  {
    const Port port;
    number = port.number();
  }
  std::set<std::uint16_t> seen;
  std::vector<Port> taken;
  while (taken.size() < 64) seen.insert(taken.emplace_back().number());
  TcpListener listener(number);  // nobody is there to be disturbed
  EXPECT_EQ(listener.port(), number);
}

// Two processes that take ports at the same time: what one has, the other never gets.
TEST(Ports, AreNeverSharedByProcesses) {
  constexpr std::size_t each = 200;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  int done[2];
  ASSERT_EQ(::pipe(done), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(done[1]);
    const std::vector<Port> ports(each);
    for (const Port& port : ports) {
      const std::uint16_t number = port.number();
      if (::write(ends[1], &number, sizeof number) != sizeof number) ::_exit(1);
    }
    char byte = 0;
    if (::read(done[0], &byte, 1) != 0) ::_exit(1);  // keeps them until the parent has looked
    ::_exit(0);
  }
  ::close(done[0]);
  const std::vector<Port> ours(each);
  std::set<std::uint16_t> numbers;
  for (const Port& port : ours) numbers.insert(port.number());
  for (std::size_t i = 0; i < each; ++i) {
    std::uint16_t number = 0;
    ASSERT_EQ(::read(ends[0], &number, sizeof number), static_cast<ssize_t>(sizeof number));
    numbers.insert(number);
  }
  EXPECT_EQ(numbers.size(), 2 * each);
  ::close(done[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace dlock::testkit
