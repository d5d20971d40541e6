// SPDX-License-Identifier: Apache-2.0
//
// SimHost: the manager of one simulated process. Its stores run on the process's loop, and so do
// its callbacks.
#pragma once

#include <boost/asio/post.hpp>
#include <memory>
#include <string>
#include <utility>

#include "core/store/host.hpp"
#include "core/store/store.hpp"
#include "tests/simulation/sim_store.hpp"

namespace dlock::simulation {

class SimHost final : public core::Host {
 public:
  explicit SimHost(Process& process) : process_(process) {}

  Env& env() noexcept override { return process_; }
  bool post(Job job) override {
    asio::post(process_.executor(), [job = std::move(job)]() mutable { job(); });
    return true;
  }
  void post_callback(std::shared_ptr<core::Errand> errand) noexcept override {
    process_.deliver([errand = std::move(errand)] { errand->run(); });
  }
  asio::any_io_executor callback_executor() override { return process_.executor(); }
  void release(const std::shared_ptr<core::Hold>& hold,
               core::Releaser::Done done) noexcept override {
    auto shared = std::make_shared<core::Releaser::Done>(std::move(done));
    process_.deliver([hold, shared] {
      if (const auto store = hold->store().lock()) store->release(hold, std::move(*shared));
    });
  }
  void log(LogLevel, std::string_view text) const noexcept override {
    process_.world().trace("{}: log: {}", process_.name(), text);
  }

  Process& process() noexcept { return process_; }

 private:
  Process& process_;
};

/// A store of `kind` for that host, with its production backend. The settings are the defaults.
inline std::shared_ptr<core::Store> make_store(const std::shared_ptr<SimHost>& host, SimStore& kind,
                                               core::StoreSettings settings = {}) {
  // A descriptor's factory has no state of its own.
  static thread_local SimStore* making = nullptr;
  static thread_local Process* in = nullptr;
  making = &kind;
  in = &host->process();
  static thread_local BackendDescriptor descriptor;
  descriptor = kind.descriptor();
  descriptor.create = [](const StoreOptions&, Env&, EventSink& sink) {
    return making->make_backend(*in, sink);
  };
  core::Store::Setup setup;
  setup.settings = std::move(settings);
  setup.options = kind.options();
  setup.options.name = std::string(kind.name());
  setup.descriptor = &descriptor;
  return std::make_shared<core::Store>(*host, std::move(setup));
}

}  // namespace dlock::simulation
