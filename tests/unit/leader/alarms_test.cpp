// SPDX-License-Identifier: Apache-2.0
//
// Alarms: each rings at its own time, and does not ring after it was cleared.
#include "core/leader/alarms.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

#include "testkit/await.hpp"

namespace dlock::core {
namespace {

using namespace std::chrono_literals;
using testkit::eventually;
using testkit::patience;

TimePoint in(Duration time) { return BoottimeClock::now() + time; }

/// Counts the rings of one alarm. After each it is set to `again`, if that is not empty.
class Bell {
 public:
  explicit Bell(TimePoint when, std::optional<TimePoint> again = std::nullopt)
      : id_(set_alarm(when, [rings = rings_, again] {
          ++*rings;
          return again;
        })) {}
  ~Bell() { clear(); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  void clear() const { clear_alarm(id_); }
  int rings() const { return *rings_; }
  bool has_rung() const {
    return eventually(patience(), [this] { return rings() > 0; });
  }
  /// Returns true if the alarm no longer exists.
  bool is_forgotten() const {
    return eventually(patience(), [this] { return rings_.use_count() == 1; });
  }

 private:
  const std::shared_ptr<std::atomic<int>> rings_ = std::make_shared<std::atomic<int>>(0);
  const AlarmId id_;
};

// From the second turn on, the thread waits for the late alarm when the next one is set.
TEST(Alarms, AnEarlierAlarmThatIsSetLaterRingsInTime) {
  const Bell late(in(1h));
  for (int turn = 0; turn < 5; ++turn) {
    const Bell early(in(1ms));
    ASSERT_TRUE(early.has_rung()) << turn;
  }
  EXPECT_EQ(late.rings(), 0);
}

TEST(Alarms, AClearedAlarmIsForgotten) {
  const Bell bell(in(1h));
  bell.clear();
  EXPECT_TRUE(bell.is_forgotten());
  EXPECT_EQ(bell.rings(), 0);
}

TEST(Alarms, AnAlarmThatHasRungIsForgottenWhenItIsCleared) {
  const Bell bell(in(0ms), in(1h));
  ASSERT_TRUE(bell.has_rung());
  bell.clear();
  EXPECT_TRUE(bell.is_forgotten());
  EXPECT_EQ(bell.rings(), 1);
}

TEST(Alarms, AnAlarmThatIsClearedWhileItRingsDoesNotRingAgain) {
  std::promise<AlarmId> id;
  const auto rings = std::make_shared<std::atomic<int>>(0);
  const auto now = in(0ms);
  id.set_value(set_alarm(now, [rings, now, own = id.get_future().share()] {
    if (++*rings == 1) clear_alarm(own.get());
    return *rings < 3 ? std::optional(now) : std::nullopt;
  }));
  const Bell next(in(1ms));
  ASSERT_TRUE(next.has_rung());
  EXPECT_EQ(*rings, 1);
}

}  // namespace
}  // namespace dlock::core
