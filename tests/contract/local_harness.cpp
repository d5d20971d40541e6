// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <optional>

#include "backends/local/rules/names.hpp"
#include "dlock/contract/harness.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::contract {
namespace {

class LocalHarness final : public Harness {
 public:
  bool tells_holders() const override { return true; }
  std::string fresh_url() override {
    if (!folder_) folder_.emplace("dlock-contract");
    return "file://" + (*folder_ / ("locks-" + std::to_string(++last_))).string();
  }
  std::chrono::milliseconds dead_holder_bound() const override { return std::chrono::seconds(1); }

  // Nothing can be broken there, but a file can be removed.
  void take_away(LockManager& /*manager*/, const std::string& url,
                 const std::string& name) override {
    const std::filesystem::path directory = url.substr(std::string("file://").size());
    std::filesystem::remove(directory / local::file_name(name));
  }

 private:
  std::optional<testkit::TempDir> folder_;
  int last_ = 0;
};

}  // namespace

Harness& local_harness() {
  static LocalHarness harness;
  return harness;
}

}  // namespace dlock::contract
