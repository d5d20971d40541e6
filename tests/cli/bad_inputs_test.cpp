// SPDX-License-Identifier: Apache-2.0
//
// bad_inputs.txt, row by row: a message names the thing, the cause and the remedy, has its exit
// status, and comes soon.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <sstream>
#include <thread>

#include "cli/open.hpp"
#include "dlock/spi/descriptor.hpp"
#include "testkit/ports.hpp"
#include "testkit/servers/redis.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

struct Row {
  std::string name;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string yaml;
  std::string arguments;
  int status = -1;
  std::chrono::seconds within{0};
  std::vector<std::string> says;
  std::vector<std::string> says_not;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

void take(const std::string& line, Row& row) {
  if (line.starts_with("env ")) {
    const auto equals = line.find('=');
    row.environment.emplace_back(line.substr(4, equals - 4), line.substr(equals + 1));
  } else if (line.starts_with("yaml ")) {
    row.yaml += line.substr(5) + "\n";
  } else if (line.starts_with("$ ")) {
    row.arguments = line.substr(2);
  } else if (row.status < 0) {
    int seconds = 0;
    std::istringstream(line) >> row.status >> seconds;
    row.within = std::chrono::seconds(seconds);
  } else if (line.starts_with('!')) {
    row.says_not.push_back(line.substr(1));
  } else {
    row.says.push_back(line);
  }
}

/// Whether this build has every store that the row names.
bool is_for_this_build(const Row& row) {
  const auto backends = cli::open_options().backends;
  for (const std::string_view name : {"redis", "zookeeper", "memcached", "memory"}) {
    const auto url = std::string(name) + "://";
    if ((row.arguments + row.yaml).find(url) == std::string::npos) continue;
    const auto has = [&](const BackendDescriptor* backend) { return backend->name == name; };
    if (std::none_of(backends.begin(), backends.end(), has)) return false;
  }
  return true;
}

std::vector<Row> rows() {
  std::vector<Row> all;
  std::istringstream table(testkit::read_file(DLOCK_BAD_INPUTS));
  for (std::string line; std::getline(table, line);) {
    if (line.empty() || (line.front() == '#' && all.empty())) continue;
    if (line.front() == '[') {
      all.emplace_back().name = line.substr(1, line.size() - 2);
    } else {
      take(line, all.back());
    }
  }
  std::erase_if(all, [](const Row& row) { return !is_for_this_build(row); });
  return all;
}

/// Split at spaces; what stands in single quotes is one word.
std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> all;
  bool quoted = false;
  bool within = false;
  for (const char c : text) {
    if (c == '\'') {
      quoted = !quoted;
      if (!within) all.emplace_back();
      within = true;
    } else if (c == ' ' && !quoted) {
      within = false;
    } else {
      if (!within) all.emplace_back();
      within = true;
      all.back() += c;
    }
  }
  return all;
}

/// An address of 127.0.0.1 that takes connections, and says `answer` to each, or nothing.
class Listener {
 public:
  /// No answer: nobody ever looks at who has connected; or hangs up on him at once.
  explicit Listener(std::string answer, bool hang_up = false) : answer_(std::move(answer)) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 64), 0);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    if (hang_up || !answer_.empty()) thread_ = std::thread([this] { serve(); });
  }
  ~Listener() {
    ::shutdown(socket_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    ::close(socket_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  void serve() const {
    while (true) {
      const int client = ::accept(socket_, nullptr, nullptr);
      if (client < 0) return;
      // All of it: unread bytes would make the end a reset, which may overtake the answer.
      std::array<char, 4096> asked{};
      if (!answer_.empty() && ::recv(client, asked.data(), asked.size(), 0) > 0) {
        ::send(client, answer_.data(), answer_.size(), MSG_NOSIGNAL);
      }
      ::close(client);
    }
  }

  const std::string answer_;
  int socket_ = -1;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

/// What the placeholders of a row stand for; made when a row asks for it.
class Surroundings {
 public:
  std::string fill_in(std::string text, const std::string& yaml) {
    for (const char* name : {"@yaml@", "@local@", "@held@", "@folder@", "@dead@", "@silent@",
                             "@web@", "@full@", "@loading@", "@redis@", "@password@"}) {
      const std::string word(name);
      for (auto at = text.find(word); at != std::string::npos; at = text.find(word)) {
        text.replace(at, word.size(), value_of(word, yaml));
      }
    }
    return text;
  }

 private:
  std::string value_of(const std::string& word, const std::string& yaml) {
    if (word == "@yaml@") {
      const auto file = folder_ / "dlock.yaml";
      testkit::write_file(file, fill_in(yaml, {}));
      return file.string();
    }
    if (word == "@local@") return "file://" + (folder_ / "locks").string();
    if (word == "@held@") return held();
    if (word == "@folder@") return folder_.path().string();
    if (word == "@dead@") return "127.0.0.1:" + std::to_string(nobody_.number());
    if (word == "@silent@") return silent_.address();
    if (word == "@web@") return web_.address();
    if (word == "@loading@") return loading_.address();
    if (word == "@full@") return full_.address();
    auto& server = servers_[word];
    if (!server) server = start(word == "@password@");
    return "127.0.0.1:" + std::to_string(server->port());
  }

  std::string held() {
    const auto url = "file://" + (folder_ / "held").string();
    if (!holder_) {
      holder_ = std::make_unique<testkit::Process>(dlock_on(url, {"hold", "x"}));
      EXPECT_EQ(text(read_event(*holder_), "event"), "held");
    }
    return url;
  }

  static std::unique_ptr<testkit::RedisServer> start(bool wants_password) {
    auto server = std::make_unique<testkit::RedisServer>();
    server->start();
    const auto ask = [&](const std::string& command) {
      return testkit::ask(server->port(), command + "\r\n", "\n", patience());
    };
    EXPECT_EQ(ask("RPUSH dlock:{wrong-type} 1"), ":1\r\n");
    if (wants_password) {
      EXPECT_EQ(ask("CONFIG SET requirepass secret"), "+OK\r\n");
    }
    return server;
  }

  const testkit::TempDir folder_{"dlock-bad-inputs"};
  const testkit::Port nobody_;
  const Listener silent_{""};
  const Listener full_{"", true};
  const Listener web_{"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"};
  const Listener loading_{"-LOADING Redis is loading the dataset in memory\r\n"};
  std::unique_ptr<testkit::Process> holder_;
  std::map<std::string, std::unique_ptr<testkit::RedisServer>> servers_;
};

class CliBadInput : public testing::TestWithParam<Row> {};

TEST_P(CliBadInput, IsNamedWithItsCauseAndItsRemedySoon) {
  const Row& row = GetParam();
  ASSERT_GE(row.status, 0);
  ASSERT_FALSE(row.says.empty() && row.says_not.empty());
  Surroundings surroundings;
  auto options = dlock({});
  for (const auto& word : words(surroundings.fill_in(row.arguments, row.yaml))) {
    options.argv.push_back(word);
  }
  for (const auto& [name, value] : row.environment) {
    options.env.emplace_back(name, surroundings.fill_in(value, {}));
    std::erase(options.unset_env, name);
  }
  // The best of three: how long it takes, not how busy the machine is.
  auto took = Duration::max();
  testkit::Finished result;
  for (int round = 0; round < 3 && took > row.within; ++round) {
    const auto start = testkit::Clock::now();
    result = finish(options);
    took = std::min<Duration>(took, testkit::Clock::now() - start);
  }
  EXPECT_LE(took, row.within);
  EXPECT_EQ(result.status.shell_status(), row.status);
  const auto said = result.out + result.err;
  for (const auto& text : row.says) {
    EXPECT_NE(said.find(surroundings.fill_in(text, {})), std::string::npos)
        << text << "\n  is not in\n"
        << said;
  }
  for (const auto& text : row.says_not) EXPECT_EQ(said.find(text), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(Table, CliBadInput, testing::ValuesIn(rows()),
                         [](const auto& tested) { return tested.param.name; });

TEST(CliBadInputs, AreEightyOrMore) {
  std::istringstream table(testkit::read_file(DLOCK_BAD_INPUTS));
  std::size_t count = 0;
  for (std::string line; std::getline(table, line);) count += line.starts_with('[') ? 1 : 0;
  EXPECT_GE(count, 80U);
}

}  // namespace
}  // namespace dlock::cli_test
