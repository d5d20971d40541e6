// SPDX-License-Identifier: Apache-2.0
//
// dlock-servers: real lock stores on loopback to play with, in a temporary folder.
//
//   dlock-servers start zookeeper redis      in the background; prints their URLs
//   dlock-servers status                     prints the URLs again
//   dlock-servers stop                       ends them and removes their data
//   dlock-servers run zookeeper              in the foreground, until Ctrl-C
//
// The servers are children of one keeper process and die with it. `start` leaves the keeper's pid
// and start time in the state folder, so that `stop` never signals a stranger that got its pid.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "testkit/await.hpp"
#include "testkit/process.hpp"
#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"

namespace {

using namespace dlock::testkit;
using namespace std::chrono_literals;

constexpr int exit_usage = 64;
constexpr int exit_unavailable = 69;

constexpr const char* usage =
    "usage: dlock-servers start|run [--dir DIR] [--tick MS] SERVER...\n"
    "       dlock-servers status|stop [--dir DIR]\n"
    "SERVER is zookeeper, zookeeper-ensemble (three servers), redis or memcached.\n"
    "DIR holds the state; default ${XDG_RUNTIME_DIR:-/tmp}/dlock-servers-UID.\n"
    "MS is ZooKeeper's tick, default 500; its shortest session is two ticks.\n";

struct Arguments {
  std::string command;
  std::filesystem::path dir;
  std::chrono::milliseconds tick = 500ms;
  std::vector<std::string> servers;
};

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::filesystem::path default_dir() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string parent = runtime != nullptr && *runtime != '\0' ? runtime : "/tmp";
  return fmt::format("{}/dlock-servers-{}", parent, ::getuid());
}

Arguments parse(const std::vector<std::string>& words) {
  Arguments arguments;
  arguments.dir = default_dir();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool option = words[i] == "--dir" || words[i] == "--tick";
    if (option && i + 1 == words.size()) throw UsageError(words[i] + " needs a value");
    if (words[i] == "--dir") {
      arguments.dir = std::filesystem::absolute(words[++i]);
    } else if (words[i] == "--tick") {
      arguments.tick = std::chrono::milliseconds(std::atoi(words[++i].c_str()));
      if (arguments.tick <= 0ms) throw UsageError("--tick takes milliseconds");
    } else if (words[i].starts_with('-')) {
      throw UsageError("no option " + words[i]);
    } else if (arguments.command.empty()) {
      arguments.command = words[i];
    } else {
      arguments.servers.push_back(words[i]);
    }
  }
  return arguments;
}

// A started server: its URL, and what keeps it alive.
struct Running {
  std::string url;
  std::shared_ptr<void> owner;
};

template <typename Kind, typename... Options>
Running start(Options&&... options) {
  auto server = std::make_shared<Kind>(std::forward<Options>(options)...);
  server->start();
  return {server->url(), server};
}

Running start_named(const std::string& name, const Arguments& arguments) {
  const ZooKeeperOptions zookeeper{.tick = arguments.tick};
  if (name == "zookeeper") return start<ZooKeeperServer>(zookeeper);
  if (name == "zookeeper-ensemble") return start<ZooKeeperEnsemble>(zookeeper);
  if (name == "redis") return start<RedisServer>();
  if (name == "memcached") return start<MemcachedServer>();
  throw UsageError("no server called " + name);
}

std::filesystem::path urls_file(const Arguments& arguments) { return arguments.dir / "urls"; }
std::filesystem::path keeper_file(const Arguments& arguments) { return arguments.dir / "keeper"; }

// The keeper that the state folder tells of, if it is still that process.
pid_t find_keeper(const Arguments& arguments) {
  std::ifstream file(keeper_file(arguments));
  pid_t pid = 0;
  unsigned long long started = 0;
  if (!(file >> pid >> started) || process_start_time(pid) != started) return 0;
  return pid;
}

int keep(const Arguments& arguments) {
  if (arguments.servers.empty()) throw UsageError("name at least one server");
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before there are threads: they inherit it

  std::vector<Running> servers;
  std::string urls;
  for (const std::string& name : arguments.servers) {
    servers.push_back(start_named(name, arguments));
    urls += servers.back().url + "\n";
  }
  if (find_keeper(arguments) == ::getpid()) {
    // Renamed into place: who waits for the file never sees half of it.
    write_file(urls_file(arguments).string() + ".new", urls);
    std::filesystem::rename(urls_file(arguments).string() + ".new", urls_file(arguments));
  } else {
    std::fputs(urls.c_str(), stdout);
    std::fflush(stdout);
  }
  int signal = 0;
  sigwait(&ends, &signal);
  return EXIT_SUCCESS;
}

int start_in_background(const Arguments& arguments) {
  if (arguments.servers.empty()) throw UsageError("name at least one server");
  if (find_keeper(arguments) != 0) {
    throw std::runtime_error(
        fmt::format("already running (state in {}): stop them first", arguments.dir.string()));
  }
  std::filesystem::create_directories(arguments.dir);
  std::filesystem::permissions(arguments.dir, std::filesystem::perms::owner_all);
  std::filesystem::remove(urls_file(arguments));
  std::vector<std::string> argv{std::filesystem::read_symlink("/proc/self/exe").string(),
                                "kept",
                                "--dir",
                                arguments.dir.string(),
                                "--tick",
                                std::to_string(arguments.tick.count())};
  argv.insert(argv.end(), arguments.servers.begin(), arguments.servers.end());
  const std::filesystem::path log = arguments.dir / "keeper.log";
  std::filesystem::remove(log);
  Process keeper({.argv = argv,
                  .stdin_from = ProcessOptions::Input::null,
                  .log_file = log,
                  .die_with_parent = false,
                  .new_session = true});
  const bool settled = eventually(within(120s), [&] {
    return std::filesystem::exists(urls_file(arguments)) || !keeper.running();
  });
  if (!settled || !keeper.running()) {
    std::fputs(read_file(log).c_str(), stderr);
    const auto ended = keeper.wait(within(0s));
    return ended && ended->code != 0 ? ended->code : exit_unavailable;
  }
  keeper.detach();
  std::fputs(read_file(urls_file(arguments)).c_str(), stdout);
  return EXIT_SUCCESS;
}

// What `start` runs: leaves its identity before anything that takes time.
int kept(const Arguments& arguments) {
  write_file(keeper_file(arguments),
             fmt::format("{} {}\n", ::getpid(), process_start_time(::getpid()).value_or(0)));
  return keep(arguments);
}

int status(const Arguments& arguments) {
  if (find_keeper(arguments) == 0) {
    std::fputs("dlock-servers: none are running\n", stderr);
    return EXIT_FAILURE;
  }
  std::fputs(read_file(urls_file(arguments)).c_str(), stdout);
  return EXIT_SUCCESS;
}

int stop(const Arguments& arguments) {
  const pid_t keeper = find_keeper(arguments);
  if (keeper == 0) {
    std::fputs("dlock-servers: none are running\n", stderr);
  } else {
    ::kill(keeper, SIGTERM);
    if (!eventually(within(60s), [&] { return find_keeper(arguments) != keeper; })) {
      throw std::runtime_error(fmt::format("process {} does not end", keeper));
    }
  }
  for (const char* name : {"keeper", "keeper.log", "urls"}) {
    std::filesystem::remove(arguments.dir / name);
  }
  std::error_code not_empty;  // whatever else somebody keeps there stays
  std::filesystem::remove(arguments.dir, not_empty);
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Arguments arguments = parse({argv + 1, argv + argc});
    if (arguments.command == "start") return start_in_background(arguments);
    if (arguments.command == "run") return keep(arguments);
    if (arguments.command == "kept") return kept(arguments);
    if (arguments.command == "status") return status(arguments);
    if (arguments.command == "stop") return stop(arguments);
    throw UsageError("say what to do");
  } catch (const UsageError& error) {
    fmt::print(stderr, "dlock-servers: {}\n{}", error.what(), usage);
    return exit_usage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "dlock-servers: {}\n", error.what());
    return exit_unavailable;
  }
}
