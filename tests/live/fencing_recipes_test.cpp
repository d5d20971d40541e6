// SPDX-License-Identifier: Apache-2.0
//
// The recipes of docs/fencing.md, taken out of that page and tried on the real things.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "dlock/sequencer_check.hpp"
#include "testkit/process.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/live/redis/support.hpp"

// The page shows this function, word by word.
// recipe: http-service
int status_of_write(dlock::SequencerCheck& check, std::string_view x_lock) {
  dlock::error_code ec;
  const auto sequencer = dlock::Sequencer::parse(x_lock, ec);
  if (!sequencer) return 400;
  const auto verdict = check.admit(*sequencer);
  return verdict == dlock::SequencerCheck::Verdict::admitted ? 200 : 409;
}
// end of recipe

namespace dlock::testkit {
namespace {

using testing::HasSubstr;

std::string file_text(const std::string& path) {
  std::ostringstream all;
  all << std::ifstream(path).rdbuf();
  return all.str();
}

/// The code block that follows `<!-- recipe: NAME -->`.
std::string recipe(const std::string& name) {
  static const std::string page = file_text(DLOCK_FENCING_MANUAL);
  const auto mark = page.find("<!-- recipe: " + name + " -->\n```");
  if (mark == std::string::npos) {
    ADD_FAILURE() << "no recipe " << name;
    return {};
  }
  const auto start = page.find('\n', page.find("```", mark)) + 1;
  return page.substr(start, page.find("```", start) - start);
}

/// SQLite by its own shell, on a file.
class SqlRecipe : public testing::Test {
 protected:
  void SetUp() override { sql(recipe("sql-table") + recipe("sql-fences")); }

  std::string sql(const std::string& script) const {
    ProcessOptions options;
    options.argv = {find_server_program("sqlite3", "sqlite3"), "-batch", "-bail",
                    (folder_ / "data.db").string()};
    const auto done = run(std::move(options), ".timeout 60000\n" + script);
    EXPECT_TRUE(done.status.success()) << done.err;
    return done.out;
  }

  static std::string parameters(std::uint64_t token, const std::string& content) {
    return ".parameter set :id 42\n.parameter set :name \"'orders/42'\"\n.parameter set :token " +
           std::to_string(token) + "\n.parameter set :content \"'" + content + "'\"\n";
  }
  /// How many rows it changed.
  std::string changed(const std::string& name, std::uint64_t token,
                      const std::string& content) const {
    return sql(parameters(token, content) + recipe(name) + "SELECT changes();\n");
  }
  std::string row() const { return sql("SELECT content, fence FROM orders WHERE id = 42;\n"); }

  TempDir folder_{"dlock-recipes"};
};

TEST_F(SqlRecipe, AnUpdateIsRefusedBelowTheHighestToken) {
  EXPECT_EQ(changed("sql-update", 5, "none"), "0\n") << "no row yet";
  sql("INSERT INTO orders (id, content) VALUES (42, 'new');\n");
  EXPECT_EQ(changed("sql-update", 5, "five"), "1\n");
  EXPECT_EQ(changed("sql-update", 5, "five again"), "1\n");
  EXPECT_EQ(changed("sql-update", 4, "late"), "0\n");
  EXPECT_EQ(row(), "five again|5\n");
  EXPECT_EQ(changed("sql-update", 9007199254740991, "last"), "1\n");
  EXPECT_EQ(row(), "last|9007199254740991\n");
}

TEST_F(SqlRecipe, AnUpsertIsRefusedBelowTheHighestToken) {
  EXPECT_EQ(changed("sql-upsert", 5, "five"), "1\n");
  EXPECT_EQ(changed("sql-upsert", 5, "five again"), "1\n");
  EXPECT_EQ(changed("sql-upsert", 4, "late"), "0\n");
  EXPECT_EQ(row(), "five again|5\n");
  EXPECT_EQ(changed("sql-upsert", 6, "six"), "1\n");
  EXPECT_EQ(row(), "six|6\n");
}

TEST_F(SqlRecipe, ATokenForEachLockIsRaisedByItsTransactions) {
  EXPECT_EQ(changed("sql-raise", 5, ""), "1\n");
  EXPECT_EQ(changed("sql-raise", 5, ""), "1\n");
  EXPECT_EQ(changed("sql-raise", 4, ""), "0\n");
  EXPECT_EQ(sql("SELECT name, token FROM fences;\n"), "orders/42|5\n");
}

// The trigger ends a writer whose statement would go back.
TEST_F(SqlRecipe, TwoWritersAtOnceNeverGoBack) {
  sql("CREATE TRIGGER never_back BEFORE UPDATE ON orders WHEN NEW.fence < OLD.fence BEGIN SELECT "
      "RAISE(ABORT, 'went back'); END;\n");
  constexpr std::uint64_t kWrites = 100;
  const auto writer = [this](std::uint64_t first) {
    std::string script;
    for (std::uint64_t token = first; token <= 2 * kWrites; token += 2) {
      script += parameters(token, std::to_string(token)) + recipe("sql-upsert");
    }
    sql(script);
  };
  recipe("sql-upsert");  // the page is read once, before there are threads
  std::thread odd(writer, 1);
  std::thread even(writer, 2);
  odd.join();
  even.join();
  EXPECT_EQ(row(), "200|200\n");
}

class RedisRecipe : public RedisTest {
 protected:
  static std::int64_t write(RedisClient& by, std::uint64_t token, const std::string& content) {
    const auto reply =
        by.ask({"EVAL", recipe("redis-script"), "1", "orders:42", std::to_string(token), content});
    EXPECT_FALSE(reply.is_error()) << reply.text;
    return reply.integer;
  }
  std::string content() { return client().ask({"HGET", "orders:42", "content"}).text; }
  std::string fence() { return client().ask({"HGET", "orders:42", "fence"}).text; }
};

TEST_F(RedisRecipe, AWriteIsRefusedBelowTheHighestToken) {
  EXPECT_EQ(write(client(), 5, "five"), 1);
  EXPECT_EQ(write(client(), 5, "five again"), 1);
  EXPECT_EQ(write(client(), 4, "late"), 0);
  EXPECT_EQ(content(), "five again");
  EXPECT_EQ(write(client(), 9007199254740991, "last"), 1);
  EXPECT_EQ(write(client(), 9007199254740990, "late"), 0) << "compared exactly up to the end";
  EXPECT_EQ(fence(), "9007199254740991");
}

TEST_F(RedisRecipe, TwoWritersAtOnceNeverGoBack) {
  recipe("redis-script");
  std::atomic<std::uint64_t> highest = 0;
  std::atomic<int> wrong = 0;
  const auto writer = [&](std::uint64_t first) {
    RedisClient mine(server_.port());
    for (std::uint64_t token = first; token <= 2000; token += 2) {
      const auto known = highest.load();
      const bool done = write(mine, token, std::to_string(token)) == 1;
      if (done && token < known) ++wrong;
      auto seen = highest.load();
      while (done && seen < token && !highest.compare_exchange_weak(seen, token)) {
      }
    }
  };
  std::thread odd(writer, 1);
  std::thread even(writer, 2);
  odd.join();
  even.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(content(), "2000");
  EXPECT_EQ(fence(), "2000");
}

TEST(HttpRecipe, IsTheCodeThatIsTestedHere) {
  const auto source = file_text(DLOCK_RECIPES_SOURCE);
  const std::string begin = "// recipe: http-service\n";
  const auto start = source.find(begin) + begin.size();
  EXPECT_EQ(recipe("http-service"), source.substr(start, source.find("// end of", start) - start));
}

TEST(HttpRecipe, RefusesWhatIsLateAndWhatIsNoSequencer) {
  const TempDir folder("dlock-recipes");
  const auto granted = [&] {
    ProcessOptions options;
    options.argv = {DLOCK_BINARY, "--store",   "file://" + (folder / "locks").string(),
                    "run",        "orders/42", "--",
                    "sh",         "-c",        "printf %s \"$DLOCK_SEQUENCER\""};
    options.unset_env = {"DLOCK_CONFIG", "DLOCK_STORE"};
    return run(std::move(options)).out;
  };
  const auto first = granted();
  const auto second = granted();
  EXPECT_THAT(first, HasSubstr("dlock1:exclusive:"));
  SequencerCheck check;
  EXPECT_EQ(status_of_write(check, first), 200);
  EXPECT_EQ(status_of_write(check, second), 200);
  EXPECT_EQ(status_of_write(check, second), 200);
  EXPECT_EQ(status_of_write(check, first), 409);
  EXPECT_EQ(status_of_write(check, "17"), 400);
}

}  // namespace
}  // namespace dlock::testkit
