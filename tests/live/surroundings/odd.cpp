// SPDX-License-Identifier: Apache-2.0
//
// A program in odd surroundings takes a lock, keeps it over a lease, prints meanwhile, and gives it
// back:
//
//   odd URL plain|locale|stack
//
// Exits with 0 if all is as anywhere else, else with the number of the step that was not.
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <clocale>
#include <cstdio>
#include <iostream>
#include <locale>
#include <string>

#include "dlock/dlock.hpp"

namespace {

using namespace std::chrono_literals;

class CommaNumbers : public std::numpunct<char> {
 protected:
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\1"; }
};

/// As many libraries do: it does not ask whether anybody listens.
void print_everywhere() {
  for (int fd = 0; fd <= 2; ++fd)
    [[maybe_unused]] const auto written = ::write(fd, "nonsense\r\n", 10);
  std::printf("nonsense\n");
  std::fflush(stdout);
  std::cout << "nonsense" << std::endl;
  std::cerr << "nonsense" << std::endl;
}

int use(const std::string& url) {
  auto locks = dlock::LockManager::open(url);
  auto rivals = dlock::LockManager::open(url);
  auto held = locks.lock("orders/1234567")->acquire({.wait = 10s});
  const auto end = std::chrono::steady_clock::now() + 1500ms;
  while (std::chrono::steady_clock::now() < end) {
    print_everywhere();
    if (held.state() != dlock::HandleState::held) return 11;
    ::usleep(50'000);
  }
  if (rivals.lock("orders/1234567")->try_acquire()) return 12;
  if (!locks.status("orders/1234567").held) return 13;
  const auto token = held.token();
  if (held.release()) return 14;
  const auto next = rivals.lock("orders/1234567")->acquire({.wait = 5s});
  if (token && next.token().value() <= *token) return 15;
  return 0;
}

struct Task {
  std::string url;
  int result = 20;
};

int use_on_small_stack(const std::string& url) {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  if (::pthread_attr_setstacksize(&attributes, 128 * 1024) != 0) return 21;
  Task task{url};
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    auto& mine = *static_cast<Task*>(argument);
    mine.result = use(mine.url);
    return nullptr;
  };
  if (::pthread_create(&thread, &attributes, run, &task) != 0) return 22;
  ::pthread_join(thread, nullptr);
  return task.result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  ::alarm(60);
  const std::string how = argv[2];
  if (how == "locale") {
    std::setlocale(LC_ALL, "");
    std::locale::global(std::locale(std::locale(), new CommaNumbers));
  }
  try {
    return how == "stack" ? use_on_small_stack(argv[1]) : use(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 30;
  }
}
