// SPDX-License-Identifier: Apache-2.0
//
// docs/migration.md, the recipe: its blocks as they stand there, in their order, on real servers,
// there and back, while names appear between any two commands and during them. Who takes part, who
// knows the source alone and who knows the target alone want them all: never do two have one, and
// its tokens rise.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "dlock/lock_manager.hpp"
#include "testkit/process.hpp"
#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/support/manual.hpp"

namespace dlock::fleet {
namespace {

using namespace std::chrono_literals;
using testkit::patience;

using Command = std::vector<std::string>;

const std::string kPage = std::string(DLOCK_DOCS) + "/migration.md";
constexpr const char* kPlan = "billing-2026";
/// New ones in each step; each of them is wanted this often at least before the next command.
constexpr int kNames = 6;
constexpr int kGrants = 10;

/// What the holders of one name see of each other.
struct Seen {
  std::atomic<int> inside{0};
  std::atomic<std::uint64_t> last_token{0};
};

/// Names that all want, and what went wrong with them.
class Names {
 public:
  void add(const std::string& step) {
    const std::scoped_lock lock(mutex_);
    for (int i = 0; i < kNames; ++i) {
      all_.push_back("billing/" + step + "/" + std::to_string(i));
      seen_.try_emplace(all_.back());
    }
  }
  /// Mostly one of the last, so that several want it at once.
  std::string pick(std::mt19937& dice) {
    const std::scoped_lock lock(mutex_);
    if (dice() % 200 == 0) {
      all_.push_back("billing/any/" + std::to_string(all_.size()));
      return all_.back();
    }
    const auto most = dice() % 4 == 0 ? all_.size() : std::min<std::size_t>(kNames, all_.size());
    return all_[all_.size() - 1 - dice() % most];
  }
  std::vector<std::string> all() {
    const std::scoped_lock lock(mutex_);
    return all_;
  }
  /// Held by the caller until it calls leave().
  void enter(const std::string& name, LockHandle& held, const std::string& who) {
    auto& seen = of(name);
    const auto token = held.token().value_or(0);
    const bool alone = ++seen.inside == 1;
    const auto last = seen.last_token.exchange(token);
    if (held.state() != HandleState::held) return;
    if (!alone) complain(name + ": " + who + " holds it beside another, in " + held.store());
    if (token <= last) {
      complain(name + ": " + who + " has the token " + std::to_string(token) + " after " +
               std::to_string(last));
    }
  }
  void leave(const std::string& name) { --of(name).inside; }
  std::vector<std::string> complaints() {
    const std::scoped_lock lock(mutex_);
    return complaints_;
  }

 private:
  Seen& of(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    return seen_[name];
  }
  void complain(std::string text) {
    const std::scoped_lock lock(mutex_);
    complaints_.push_back(std::move(text));
  }

  std::mutex mutex_;
  std::vector<std::string> all_;
  std::map<std::string, Seen> seen_;
  std::vector<std::string> complaints_;
};

/// A program that wants the names, until it is destroyed. It is paused while it is not `let` to.
class Program {
 public:
  Program(std::string who, const std::filesystem::path& config, Names& names, bool goes_at_once)
      : who_(std::move(who)), names_(names), locks_(open(config)), works_(goes_at_once) {
    thread_ = std::thread([this] { work(); });
  }
  ~Program() {
    ends_ = true;
    thread_.join();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  static LockManager open(const std::filesystem::path& config) {
    auto options = OpenOptions::built_in();
    options.log = [](LogLevel, std::string_view) {};
    return LockManager::from_file(config.string(), std::move(options));
  }
  /// Off: it holds nothing and waits for nothing when this returns.
  void let(bool work) {
    works_ = work;
    if (work) return;
    EXPECT_TRUE(testkit::eventually(patience(), [&] { return idle_.load(); })) << who_;
  }
  int grants() const { return grants_; }
  /// Where it has this name, if it gets it now.
  std::optional<LockHandle> try_now(const std::string& name) {
    error_code ec;
    return locks_.lock(name)->try_acquire({.wait = 0s}, {}, ec);
  }
  const std::string& who() const { return who_; }

 private:
  void work() {
    std::mt19937 dice(static_cast<unsigned>(std::hash<std::string>()(who_)));
    while (!ends_) {
      idle_ = false;
      if (!works_) {
        idle_ = true;
        std::this_thread::sleep_for(1ms);
        continue;
      }
      const auto name = names_.pick(dice);
      error_code ec;
      auto held =
          locks_.lock(name)->try_acquire({.wait = std::chrono::milliseconds(dice() % 60)}, {}, ec);
      if (!held) {
        std::this_thread::sleep_for(3ms);
        continue;
      }
      names_.enter(name, *held, who_);
      std::this_thread::sleep_for(std::chrono::microseconds(dice() % 3000));
      names_.leave(name);
      ++grants_;
      held->release();
    }
    idle_ = true;
  }

  const std::string who_;
  Names& names_;
  LockManager locks_;
  std::atomic<bool> works_;
  std::atomic<bool> ends_{false};
  std::atomic<bool> idle_{false};
  std::atomic<int> grants_{0};
  std::thread thread_;
};

/// One plan, from the recipe's first line to its last.
class Recipe {
 public:
  /// `backwards`: the plan that goes back, as the page has it below "And back".
  Recipe(const std::filesystem::path& folder, bool backwards, const std::string& old_url,
         const std::string& new_url, Names& names)
      : plan_(backwards ? "billing-back" : kPlan),
        from_(backwards ? "new" : "old"),
        to_(backwards ? "old" : "new"),
        folder_(folder / plan_),
        names_(names) {
    std::filesystem::create_directory(folder_);
    commands_ = testkit::manual_commands(kPage, "The recipe");
    back_ = testkit::manual_commands(kPage, "And back");
    const auto blocks = testkit::manual_configurations(kPage, "The recipe");
    const auto way_back = testkit::manual_configurations(kPage, "And back");
    if (blocks.size() != 2 || way_back.size() != 1) {
      throw std::runtime_error("the page has other configurations");
    }
    const auto stores = blocks[0].substr(0, blocks[0].find("locks:"));
    const auto both = [&](const std::string& locks) {
      return testkit::with_stores(stores, old_url, new_url) + locks;
    };
    const auto locks = backwards ? way_back[0] : blocks[0].substr(stores.size());
    const auto entry = locks.substr(0, locks.find("migrate:"));
    testkit::write_file(route(), both(locks));
    testkit::write_file(before(), both(entry + "store: " + from_ + " }\n"));
    testkit::write_file(afterwards(), backwards
                                          ? both(entry + "store: " + to_ + " }\n")
                                          : testkit::with_stores(blocks[1], old_url, new_url));
  }

  std::filesystem::path before() const { return folder_ / "before.yaml"; }
  std::filesystem::path route() const { return folder_ / "dlock.yaml"; }
  std::filesystem::path afterwards() const { return folder_ / "afterwards.yaml"; }
  const std::vector<Command>& commands() const { return commands_; }
  const std::vector<Command>& back() const { return back_; }

  testkit::Finished run(Command command) const {
    for (auto& word : command) word = renamed(word);
    command.insert(command.begin(), DLOCK_BINARY);
    testkit::ProcessOptions options;
    options.argv = std::move(command);
    options.env = {{"DLOCK_CONFIG", route().string()}};
    return testkit::run(std::move(options));
  }
  void expect_done(const Command& command, const std::string& part) const {
    const auto finished = run(command);
    EXPECT_TRUE(finished.status.success())
        << plan_ << ", " << command[1] << ": " << finished.out << finished.err;
    EXPECT_NE((finished.out + finished.err).find(part), std::string::npos)
        << plan_ << ", " << command[1] << ": " << finished.out << finished.err;
  }

  /// From its first command until after `finish`.
  void follow(bool goes_back_in_between) {
    Program long_lived(plan_ + "-route", route(), names_, false);
    Program source(plan_ + "-before", before(), names_, false);
    names_.add(plan_ + "-0");
    long_lived.let(true);
    source.let(true);
    step({&long_lived, &source}, {});
    // Whoever is seen without the route would have to be named with --yes.
    source.let(false);
    step({&long_lived}, [&] { expect_done(commands_.at(0), "all locks of"); });
    step({&long_lived}, [&] { expect_done(commands_.at(1), "started"); });
    Program target(plan_ + "-afterwards", afterwards(), names_, true);
    source.let(true);
    const std::vector<Program*> both{&long_lived, &source};
    step(both, [&] { expect_done(commands_.at(2), "moved to '" + to_ + "'"); });
    step(both, [&] { expect_done(commands_.at(3), "made later: in '" + to_ + "'"); });
    one_after_another({&long_lived, &source, &target});
    if (goes_back_in_between) {
      step({&long_lived}, [&] { expect_done(back_.at(0), "made later: in '" + from_ + "'"); });
      one_after_another({&long_lived, &source, &target});
      step(both, [&] { expect_done(commands_.at(2), "moved to '" + to_ + "'"); });
      step({&long_lived}, [&] { expect_done(commands_.at(3), "made later: in '" + to_ + "'"); });
    }
    step({&long_lived}, [&] { expect_done(commands_.at(4), "made later: in '" + to_ + "'"); });
    EXPECT_EQ(target.grants(), 0) << "before the certificate";
    const auto sealed = in_target(long_lived);
    // As the page says: by then they are gone, or they are not stopped.
    source.let(false);
    step({&long_lived}, [&] { expect_done(commands_.at(5), "is finished"); });
    Program fresh(plan_ + "-late", route(), names_, true);
    step({&long_lived, &target, &fresh}, {});
    // They do what they want: nothing of the plan is in their way any more.
    for (auto* program : {&long_lived, &target, &fresh}) program->let(false);
    one_after_another({&target, &long_lived, &fresh});
    for (const auto& name : sealed) EXPECT_FALSE(source.try_now(name)) << name;
  }

 private:
  std::string renamed(std::string text) const {
    const std::string name = kPlan;
    for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at)) {
      text.replace(at, name.size(), plan_);
      at += plan_.size();
    }
    return text;
  }

  /// New names, before a command, during it and after it.
  void step(const std::vector<Program*>& working, const std::function<void()>& command) {
    names_.add(plan_ + "-" + std::to_string(++steps_));
    if (command) command();
    names_.add(plan_ + "-" + std::to_string(steps_) + "-done");
    for (auto* program : working) {
      const auto before = program->grants();
      // One who does not take part gets less and less.
      const int least = program == working.front() ? kGrants : 0;
      EXPECT_TRUE(
          testkit::eventually(patience(), [&] { return program->grants() >= before + least; }))
          << program->who() << " has no lock after step " << steps_ << " of " << plan_;
    }
    const auto complaints = names_.complaints();
    ASSERT_TRUE(complaints.empty()) << plan_ << ", step " << steps_ << ": " << complaints.front();
  }

  /// On names that nobody has had, each of them first, then each of the others beside it.
  void one_after_another(const std::vector<Program*>& programs) {
    names_.add(plan_ + "-" + std::to_string(++steps_));
    const auto all = names_.all();
    for (std::size_t first = 0; first < programs.size(); ++first) {
      const auto name = all[all.size() - 1 - first] + "/new";
      std::uint64_t last = 0;
      for (std::size_t round = 0; round < programs.size(); ++round) {
        std::vector<LockHandle> held;
        for (std::size_t i = 0; i < programs.size(); ++i) {
          auto handle = programs[(first + round + i) % programs.size()]->try_now(name);
          if (handle) held.push_back(std::move(*handle));
        }
        ASSERT_LE(held.size(), 1U) << name << " after step " << steps_;
        if (held.empty()) continue;
        EXPECT_GT(held[0].token().value_or(0), last) << name << " after step " << steps_;
        last = held[0].token().value_or(0);
      }
      EXPECT_GT(last, 0U) << "nobody gets " << name << " after step " << steps_;
    }
  }

  /// A few that have their record.
  std::vector<std::string> in_target(Program& program) {
    std::vector<std::string> names;
    for (int i = 0; i < kNames; ++i) {
      names.push_back("billing/" + plan_ + "-sealed/" + std::to_string(i));
      const auto held = program.try_now(names.back());
      EXPECT_TRUE(held && held->store() == to_) << names.back();
    }
    return names;
  }

  const std::string plan_;
  const std::string from_;
  const std::string to_;
  const std::filesystem::path folder_;
  Names& names_;
  std::vector<Command> commands_;
  std::vector<Command> back_;
  int steps_ = 0;
};

class MigrationRecipe : public testing::Test {
 protected:
  std::string zookeeper() {
    if (!zookeeper_.running()) zookeeper_.start();
    return "zookeeper://127.0.0.1:" + std::to_string(zookeeper_.port()) + "/app";
  }
  std::string redis() {
    if (!redis_.running()) redis_.start();
    return "redis://127.0.0.1:" + std::to_string(redis_.port()) + "/0?lease=3s";
  }
  std::string memcached() {
    if (!memcached_.running()) memcached_.start();
    return "memcached://127.0.0.1:" + std::to_string(memcached_.port()) + "?lease=3s";
  }
  std::string local() const { return "file://" + (folder_ / "locks").string(); }

  void there(const std::string& from, const std::string& to, bool goes_back_in_between) {
    Recipe(folder_.path(), false, from, to, names_).follow(goes_back_in_between);
  }
  /// The recipe from its beginning, with another plan's name and the stores exchanged.
  void and_back(const std::string& from, const std::string& to) {
    there(from, to, true);
    if (HasFatalFailure()) return;
    Recipe(folder_.path(), true, from, to, names_).follow(true);
  }

  testkit::TempDir folder_{"dlock-recipe"};
  Names names_;
  testkit::ZooKeeperServer zookeeper_{{.tick = 500ms}};
  testkit::RedisServer redis_{{"--appendonly", "yes", "--appendfsync", "always"}};
  testkit::MemcachedServer memcached_;
};

TEST_F(MigrationRecipe, FromRedisToZooKeeperAndBack) { and_back(redis(), zookeeper()); }

TEST_F(MigrationRecipe, FromZooKeeperToRedisAndBack) { and_back(zookeeper(), redis()); }

TEST_F(MigrationRecipe, FromLocalToRedisAndBack) { and_back(local(), redis()); }

TEST_F(MigrationRecipe, FromZooKeeperToMemcached) { there(zookeeper(), memcached(), true); }

TEST_F(MigrationRecipe, BackWithdrawnAndWithoutTheTarget) {
  const Recipe recipe(folder_.path(), false, zookeeper(), redis(), names_);
  const auto& back = recipe.back();
  ASSERT_EQ(back.size(), 3U);
  auto locks = Program::open(recipe.route());
  const auto lock = locks.lock("billing/7");
  std::uint64_t last = 0;
  const auto expect_in = [&](const char* store) {
    const auto handle = lock->acquire({.wait = 30s});
    EXPECT_EQ(handle.store(), store);
    EXPECT_GT(handle.token().value_or(0), last);
    last = handle.token().value_or(0);
  };
  const auto forward = [&] {
    recipe.expect_done(recipe.commands().at(1), "started");
    recipe.expect_done(recipe.commands().at(3), "made later: in 'new'");
    expect_in("new");
  };
  forward();
  recipe.expect_done(back[0], "billing/7: in 'old'");
  expect_in("old");
  recipe.expect_done(back[1], "is withdrawn");
  expect_in("old");
  forward();
  redis_.stop();
  recipe.expect_done(back[2], "billing/7: in 'old'");
  expect_in("old");
}

}  // namespace
}  // namespace dlock::fleet
