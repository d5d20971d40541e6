// SPDX-License-Identifier: Apache-2.0
//
// How completion handlers and wakings leave the loop: together, at the end of its turn, and each
// as if it had been alone.
#include "core/loop/deliveries.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/execution.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <future>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dlock::core {
namespace {

/// An executor that keeps what it is given until the test runs it, and refuses when told to. Knows
/// how many copies of it there were beside the one whose end was the end of its work.
class Desk {
 public:
  struct Book {
    asio::io_context context;
    std::deque<Job> posted;
    int posts = 0;
    int refuses = 0;  ///< the next so many
    bool runs_at_once = false;
    bool is_running = false;
    int at_work = 0;
    long left_at_the_end = -1;

    void run_all() {
      if (std::exchange(is_running, true)) return;
      const struct Done {
        bool& running;
        ~Done() { running = false; }
      } done{is_running};
      while (!posted.empty()) {
        auto job = std::move(posted.front());
        posted.pop_front();
        job();
      }
    }
  };

  explicit Desk(std::shared_ptr<Book> book, bool at_work = false)
      : book_(std::move(book)), at_work_(at_work) {
    if (at_work_) ++book_->at_work;
  }
  Desk(const Desk& other) noexcept : book_(other.book_), at_work_(other.at_work_) {
    if (at_work_) ++book_->at_work;
  }
  Desk& operator=(const Desk&) = delete;
  ~Desk() {
    if (at_work_ && --book_->at_work == 0) book_->left_at_the_end = book_.use_count() - 1;
  }

  Desk require(asio::execution::outstanding_work_t::tracked_t) const { return Desk(book_, true); }
  static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
    return asio::execution::blocking.never;
  }
  asio::io_context& query(asio::execution::context_t) const noexcept { return book_->context; }
  template <class Work>
  void execute(Work work) const {
    if (book_->refuses > 0) {
      --book_->refuses;
      throw std::runtime_error("full");
    }
    ++book_->posts;
    book_->posted.emplace_back(std::move(work));
    if (book_->runs_at_once) book_->run_all();
  }
  bool operator==(const Desk& other) const noexcept { return book_ == other.book_; }

 private:
  std::shared_ptr<Book> book_;
  bool at_work_ = false;
};

template <class Executor>
detail::Destination at(const Executor& executor) {
  asio::any_io_executor any(executor);
  return {asio::prefer(any, asio::execution::outstanding_work.tracked), any};
}

class DeliveriesTest : public testing::Test {
 protected:
  void TearDown() override { book->posted.clear(); }  // each has the book
  Job note(char mark) {
    return [this, mark] { ran += mark; };
  }
  Job fail(char mark) {
    return [this, mark] {
      ran += mark;
      throw std::runtime_error("the user's");
    };
  }
  void run_all_whatever_they_throw() const {
    while (!book->posted.empty()) {
      try {
        book->run_all();
      } catch (const std::runtime_error&) {
        ++thrown;
      }
    }
  }

  Deliveries deliveries;
  const std::shared_ptr<Desk::Book> book = std::make_shared<Desk::Book>();
  const Desk desk{book};
  std::string ran;
  mutable int thrown = 0;
};

TEST_F(DeliveriesTest, OutsideOfATurnAHandlerIsPostedNow) {
  Deliveries::deliver(at(desk), note('a'));
  EXPECT_EQ(book->posts, 1);
  book->run_all();
  EXPECT_EQ(ran, "a");
}

TEST_F(DeliveriesTest, ATurnsHandlersForOneExecutorArePostedOnceAtItsEndAndRunInOrder) {
  const auto others = std::make_shared<Desk::Book>();
  {
    const Deliveries::Turn turn(deliveries);
    Deliveries::deliver(at(desk), note('a'));
    Deliveries::deliver(at(Desk(others)), note('x'));
    Deliveries::deliver(at(desk), note('b'));
    Deliveries::deliver(at(desk), note('c'));
    EXPECT_EQ(book->posts, 0);
    EXPECT_GT(book->at_work, 0) << "its context must not end before";
  }
  EXPECT_EQ(book->posts, 1);
  EXPECT_EQ(others->posts, 1);
  book->run_all();
  EXPECT_EQ(book->posts, 3) << "each posts the next";
  others->run_all();
  EXPECT_EQ(ran, "abcx");
  EXPECT_EQ(book->at_work, 0);
}

TEST_F(DeliveriesTest, APartOfManyLeavesBeforeTheTurnIsOver) {
  const auto in_a_turn = [this](int count) {
    book->posts = 0;
    const Deliveries::Turn turn(deliveries);
    for (int i = 0; i < count; ++i) Deliveries::deliver(at(desk), note('.'));
    return book->posts;
  };
  EXPECT_EQ(in_a_turn(16), 4) << "four at a time";
  EXPECT_EQ(in_a_turn(400), 100);
  EXPECT_EQ(in_a_turn(400), 4) << "a quarter of the turn before";
  EXPECT_EQ(in_a_turn(3), 0);
  EXPECT_EQ(in_a_turn(16), 4);
  book->run_all();
  EXPECT_EQ(ran.size(), 835U);
}

TEST_F(DeliveriesTest, ManyExecutorsAreEachPostedTo) {
  std::vector<std::shared_ptr<Desk::Book>> books;
  {
    const Deliveries::Turn turn(deliveries);
    for (int i = 0; i < 20; ++i) {
      books.push_back(std::make_shared<Desk::Book>());
      Deliveries::deliver(at(Desk(books.back())), note('.'));
    }
  }
  for (const auto& one : books) {
    EXPECT_EQ(one->posts, 1);
    one->run_all();
  }
  EXPECT_EQ(ran.size(), 20U);
}

TEST_F(DeliveriesTest, AHandlerThatThrowsCostsTheOthersNothing) {
  {
    const Deliveries::Turn turn(deliveries);
    Deliveries::deliver(at(desk), fail('a'));
    Deliveries::deliver(at(desk), note('b'));
    Deliveries::deliver(at(desk), fail('c'));
  }
  run_all_whatever_they_throw();
  EXPECT_EQ(ran, "abc");
  EXPECT_EQ(thrown, 2);
}

TEST_F(DeliveriesTest, AHandlerThatBlocksKeepsNoOtherFromARunningThread) {
  asio::thread_pool pool(2);
  std::promise<void> second_ran;
  bool was_in_time = false;
  {
    const Deliveries::Turn turn(deliveries);
    Deliveries::deliver(at(pool.get_executor()), [&] {
      const auto wait = second_ran.get_future().wait_for(std::chrono::seconds(20));
      was_in_time = wait == std::future_status::ready;
    });
    Deliveries::deliver(at(pool.get_executor()), [&] { second_ran.set_value(); });
  }
  pool.join();
  EXPECT_TRUE(was_in_time);
}

TEST_F(DeliveriesTest, APostThatIsRefusedCostsOneHandlerAndIsTold) {
  std::string told;
  deliveries.on_refused([&told](const char* what) { told += what; });
  book->refuses = 2;
  {
    const Deliveries::Turn turn(deliveries);
    Deliveries::deliver(at(desk), note('a'));
    Deliveries::deliver(at(desk), note('b'));
    Deliveries::deliver(at(desk), note('c'));
  }
  book->run_all();
  EXPECT_EQ(ran, "c");
  EXPECT_EQ(told, "fullfull");
}

TEST_F(DeliveriesTest, WhereTheNextCannotBePostedItIsRunFromHere) {
  {
    const Deliveries::Turn turn(deliveries);
    Deliveries::deliver(at(desk), note('a'));
    Deliveries::deliver(at(desk), fail('b'));
    Deliveries::deliver(at(desk), note('c'));
  }
  book->refuses = 2;  // after `a`, and after `b` before that throws
  run_all_whatever_they_throw();
  EXPECT_EQ(ran, "abc");
  EXPECT_EQ(thrown, 1);
}

// The user may destroy a context that has nothing to do; of a strand even the last copy looks into
// it. All handlers have run here before post() has returned.
TEST_F(DeliveriesTest, NothingOfTheExecutorIsLeftWhenItsWorkIsDone) {
  book->runs_at_once = true;
  const auto mine = book.use_count();
  {
    const Deliveries::Turn turn(deliveries);
    Deliveries::deliver(at(desk), note('a'));
    Deliveries::deliver(at(desk), note('b'));
  }
  EXPECT_EQ(ran, "ab");
  EXPECT_EQ(book->at_work, 0);
  EXPECT_EQ(book->left_at_the_end, mine) << "it ends last";
  EXPECT_EQ(book.use_count(), mine);
}

TEST_F(DeliveriesTest, WhatIsDroppedWithItsContextIsDroppedWhole) {
  const auto alive = std::make_shared<int>();
  {
    const Deliveries::Turn turn(deliveries);
    for (int i = 0; i < 3; ++i) Deliveries::deliver(at(desk), [alive] {});
  }
  EXPECT_EQ(alive.use_count(), 4);
  book->posted.clear();
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_EQ(book->at_work, 0);
}

TEST_F(DeliveriesTest, SleepersAreWokenAtTheEndOfTheTurn) {
  sem_t sleeper;
  ASSERT_EQ(::sem_init(&sleeper, 0, 0), 0);
  const auto count = [&sleeper] {
    int value = 0;
    ::sem_getvalue(&sleeper, &value);
    return value;
  };
  {
    const Deliveries::Turn turn(deliveries);
    for (int i = 0; i < 64; ++i) Deliveries::wake(sleeper);
    EXPECT_EQ(count(), 0);
    Deliveries::wake(sleeper);
    EXPECT_EQ(count(), 64) << "there is room for so many";
  }
  EXPECT_EQ(count(), 65);
  Deliveries::wake(sleeper);
  EXPECT_EQ(count(), 66) << "at once where there is no turn";
  ::sem_destroy(&sleeper);
}

TEST_F(DeliveriesTest, ATurnInsideOfAnothersHasItsOwn) {
  Deliveries inner;
  const Deliveries::Turn turn(deliveries);
  Deliveries::deliver(at(desk), note('a'));
  {
    const Deliveries::Turn within(inner);
    Deliveries::deliver(at(desk), note('b'));
  }
  EXPECT_EQ(book->posts, 1);
  book->run_all();
  EXPECT_EQ(ran, "b");
}

}  // namespace
}  // namespace dlock::core
