// SPDX-License-Identifier: Apache-2.0
//
// synchronized() by sections: kinds, waits and names, from the program and from the configuration.
#include "dlock/section.hpp"

#include <gtest/gtest.h>

#include <future>
#include <stop_token>
#include <string>
#include <thread>

#include "dlock/memory.hpp"
#include "dlock/spi/descriptor.hpp"
#include "dlock/synchronized.hpp"

namespace dlock::tests {

namespace shop {

#if defined(__cpp_lib_source_location)  // else synchronized() takes a name
std::string named_by_itself(LockManager& locks) {
  return synchronized(locks, Section{.type = LockType::read},
                      [](const LockHandle& held) { return held.name(); });
}
std::string configured_by_itself(LockManager& locks) {
  return synchronized(locks, [](const LockHandle& held) {
    return held.name() + (held.mode() == Mode::shared ? " shared" : " exclusive");
  });
}
#endif

}  // namespace shop

namespace {

using namespace std::chrono_literals;

OpenOptions with(const BackendDescriptor& backend) {
  OpenOptions options;
  options.backends = {&backend};
  return options;
}

LockManager open_sections(const std::string& store, const std::string& sections = {},
                          const BackendDescriptor& backend = memory::backend()) {
  const auto text = "stores: { main: \"memory://" + store + "\" }\n" +
                    (sections.empty() ? "" : "sections:\n" + sections);
  return LockManager::from_config(Config::from_yaml(text, "dlock.yaml"), with(backend));
}

template <class Call>
LockError error_in(Call call) {
  try {
    call();
  } catch (const LockError& error) {
    return error;
  }
  return {error_code(), {}};
}

/// Whether another thread gets into the section at once.
bool is_open(LockManager& locks, Section section) {
  section.wait = 0ms;
  return std::async(std::launch::async,
                    [&] {
                      const auto error = error_in([&] { synchronized(locks, section, [] {}); });
                      EXPECT_TRUE(!error.code() || error.code() == errc::timed_out) << error.what();
                      return !error.code();
                    })
      .get();
}

const Section reading{.type = LockType::read, .lock = "stock"};
const Section writing{.type = LockType::write, .lock = "stock"};
const Section alone{.lock = "stock"};

TEST(SectionsOfAManager, ReadersAreTogetherAndWritersAlone) {
  auto locks = open_sections("sections-kinds");
  synchronized(locks, reading, [&](const LockHandle& held) {
    EXPECT_EQ(held.mode(), Mode::shared);
    EXPECT_TRUE(is_open(locks, reading));
    EXPECT_FALSE(is_open(locks, writing));
    EXPECT_FALSE(is_open(locks, alone));
  });
  for (const auto& section : {writing, alone}) {
    synchronized(locks, section, [&](const LockHandle& held) {
      EXPECT_EQ(held.mode(), Mode::exclusive);
      EXPECT_FALSE(is_open(locks, reading));
      EXPECT_FALSE(is_open(locks, writing));
      EXPECT_FALSE(is_open(locks, alone));
    });
  }
}

TEST(SectionsOfAManager, ReenterAsTheirKindsDo) {
  auto locks = open_sections("sections-reentry");
  synchronized(locks, writing, [&] {
    synchronized(locks, alone, [&] {
      synchronized(locks, reading,
                   [](const LockHandle& held) { EXPECT_EQ(held.mode(), Mode::exclusive); });
    });
  });
  synchronized(locks, reading, [&] {
    synchronized(locks, reading, [] {});
    EXPECT_EQ(error_in([&] { synchronized(locks, writing, [] { FAIL(); }); }).code(),
              errc::operation_not_permitted);
  });
  const Section once{.type = LockType::semaphore, .lock = "till", .wait = 0ms, .limit = 1};
  synchronized(locks, once, [&] {
    EXPECT_EQ(error_in([&] { synchronized(locks, once, [] { FAIL(); }); }).code(), errc::timed_out)
        << "a semaphore is not re-entrant";
  });
  synchronized(locks, once, [](const LockHandle& held) { EXPECT_EQ(held.permits(), 1U); });
}

TEST(SectionsOfAManager, CountPermits) {
  auto locks = open_sections("sections-permits");
  const Section two{.type = LockType::semaphore, .lock = "slots", .limit = 3, .permits = 2};
  const Section one{.type = LockType::semaphore, .lock = "slots"};
  synchronized(locks, two, [&] {
    EXPECT_FALSE(is_open(locks, two));
    EXPECT_TRUE(is_open(locks, one)) << "of as many as the store says";
  });
}

TEST(SectionsOfAManager, TakeSeveralLocksAtOnce) {
  auto locks = open_sections("sections-multi");
  const Section both{.type = LockType::multi, .locks = {"b", "a"}};
  synchronized(locks, both, [&](const LockHandle& held) {
    EXPECT_EQ(held.name(), "a // b");
    EXPECT_FALSE(is_open(locks, {.lock = "a"}));
    EXPECT_FALSE(is_open(locks, {.lock = "b"}));
    synchronized(locks, both, [] {});
  });
}

TEST(SectionsOfAManager, TheWorkDoesNotRunWhenTheWaitIsOver) {
  auto locks = open_sections("sections-wait", "  slow: { lock: stock, wait: 20ms }\n");
  const auto held = locks.lock("stock")->acquire();
  bool ran = false;
  const auto work = [&] { ran = true; };
  for (const auto type : {LockType::mutex, LockType::read, LockType::write}) {
    const Section section{.type = type, .lock = "stock", .wait = 20ms};
    const auto error = error_in([&] { synchronized(locks, section, work); });
    EXPECT_EQ(error.code(), errc::timed_out);
    EXPECT_EQ(error.lock(), "stock");
  }
  const Section both{.type = LockType::multi, .locks = {"a", "stock"}, .wait = 20ms};
  EXPECT_EQ(error_in([&] { synchronized(locks, both, work); }).code(), errc::timed_out);
  EXPECT_EQ(error_in([&] { synchronized(locks, "slow", work); }).code(), errc::timed_out);
  EXPECT_FALSE(ran);
  EXPECT_TRUE(is_open(locks, {.lock = "a"})) << "what was taken of it was given back";
}

TEST(SectionsOfAManager, OfTheConfigurationAreTakenByTheirNames) {
  auto locks = open_sections("sections-config", R"(
  stock.view: { type: read, lock: stock }
  import: { type: semaphore, limit: 2 }
  transfer: { type: multi, locks: [b, a] }
  till: { type: semaphore_mutex }
)");
  const auto lock_under = [&](const char* section) {
    return synchronized(locks, section, [](const LockHandle& held) { return held.name(); });
  };
  EXPECT_EQ(lock_under("stock.view"), "stock");
  EXPECT_EQ(lock_under("import"), "import");
  EXPECT_EQ(lock_under("transfer"), "a // b");
  EXPECT_EQ(lock_under("elsewhere"), "elsewhere") << "no section: a lock";
  synchronized(locks, "stock.view", [&] { EXPECT_TRUE(is_open(locks, reading)); });
  synchronized(locks, "till", [](const LockHandle& held) { EXPECT_EQ(held.permits(), 1U); });
  EXPECT_EQ(locks.semaphore_status("import").limit, 2U);
}

#if defined(__cpp_lib_source_location)
TEST(SectionsOfAManager, AreNamedAfterTheCallingFunction) {
  auto locks = open_sections("sections-function",
                             "  dlock::tests::shop::configured_by_itself: { type: read }\n");
  EXPECT_EQ(shop::named_by_itself(locks), "dlock::tests::shop::named_by_itself");
  EXPECT_EQ(shop::configured_by_itself(locks), "dlock::tests::shop::configured_by_itself shared");
}
#endif

TEST(SectionsOfAManager, ThatSayTwoThingsAreRefused) {
  auto locks = open_sections("sections-refused");
  const auto refused = [&](const Section& section) {
    return error_in([&] { synchronized(locks, section, [] { FAIL(); }); }).code();
  };
  EXPECT_EQ(refused({.lock = "a", .locks = {"b"}}), errc::invalid_argument);
  EXPECT_EQ(refused({.type = LockType::multi, .lock = "a"}), errc::invalid_argument);
  EXPECT_EQ(refused({.lock = "a", .limit = 2}), errc::invalid_argument);
  EXPECT_EQ(refused({.lock = "a", .wait = -1ms}), errc::invalid_argument);
  EXPECT_EQ(refused({.type = LockType::semaphore, .lock = "a", .limit = 1, .permits = 2}),
            errc::invalid_argument);
  EXPECT_EQ(refused({.lock = "a//b"}), errc::invalid_name);
  EXPECT_EQ(error_in([&] { synchronized(locks, "", [] {}); }).code(), errc::invalid_name);
}

/// As a store that has neither readers nor semaphores.
const BackendDescriptor& plain() {
  static const BackendDescriptor one = [] {
    auto made = memory::backend();
    made.has_shared_mode = false;
    made.has_permits = false;
    return made;
  }();
  return one;
}

TEST(SectionsOfAManager, OfAKindThatTheStoreDoesNotHaveAreRefusedAtOpen) {
  const auto refused = [](const std::string& section) {
    const auto error = error_in([&] { open_sections("sections-plain", section, plain()); });
    EXPECT_EQ(error.code(), errc::config_invalid);
    return error.server_text();
  };
  EXPECT_EQ(refused("  view: { type: read, lock: stock }\n"),
            "dlock.yaml:3:3: section 'view': type read: memory store 'main' has no readers; write "
            "type: mutex, or route 'stock' to a store that has them");
  EXPECT_NE(refused("  sell: { type: write }\n").find("type write"), std::string::npos);
  EXPECT_NE(refused("  slots: { type: semaphore }\n").find("has no semaphores"), std::string::npos);
  auto locks = open_sections("sections-plain", "  both: { type: multi, locks: [a, b] }\n", plain());
  synchronized(locks, "both", [] {});
  EXPECT_EQ(error_in([&] { synchronized(locks, writing, [] { FAIL(); }); }).code(),
            errc::invalid_argument);
}

TEST(SectionsOfAManager, ASemaphoreOnARouteWithWhatOnlyLocksHaveIsRefusedAtOpen) {
  const auto error_with = [](const std::string& route) {
    const auto text =
        "stores: { main: \"memory://sections-options\" }\n"
        "locks: [ { match: \"**\", " +
        route + " } ]\nsections:\n  slots: { type: semaphore, lock: s, limit: 2 }";
    return error_in([&] {
      LockManager::from_config(Config::from_yaml(text, "dlock.yaml"), with(memory::backend()));
    });
  };
  EXPECT_FALSE(error_with("store: main").code());
  const auto refused = error_with("store: main, max_queue: 3");
  EXPECT_EQ(refused.code(), errc::config_invalid);
  EXPECT_NE(refused.server_text().find("max_queue, which is of locks only"), std::string::npos)
      << refused.server_text();
}

TEST(SectionsOfAManager, NeedARouteForEachLock) {
  const auto refused = [](const std::string& section) {
    const auto text =
        "stores: { main: \"memory://sections-routes\" }\n"
        "locks: [ { match: \"stock/**\" } ]\nsections:\n  " +
        section;
    return error_in([&] {
             LockManager::from_config(Config::from_yaml(text, "dlock.yaml"),
                                      with(memory::backend()));
           })
        .server_text();
  };
  EXPECT_EQ(refused("view: { lock: stock/1 }"), "");
  EXPECT_NE(refused("view: { lock: other }").find("dlock.yaml:4:3: section 'view': lock 'other'"),
            std::string::npos);
  EXPECT_NE(refused("all: { type: multi, locks: [stock/1, other] }").find("lock 'other'"),
            std::string::npos);
}

TEST(SectionsOfAManager, OfARouteThatMovesItsLocksAreExclusive) {
  const auto refused = [](const std::string& type) {
    const auto text =
        "stores: { a: \"memory://sections-a\", b: \"memory://sections-b\" }\n"
        "locks: [ { match: \"**\", migrate: { from: a, to: b, plan: p } } ]\n"
        "sections: { s: { type: " +
        type + " } }";
    return error_in([&] {
             LockManager::from_config(Config::from_yaml(text, "dlock.yaml"),
                                      with(memory::backend()));
           })
        .server_text();
  };
  EXPECT_EQ(refused("mutex"), "");
  for (const auto* const type : {"read", "write", "semaphore"}) {
    EXPECT_NE(refused(type).find("has `migrate`"), std::string::npos) << type;
  }
}

}  // namespace
}  // namespace dlock::tests
