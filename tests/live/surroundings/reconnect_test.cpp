// SPDX-License-Identifier: Apache-2.0
//
// Servers that refuse, end and lie in every way, each to one program that wants a lock: how often
// it tries to connect. Counted where the program asks the system for a connection, so that one that
// nobody listens for counts, too.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dlock/lock_manager.hpp"
#include "dlock/spi/signal.hpp"
#include "testkit/await.hpp"
#include "testkit/ports.hpp"
#include "testkit/scripted_server.hpp"

namespace dlock::testkit {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

std::array<std::atomic<int>, 65536> tries{};

/// The first tries may come quickly, up to eight of them; from then on one a second.
constexpr auto kWindow = 7s;
constexpr int kMostTries = 7 + 8;

/// What a server says when somebody has connected, and to the first bytes that come.
struct Manner {
  std::string name;
  bool listens = true;
  ScriptedAnswer greeting{};
  ScriptedServer::Script script = [](std::string& received) {
    received.clear();
    return ScriptedAnswer{};
  };
};

Manner says(std::string name, std::string bytes, bool hang_up = false) {
  Manner manner{std::move(name)};
  manner.script = [answer = ScriptedAnswer{std::move(bytes), {}, 0, hang_up}](std::string& got) {
    got.clear();
    return answer;
  };
  return manner;
}

Manner greets(std::string name, std::string bytes, bool hang_up) {
  Manner manner{std::move(name)};
  manner.greeting = {std::move(bytes), {}, 0, hang_up};
  return manner;
}

std::vector<Manner> any_server() {
  std::vector<Manner> all;
  all.push_back({"nobody listens", false});
  all.push_back({"silent"});
  all.push_back(greets("closes at once", "", true));
  all.push_back(greets("greets with an end of line", "\r\n", true));
  all.push_back(says("closes at the first request", "", true));
  all.push_back(says("a byte, then closes", "+", true));
  all.push_back(says("zeros", std::string(64, '\0')));
  all.push_back(says("zeros, then closes", std::string(64, '\0'), true));
  all.push_back(says("high bytes", std::string(64, '\xff')));
  all.push_back(says("text", "what do you want?\r\n"));
  all.push_back(says("HTTP", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", true));
  all.push_back(says("a TLS alert", "\x15\x03\x03\x00\x02\x02\x28"s, true));
  return all;
}

void add_redis(std::vector<Manner>& all) {
  for (const auto* error :
       {"-NOAUTH Authentication required.", "-WRONGPASS invalid username-password pair",
        "-LOADING Redis is loading the dataset in memory", "-BUSY Redis is busy running a script.",
        "-MASTERDOWN Link with MASTER is down", "-READONLY You can't write against a replica.",
        "-NOPERM this user has no permissions", "-ERR unknown command", "-OOM command not allowed",
        "-MISCONF Redis is configured to save RDB snapshots"}) {
    all.push_back(says(error, error + "\r\n"s));
  }
  all.push_back(greets("full", "-ERR max number of clients reached\r\n", true));
  all.push_back(greets("protected", "-DENIED Redis is running in protected mode\r\n", true));
  all.push_back(says("fine, to everything", "+OK\r\n"));
  all.push_back(says("fine, then closes", "+OK\r\n", true));
}

void add_memcached(std::vector<Manner>& all) {
  for (const auto* answer :
       {"SERVER_ERROR out of memory storing object", "ERROR", "CLIENT_ERROR bad command line",
        "ERROR Too many open connections", "SERVER_ERROR blackhole", "END", "VERSION 1.6.18",
        "NOT_STORED", "NOT_FOUND", "EXISTS"}) {
    all.push_back(says(answer, answer + "\r\n"s));
    all.push_back(says(answer + ", then closes"s, answer + "\r\n"s, true));
  }
  all.push_back(greets("full", "ERROR Too many open connections\r\n", true));
}

std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

/// The answer to a handshake: version, timeout, session, password, and whether it is read-only.
std::string welcome(std::uint64_t version, std::uint64_t timeout, std::uint64_t session) {
  const auto body = number(version, 4) + number(timeout, 4) + number(session, 8) + number(16, 4) +
                    std::string(16, 'p') + number(0, 1);
  return number(body.size(), 4) + body;
}

/// To a whole handshake, and never without one: an answer to no request ends the program
/// (docs/security.md).
Manner welcomes(std::string name, std::string bytes, bool hang_up = false) {
  constexpr std::size_t kHandshake = 4 + 44;  // and a byte more: whether read-only will do
  Manner manner{std::move(name)};
  manner.script = [answer = ScriptedAnswer{std::move(bytes), {}, 0, hang_up}](std::string& got) {
    if (got.size() < kHandshake) return ScriptedAnswer{};
    const bool is_handshake = got.compare(0, 3, "\0\0\0", 3) == 0 && (got[3] == 44 || got[3] == 45);
    got.clear();
    return is_handshake ? answer : ScriptedAnswer{};
  };
  return manner;
}

void add_zookeeper(std::vector<Manner>& all) {
  all.push_back(welcomes("the session is over", welcome(0, 0, 0)));
  all.push_back(welcomes("the session is over, then closes", welcome(0, 0, 0), true));
  all.push_back(welcomes("session 0", welcome(0, 10'000, 0)));
  all.push_back(welcomes("another protocol", welcome(7, 10'000, 77)));
  all.push_back(welcomes("a timeout of 0", welcome(0, 0, 77)));
  all.push_back(welcomes("a session, then closes", welcome(0, 10'000, 77), true));
  all.push_back(welcomes("a session, and nothing more", welcome(0, 10'000, 77)));
  all.push_back(says("a frame of 2 GB", number(0x7fffffff, 4) + "x"));
  all.push_back(says("a frame of less than nothing", number(0xfffffff0, 4) + "x"));
  all.push_back(says("an empty frame", number(0, 4)));
  all.push_back(says("a short handshake", number(4, 4) + number(0, 4), true));
}

/// One program in front of one server.
class Encounter {
 public:
  Encounter(const std::string& backend, Manner manner) : manner_(std::move(manner)) {
    if (manner_.listens) {
      server_ = std::make_unique<ScriptedServer>(manner_.script, manner_.greeting);
    }
    const auto port = server_ ? server_->port() : unused_.number();
    port_ = port;
    auto options = OpenOptions::built_in();
    options.log = [](LogLevel, std::string_view) {};
    const auto path = backend == "zookeeper" ? "/app" : "";
    locks_ = std::make_unique<LockManager>(
        LockManager::open(fmt::format("{}://127.0.0.1:{}{}", backend, port, path), options));
    thread_ = std::thread([this] {
      AcquireOptions wanted;
      wanted.wait = kWindow;
      granted_ = static_cast<bool>(locks_->lock("x")->acquire(wanted, {}, error_));
    });
  }
  ~Encounter() {
    if (thread_.joinable()) thread_.join();
  }
  Encounter(const Encounter&) = delete;
  Encounter& operator=(const Encounter&) = delete;

  int count() const { return tries[port_]; }

  /// `count`: at the end of the window.
  void judge(int count) {
    thread_.join();
    locks_->close();
    std::cout << fmt::format("  {:45} {:5} tries   {}\n", manner_.name, count, error_.message());
    EXPECT_LE(count, kMostTries) << manner_.name;
    EXPECT_FALSE(granted_) << manner_.name;
    EXPECT_TRUE(error_) << manner_.name << ": neither a lock nor an error";
  }

 private:
  const Manner manner_;
  Port unused_;
  std::unique_ptr<ScriptedServer> server_;
  std::unique_ptr<LockManager> locks_;
  std::thread thread_;
  std::uint16_t port_ = 0;
  error_code error_;
  bool granted_ = false;
};

std::chrono::milliseconds processor_time() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& time) {
    return std::chrono::milliseconds(time.tv_sec * 1000 + time.tv_usec / 1000);
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

class Reconnects : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Stores, Reconnects, testing::Values("redis", "memcached", "zookeeper"),
                         [](const auto& one) { return one.param; });

TEST_P(Reconnects, P14_AtMostOneTryASecondWhateverTheServerSays) {
  auto all = any_server();
  if (GetParam() == "redis") add_redis(all);
  if (GetParam() == "memcached") add_memcached(all);
  if (GetParam() == "zookeeper") add_zookeeper(all);
  ASSERT_GE(all.size(), 20U);
  std::vector<std::unique_ptr<Encounter>> encounters;
  const auto before = processor_time();
  const auto end = within(kWindow);
  for (auto& manner : all) {
    encounters.push_back(std::make_unique<Encounter>(GetParam(), std::move(manner)));
  }
  std::this_thread::sleep_until(end);  // the window over which tries are counted
  const auto used = processor_time() - before;
  std::cout << fmt::format("{}: {} ms of processor time in {} s\n", GetParam(), used.count(),
                           kWindow.count());
  std::vector<int> counts;
  for (const auto& encounter : encounters) counts.push_back(encounter->count());
  for (std::size_t i = 0; i < counts.size(); ++i) encounters[i]->judge(counts[i]);
  EXPECT_LT(used, kWindow / 2);
}

}  // namespace
}  // namespace dlock::testkit

extern "C" int connect(int fd, const sockaddr* address, socklen_t size) {
  using Connect = int (*)(int, const sockaddr*, socklen_t);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): dlsym() has no other type
  static const auto real = reinterpret_cast<Connect>(::dlsym(RTLD_NEXT, "connect"));
  if (address->sa_family == AF_INET) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as the system has it
    const auto port = ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port);
    ++dlock::testkit::tries[port];
  }
  return real(fd, address, size);
}
