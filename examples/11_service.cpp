// SPDX-License-Identifier: Apache-2.0
//
// A service whose functions run under a lock each. Which kind of lock that is, of which name, and
// how long it waits, stands in the configuration, under `sections:`; the functions say their
// sections' names. Start this program several times at once.
#include <atomic>
#include <dlock/dlock.hpp>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

// As a rule this is a file: LockManager::from_file(), from_environment().
std::string configuration(const std::string& url) {
  return "stores: { main: \"" + url + R"(" }
sections:
  report:     { type: mutex }                        # alone; re-entrant per thread
  stock.view: { type: read, lock: stock, wait: 20s } # beside others who view,
  stock.sell: { type: write, lock: stock }           # but for who sells
  import:     { type: semaphore, limit: 2 }          # two at a time, in all programs
  till:       { type: semaphore_mutex }              # alone, and not re-entrant
  transfer:   { type: multi, locks: [accounts/7, accounts/3] }
)";
}

/// How many are inside at the same time, at most.
class Inside {
 public:
  void pass() {
    const int now = ++now_;
    int most = most_;
    while (most < now && !most_.compare_exchange_weak(most, now)) {
    }
    std::this_thread::yield();
    --now_;
  }
  int most() const { return most_; }

 private:
  std::atomic<int> now_{0};
  std::atomic<int> most_{0};
};

class Service {
 public:
  explicit Service(dlock::LockManager& locks) : locks_(locks) {}

  void report() {
    dlock::synchronized(locks_, "report", [this] {
      // Once more on the same thread: it is inside already.
      dlock::synchronized(locks_, "report", [this] { reporting.pass(); });
    });
  }
  void view() {
    dlock::synchronized(locks_, "stock.view", [this] { viewing.pass(); });
  }
  void sell() {
    dlock::synchronized(locks_, "stock.sell", [this] { selling.pass(); });
  }
  void import_goods() {
    dlock::synchronized(locks_, "import", [this] { importing.pass(); });
  }
  void pay() {
    dlock::synchronized(locks_, "till", [this] { paying.pass(); });
  }
  void transfer() {
    dlock::synchronized(locks_, "transfer", [this] { moving.pass(); });
  }

  Inside reporting, viewing, selling, importing, paying, moving;

 private:
  dlock::LockManager& locks_;
};

}  // namespace

int main(int argc, char** argv) try {
  const std::string url = argc > 1 ? argv[1] : "file:///var/tmp/dlock-example";
  auto locks = dlock::LockManager::from_config(
      dlock::Config::from_yaml(configuration(url), "dlock.yaml"), dlock::OpenOptions::built_in());
  Service service(locks);

  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&service] {
      for (int round = 0; round < 5; ++round) {
        service.report();
        service.view();
        service.sell();
        service.import_goods();
        service.pay();
        service.transfer();
      }
    });
  }
  for (auto& thread : threads) thread.join();

  struct Limit {
    const char* what;
    const Inside& inside;
    int most;
  };
  bool well = true;
  for (const auto& [what, inside, most] : std::vector<Limit>{{"report", service.reporting, 1},
                                                             {"view", service.viewing, 4},
                                                             {"sell", service.selling, 1},
                                                             {"import", service.importing, 2},
                                                             {"pay", service.paying, 1},
                                                             {"transfer", service.moving, 1}}) {
    std::cout << what << ": " << inside.most() << " at a time, " << most << " may\n";
    well = well && inside.most() <= most;
  }
  return well ? 0 : 1;
} catch (const dlock::LockError& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
