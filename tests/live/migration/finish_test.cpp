// SPDX-License-Identifier: Apache-2.0
//
// `dlock migrate finish` that died between its last writes is run again.
#include <gtest/gtest.h>

#include "testkit/process.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/support/direct_client.hpp"

namespace dlock::testkit {
namespace {

TEST(MigrationFinish, RunAgainTakesThePlanOutOfTheListsAfterTheCertificate) {
  const TempDir folder("dlock-finish");
  const auto url = [&](const char* store) { return "file://" + (folder / store).string(); };
  write_file(folder / "dlock.yaml", "stores:\n  old: \"" + url("old") + "\"\n  new: \"" +
                                        url("new") +
                                        "\"\nlocks:\n  - { match: \"**\", migrate: { from: old, "
                                        "to: new, plan: p } }\n");
  const auto migrate = [&](std::vector<std::string> arguments) {
    ProcessOptions options;
    options.argv = {DLOCK_BINARY, "--config", (folder / "dlock.yaml").string(), "migrate"};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    const auto finished = run(std::move(options));
    EXPECT_TRUE(finished.status.success()) << finished.out << finished.err;
  };
  migrate({"start", "p"});
  migrate({"advance", "p", "--all"});
  migrate({"finish", "p", "--all"});
  {
    // As if it had died after the certificate.
    DirectClient client(url("new"));
    ASSERT_EQ(client.set_note("plans-in", "dlock-plans1\n=p", "dlock-plans1\np").status,
              RecordStatus::done);
  }
  migrate({"finish", "p", "--all"});
  DirectClient client(url("new"));
  EXPECT_EQ(client.note("plans-in").found, "dlock-plans1\n=p");
}

}  // namespace
}  // namespace dlock::testkit
