// SPDX-License-Identifier: Apache-2.0
//
// The local store needs no simulated server: the production backend runs on real files in memory,
// under virtual time. Its kernel is the one we run on, and a process that crashes closes its files.
// Waiters look every few milliseconds instead of hearing from inotify, which knows no virtual time.
#pragma once

#include <memory>

#include "backends/local/backend.hpp"
#include "core/config/options.hpp"
#include "dlock/local.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/simulation/sim_store.hpp"

namespace dlock::simulation {

class SimLocal final : public SimStore {
 public:
  /// The path has always led there, so nobody waits for the directory to settle.
  SimLocal(World& /*world*/, Network& /*network*/) {
    static_cast<void>(local::open_directory(folder_.path().string(), false, 0));
  }

  std::string_view name() const override { return "local"; }
  const BackendDescriptor& descriptor() const override { return local::backend(); }
  StoreOptions options() const override {
    StoreConfig config;
    config.name = "local";
    config.url = "file://" + folder_.path().string();
    const BackendDescriptor* known[] = {&local::backend()};
    return core::resolve_store(config, known).options;
  }
  std::unique_ptr<Backend> make_backend(Process& process, EventSink& sink) override {
    return std::make_unique<local::LocalBackend>(options(), process, sink,
                                                 local::LocalBackend::WakeBy::looks);
  }

  bool has_network() const override { return false; }
  std::vector<Fault> faults() const override { return {}; }
  bool strike(Fault, Process&, const std::string&) override { return false; }
  void heal() override {}
  void on_crash(Process&) override {}

  // Lock files stay for good; what could be left is a kernel lock on one.
  checkers::Belongings belongings() const override { return {}; }
  std::vector<std::string> owners(const std::string&) const override { return {}; }
  bool is_permitted(const std::string&) const override { return true; }
  Duration longest_lease() const override { return milliseconds(500); }
  // A crash or a release is seen at the next look of the first in line, 250 ms at the latest; a
  // waiter that was paused in front of the others is not there when all is whole.
  Duration progress_bound() const override { return seconds(2); }
  // A look each 10 ms, and 250 ms where a watch would have told.
  Duration calm_bound() const override { return milliseconds(300); }

 private:
  testkit::TempDir folder_{"dlock-sim", "/dev/shm"};
};

}  // namespace dlock::simulation
