// SPDX-License-Identifier: Apache-2.0
//
// What the tests of `dlock migrate` in mode move begin with: local stores, and the configurations
// of those who take part and of those who know one store alone.
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "program/exit_codes.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {

constexpr int kWaits = 3;
constexpr int kRefused = 4;
constexpr int kUsage = 64;
constexpr int kNotObtained = 75;
constexpr int kConfig = 78;

inline int ended(testkit::Process& process) {
  const auto status = process.wait(patience());
  return status ? status->shell_status() : -1;
}

/// `dlock hold`, until it is let go of.
class Holder {
 public:
  explicit Holder(testkit::ProcessOptions options) : process_(std::move(options)) {
    const auto event = read_event(process_);
    store_ = text(event, "store");
    if (const auto* token = event.if_contains("token")) token_ = token->to_number<std::int64_t>();
  }
  /// The store that the lock is in.
  const std::string& store() const { return store_; }
  std::int64_t token() const { return token_; }
  pid_t pid() const { return process_.pid(); }
  /// As it is written of whoever holds it.
  std::string name() const { return "dlock (pid " + std::to_string(pid()) + " on "; }
  void let_go() {
    process_.close_stdin();
    EXPECT_EQ(ended(process_), 0) << process_.collected_stderr();
  }

 private:
  testkit::Process process_;
  std::string store_;
  std::int64_t token_ = 0;
};

class CliMigrate : public testing::Test {
 protected:
  CliMigrate() {
    write("dlock.yaml", route_of("p"));
    write("old.yaml", "{ match: \"**\", store: old }");
    write("new.yaml", "{ match: \"**\", store: new }");
  }

  static std::string route_of(const std::string& plan, const std::string& match = "billing/**",
                              const std::string& from = "old", const std::string& to = "new") {
    return "{ match: \"" + match + "\", migrate: { from: " + from + ", to: " + to +
           ", plan: " + plan + " } }";
  }
  void write(const std::string& file, const std::string& route) const {
    write(file, std::vector<std::string>{route});
  }
  void write(const std::string& file, const std::vector<std::string>& routes) const {
    std::ofstream stream(path(file));
    stream << "stores:\n";
    for (const std::string store : {"old", "new", "third"}) {
      stream << "  " << store << ": \"" << url(store) << "\"\n";
    }
    stream << "locks:\n";
    for (const auto& route : routes) stream << "  - " << route << "\n";
  }
  std::string url(const std::string& store) const {
    return "file://" + (folder_.path() / store).string();
  }
  std::string path(const std::string& file) const { return (folder_.path() / file).string(); }

  testkit::ProcessOptions with(const std::string& file, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"--config", path(file)});
    return dlock(std::move(arguments));
  }
  testkit::ProcessOptions hold(const std::string& file, const std::string& name) const {
    return with(file, {"hold", name});
  }

  testkit::Finished migrate_with(const std::string& file,
                                 std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "migrate");
    return finish(with(file, std::move(arguments)));
  }
  testkit::Finished migrate(std::vector<std::string> arguments) const {
    return migrate_with("dlock.yaml", std::move(arguments));
  }
  void expect_with(const std::string& file, int status, std::vector<std::string> arguments,
                   const std::string& part = {}) const {
    std::string line = file;
    for (const auto& argument : arguments) line += " " + argument;
    const auto result = migrate_with(file, std::move(arguments));
    EXPECT_EQ(result.status.shell_status(), status) << line << ": " << result.out << result.err;
    EXPECT_NE((result.out + result.err).find(part), std::string::npos)
        << line << ": " << result.out << result.err;
  }
  void expect(int status, std::vector<std::string> arguments, const std::string& part = {}) const {
    expect_with("dlock.yaml", status, std::move(arguments), part);
  }
  boost::json::object migrate_json(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    const auto result = migrate(std::move(arguments));
    boost::json::error_code error;
    const auto value = boost::json::parse(result.out, error);
    EXPECT_TRUE(!error && value.is_object()) << result.out << result.err;
    return !error && value.is_object() ? value.as_object() : boost::json::object();
  }
  /// Of those that `status` shows.
  boost::json::object lock_of(const std::string& name) const {
    const auto status = migrate_json({"status", "p"});
    if (!status.contains("locks")) return {};
    for (const auto& lock : status.at("locks").as_array()) {
      if (text(lock.as_object(), "name") == name) return lock.as_object();
    }
    ADD_FAILURE() << "no " << name;
    return {};
  }
  std::string state_of(const std::string& name) const { return text(lock_of(name), "state"); }
  std::string gate() const {
    const auto status = migrate_json({"status", "p"});
    const auto* gate = status.if_contains("gate");
    return gate != nullptr && gate->is_object() ? text(gate->as_object(), "state") : "(none)";
  }
  void start() const { expect(0, {"start", "p"}, "started"); }

  /// Asks for a lock once: the exit status, 0 if it was free.
  int try_once(const std::string& file, const std::string& name) const {
    return finish(with(file, {"run", name, "--wait", "0", "--", "true"})).status.shell_status();
  }
  /// $DLOCK_TOKEN of one hold; 0: there was none.
  std::int64_t token(const std::string& file, const std::string& name) const {
    const auto result = finish(with(file, {"run", name, "--", "sh", "-c", "echo $DLOCK_TOKEN"}));
    EXPECT_EQ(result.status.shell_status(), 0) << file << " " << name << ": " << result.err;
    return std::atoll(result.out.c_str());
  }

  testkit::TempDir folder_{"dlock-migrate-test"};
};

}  // namespace dlock::cli_test
