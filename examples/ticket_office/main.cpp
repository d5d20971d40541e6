// SPDX-License-Identifier: Apache-2.0
//
// The ticket office: several processes sell one stock of tickets that lives in a plain file. Each
// sale reads the stock, thinks, and writes it back. Without a lock two sellers sell the same
// ticket; under a dlock lock never, and the only thing that says which store keeps the lock is the
// URL.
//
//   ticket_office --store none                            oversells
//   ticket_office --store file:///var/tmp/locks           sells exactly the stock
//   ticket_office --store zookeeper://127.0.0.1:2181/     the same
//   ticket_office --store redis://127.0.0.1/              the same
#include <fmt/format.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <dlock/error.hpp>
#include <exception>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "box_office.hpp"
#include "options.hpp"
#include "seller.hpp"

extern char** environ;

namespace ticket_office {
namespace {

constexpr int exit_oversold = 1;
constexpr int exit_usage = 64;
constexpr int exit_unavailable = 69;
constexpr int exit_interrupted = 130;

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

// Child: one seller. SIGINT and SIGTERM end it between two sales, its lock given back.
int be_a_seller(const Options& options) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  std::stop_source stop;
  std::thread([stop]() mutable {
    const sigset_t set = ending_signals();
    int signal = 0;
    sigwait(&set, &signal);
    stop.request_stop();
  }).detach();
  sell(options, stop.get_token());
  return EXIT_SUCCESS;
}

pid_t start_seller(int index, char** argv) {
  std::vector<char*> arguments;
  for (char** word = argv; *word != nullptr; ++word) arguments.push_back(*word);
  std::string flag = "--seller";
  std::string number = std::to_string(index);
  arguments.insert(arguments.end(), {flag.data(), number.data(), nullptr});
  pid_t pid = 0;
  const int error =
      ::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ);
  if (error != 0) throw std::system_error(error, std::generic_category(), "cannot start a seller");
  return pid;
}

struct Outcome {
  int failed = 0;  // sellers that ended with an error
  bool interrupted = false;
  std::chrono::duration<double> took{0};
};

// Waits for all sellers; hands an ending signal on to them, and ends all when one has failed.
Outcome run_sellers(const Options& options, char** argv) {
  Outcome outcome;
  const auto start = std::chrono::steady_clock::now();
  std::vector<pid_t> sellers;
  sellers.reserve(static_cast<std::size_t>(options.sellers));
  for (int index = 0; index < options.sellers; ++index)
    sellers.push_back(start_seller(index, argv));
  const auto end_all = [&] {
    for (const pid_t seller : sellers) ::kill(seller, SIGTERM);
  };
  sigset_t set = ending_signals();
  sigaddset(&set, SIGCHLD);
  while (!sellers.empty()) {
    int signal = 0;
    sigwait(&set, &signal);
    if (signal != SIGCHLD) {
      outcome.interrupted = true;
      end_all();
    }
    int status = 0;
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, &status, WNOHANG)) > 0) {
      sellers.erase(std::find(sellers.begin(), sellers.end(), ended));
      if (status != 0 && outcome.failed++ == 0) end_all();
    }
  }
  outcome.took = std::chrono::steady_clock::now() - start;
  return outcome;
}

// "rising", "not rising", or "none" where there are no tokens.
std::string judge_tokens(const std::vector<Sale>& sales) {
  const auto missing = [](const Sale& sale) { return !sale.token; };
  if (sales.empty() || std::any_of(sales.begin(), sales.end(), missing)) return "none";
  const auto out_of_order = [](const Sale& a, const Sale& b) { return *a.token >= *b.token; };
  const bool rising = std::adjacent_find(sales.begin(), sales.end(), out_of_order) == sales.end();
  return rising ? "rising" : "not rising";
}

int be_the_office(const Options& options, char** argv) {
  BoxOffice office(options.counter);
  office.open(options.stock);
  const Outcome outcome = run_sellers(options, argv);

  const std::vector<Sale> sales = office.sales();
  const int sold = static_cast<int>(sales.size());
  const int oversold = std::max(0, sold - options.stock);
  const std::string tokens = judge_tokens(sales);
  const std::string kind = options.store.substr(0, options.store.find(':'));
  if (options.json) {
    fmt::print(R"({{"store":"{}","stock":{},"sellers":{},"sold":{},"oversold":{},"left":{},)"
               R"("seconds":{:.3f},"tokens":"{}","interrupted":{}}})"
               "\n",
               kind, options.stock, options.sellers, sold, oversold, office.read_stock(),
               outcome.took.count(), tokens, outcome.interrupted);
  } else {
    fmt::print("{}: {} of {} tickets sold by {} sellers, {} oversold, {:.1f} s, tokens {}\n", kind,
               sold, options.stock, options.sellers, oversold, outcome.took.count(), tokens);
  }
  std::fflush(stdout);
  if (outcome.interrupted) return exit_interrupted;
  if (outcome.failed > 0) return exit_unavailable;
  const bool wrong = oversold > 0 || tokens == "not rising";
  return options.locked() && wrong ? exit_oversold : EXIT_SUCCESS;
}

}  // namespace
}  // namespace ticket_office

int main(int argc, char** argv) {
  using namespace ticket_office;
  try {
    const Options options = parse(argc, argv);
    // Before any thread starts: all of them, and the sellers, inherit the mask and use sigwait.
    sigset_t set = ending_signals();
    sigaddset(&set, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    return options.seller ? be_a_seller(options) : be_the_office(options, argv);
  } catch (const UsageError& error) {
    fmt::print(stderr, "ticket_office: {}\n{}", error.what(), usage);
    return exit_usage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "ticket_office: {}\n", error.what());
    return exit_unavailable;
  }
}
