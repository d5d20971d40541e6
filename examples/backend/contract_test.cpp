// SPDX-License-Identifier: Apache-2.0
//
// dlock's contract suite on this backend: dlock::contract has the tests and main().
#include <cstdlib>
#include <filesystem>

#include "dlock/contract/harness.hpp"
#include "sqlite.hpp"

namespace dlock::contract {
namespace {

class SqliteHarness final : public Harness {
 public:
  ~SqliteHarness() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  std::string fresh_url() override {
    if (folder_.empty()) {
      std::string made = (std::filesystem::temp_directory_path() / "sqlite-XXXXXX").string();
      if (::mkdtemp(made.data()) == nullptr) std::abort();
      folder_ = made;
    }
    const auto file = folder_ / ("locks-" + std::to_string(++last_) + ".db");
    return "sqlite://" + file.string() + "?lease=2s";
  }
  std::size_t many_waiters() const override { return 300; }
  std::chrono::milliseconds dead_holder_bound() const override { return std::chrono::seconds(3); }

 private:
  std::filesystem::path folder_;
  int last_ = 0;
};

Harness& harness() {
  static SqliteHarness harness;
  return harness;
}

}  // namespace

std::vector<Store> stores() { return {{"sqlite", harness}}; }

OpenOptions open_options() { return {.backends = {&sqlite_locks::backend()}}; }

}  // namespace dlock::contract
