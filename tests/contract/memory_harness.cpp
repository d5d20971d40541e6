// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "dlock/contract/harness.hpp"

namespace dlock::contract {
namespace {

class MemoryHarness final : public Harness {
 public:
  bool tells_holders() const override { return true; }
  std::string fresh_url() override {
    auto url = "memory://contract-" + std::to_string(++last_);
    // The store lives as long as anybody has it open, as a server outlives its clients.
    server_.emplace(LockManager::open(url)).connect();
    return url;
  }
  bool has_processes() const override { return false; }
  std::chrono::milliseconds dead_holder_bound() const override { return {}; }

 private:
  std::optional<LockManager> server_;
  int last_ = 0;
};

}  // namespace

Harness& memory_harness() {
  static MemoryHarness harness;
  return harness;
}

}  // namespace dlock::contract
