// SPDX-License-Identifier: Apache-2.0
//
// A process of its own for the tests of the local store:
//   local-peer DIR hold NAME           acquires, prints `held TOKEN`, holds until stdin closes
//   local-peer DIR fork NAME           acquires, fork()s a child that does nothing for a minute,
//   prints
//                                      `held CHILD`, waits
//   local-peer DIR loop NAME N FILE    N times: acquires, adds 1 to the number in FILE, appends its
//                                      token to FILE.log, releases
//   local-peer DIR guard FILE          takes the guard byte of a lock file, prints `ready`, waits
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "backends/local/wire/lock_file.hpp"
#include "tests/unit/local/support.hpp"

namespace {

using dlock::local::test::Store;

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

void wait_for_end_of_input() {
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

int hold(Store& store, const std::string& name) {
  const auto claim = store.make(name);
  const auto answer = store.run(store.acquire(claim, dlock::kNever));
  if (answer.status != dlock::ClaimStatus::granted) return 1;
  say("held " + std::to_string(*answer.token));
  wait_for_end_of_input();
  return store.release(claim) == dlock::ReleaseStatus::released ? 0 : 2;
}

int fork_while_holding(Store& store, const std::string& name) {
  // The second time in the file that was kept from the first.
  const auto before = store.make(name);
  if (store.ask(before).status != dlock::ClaimStatus::granted) return 1;
  store.release(before);
  const auto claim = store.make(name);
  if (store.ask(claim).status != dlock::ClaimStatus::granted) return 1;
  const auto child = ::fork();
  if (child == 0) {
    // Nobody shall wait for the end of our output.
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
    ::sleep(60);
    ::_exit(0);
  }
  say("held " + std::to_string(child));
  wait_for_end_of_input();
  return 0;
}

// Read, think, write: loses numbers when two are in it at once.
void add_one(const std::string& file, std::uint64_t token) {
  long number = 0;
  std::ifstream(file) >> number;
  ::usleep(50);
  std::ofstream(file, std::ios::trunc) << number + 1;
  std::ofstream(file + ".log", std::ios::app) << token << '\n';
}

int loop(Store& store, const std::string& name, int times, const std::string& file) {
  for (int i = 0; i < times; ++i) {
    const auto claim = store.make(name);
    const auto answer = store.run(store.acquire(claim, dlock::kNever));
    if (answer.status != dlock::ClaimStatus::granted) return 1;
    add_one(file, *answer.token);
    if (store.release(claim) != dlock::ReleaseStatus::released) return 2;
  }
  return 0;
}

int guard(const std::string& directory, const std::string& name) {
  dlock::local::LockFile file;
  const std::string path = directory + "/" + name;
  if (!dlock::local::LockFile::open(AT_FDCWD, path.c_str(), file).ok()) return 1;
  if (!file.try_lock(dlock::local::kGuardByte).ok()) return 2;
  say("ready");
  wait_for_end_of_input();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv, argv + argc);
  if (args.size() < 4) return 64;
  if (args[2] == "guard") return guard(args[1], args[3]);
  Store store(args[1]);
  if (store.connect().error) return 3;
  if (args[2] == "hold") return hold(store, args[3]);
  if (args[2] == "fork") return fork_while_holding(store, args[3]);
  if (args[2] == "loop") return loop(store, args[3], std::stoi(args[4]), args[5]);
  return 64;
}
