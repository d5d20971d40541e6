// SPDX-License-Identifier: Apache-2.0
#include "tests/live/migration/leased_operator.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace dlock::fleet {

namespace json = boost::json;

testkit::ProcessOptions dlock_program(const std::filesystem::path& config,
                                      std::vector<std::string> arguments) {
  testkit::ProcessOptions options;
  options.argv = {DLOCK_BINARY, "--config", config.string()};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.unset_env = {"DLOCK_CONFIG", "DLOCK_STORE"};
  return options;
}

testkit::Finished LeasedOperator::migrate(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), "migrate");
  arguments.insert(arguments.begin() + 2, kLeasedPlan);
  return testkit::run(dlock_program(stores_.operators(), std::move(arguments)));
}

void LeasedOperator::expect(int status, const std::vector<std::string>& arguments,
                            std::string_view part) const {
  const auto finished = migrate(arguments);
  const auto line = fmt::format("{}", fmt::join(arguments, " "));
  const auto output = finished.out + finished.err;
  EXPECT_EQ(finished.status.shell_status(), status) << line << ": " << output;
  EXPECT_NE(output.find(part), std::string::npos) << line << ": no '" << part << "': " << output;
}

void LeasedOperator::start(std::chrono::milliseconds gate_lease) const {
  expect(0, {"start", "--gate-lease", fmt::format("{}ms", gate_lease.count())});
  EXPECT_EQ(state(), "S_ALONE");
}

void LeasedOperator::turn(const std::vector<std::string>& arguments,
                          const std::string& state) const {
  const auto finished = migrate(arguments);
  EXPECT_EQ(this->state(), state) << finished.out << finished.err;
}

std::string LeasedOperator::state() const {
  const auto status = migrate({"status", "--json"});
  json::error_code error;
  const auto value = json::parse(status.out, error);
  const auto* gate = error ? nullptr : value.as_object().if_contains("gate");
  if (gate == nullptr || !gate->is_object()) return status.out + status.err;
  return std::string(gate->at("state").as_string());
}

LockManager open_quietly(const std::filesystem::path& config) {
  auto options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  return LockManager::from_file(config.string(), std::move(options));
}

LockHandle acquire(LockManager& locks, const std::string& name) {
  error_code ec;
  Diagnostics why;
  AcquireOptions options;
  options.wait = 60s;
  options.diagnostics = &why;
  auto held = locks.lock(name)->acquire(options, {}, ec);
  EXPECT_FALSE(ec) << name << ": " << ec.message() << ": " << why.server_text;
  return held;
}

error_code refusal(LockManager& locks, const std::string& name, std::chrono::milliseconds wait) {
  error_code ec;
  const auto held = locks.lock(name)->acquire({.wait = wait}, {}, ec);
  EXPECT_FALSE(held) << name << " is granted in '" << held.store() << "'";
  return ec;
}

StoreView::StoreView(const std::string& url)
    : locks_([&] {
        auto options = OpenOptions::built_in();
        options.log = [](LogLevel, std::string_view) {};
        return LockManager::open(url, std::move(options));
      }()) {}

bool StoreView::is_held(const std::string& name) const { return locks_.status(name).held; }

bool StoreView::await(const std::string& name, bool is_held) const {
  return testkit::eventually(testkit::patience(), [&] { return this->is_held(name) == is_held; });
}

}  // namespace dlock::fleet
