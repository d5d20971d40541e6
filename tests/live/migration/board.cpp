// SPDX-License-Identifier: Apache-2.0
#include "tests/live/migration/board.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <random>
#include <system_error>
#include <thread>

namespace dlock::fleet {

using namespace std::chrono_literals;

namespace {

using Number = std::uint64_t;
using Shared = std::atomic_ref<Number>;
static_assert(Shared::is_always_lock_free);

}  // namespace

struct Board::Slot {
  Number inside;
  Number clashes;
  Number last_token;
};

struct Board::Memory {
  Slot slots[kSlots];
  Number grants[kPrograms];
  Number complaints;
  char first[512];
  Number is_first_written;
};

Board::Board(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), file);
  void* at = MAP_FAILED;
  if (::ftruncate(fd, sizeof(Memory)) == 0) {
    at = ::mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  const int error = errno;
  ::close(fd);
  if (at == MAP_FAILED) throw std::system_error(error, std::generic_category(), file);
  memory_ = static_cast<Memory*>(at);
}

Board::~Board() { ::munmap(memory_, sizeof(Memory)); }

// A late process can be inside when its lock is lost. So a clash counts only if both held the lock:
// the second one at its entry, and the first one until it left.
std::uint64_t Board::enter(std::size_t slot, const LockHandle& held, std::size_t program) {
  auto& at = memory_->slots[slot % kSlots];
  const auto clashes = Shared(at.clashes).load();
  const bool is_alone = Shared(at.inside).fetch_add(1) == 0;
  const auto token = held.token().value_or(0);
  const auto last = Shared(at.last_token).exchange(token);
  Shared(memory_->grants[program % kPrograms]).fetch_add(1);
  if (held.state() == HandleState::lost) return clashes;
  if (!is_alone) Shared(at.clashes).fetch_add(1);
  if (token <= last) {
    complain(
        fmt::format("{}: the token {} after {}, in '{}'", held.name(), token, last, held.store()));
  }
  return is_alone ? clashes : Shared(at.clashes).load();
}

void Board::leave(std::size_t slot, const LockHandle& held, std::uint64_t entered) {
  auto& at = memory_->slots[slot % kSlots];
  const bool is_clash = Shared(at.clashes).load() != entered;
  if (is_clash && held.state() != HandleState::lost) {
    complain(fmt::format("{}: two hold it, one of them in '{}'", held.name(), held.store()));
  }
  Shared(at.inside).fetch_sub(1);
}

void Board::complain(const std::string& what) {
  if (Shared(memory_->complaints).fetch_add(1) != 0) return;
  what.copy(memory_->first, sizeof(memory_->first) - 1);
  Shared(memory_->is_first_written).store(1);
}

std::uint64_t Board::grants(std::size_t program) const {
  return Shared(memory_->grants[program % kPrograms]).load();
}

std::string Board::complaint() const {
  const auto count = Shared(memory_->complaints).load();
  if (count == 0) return {};
  const bool is_written = Shared(memory_->is_first_written).load() != 0;
  return fmt::format("{} complaints; the first: {}", count, is_written ? memory_->first : "?");
}

std::string board_name(std::size_t slot) { return fmt::format("billing/{}", slot); }

void work(LockManager& locks, Board& board, const Load& load, const std::stop_token& stop) {
  std::mt19937 dice(static_cast<unsigned>(load.program) + 1);
  while (!stop.stop_requested()) {
    const auto slot = dice() % load.names;
    error_code ec;
    auto held = locks.lock(board_name(slot))->acquire({.wait = 2s}, stop, ec);
    if (held) {
      const auto entered = board.enter(slot, held, load.program);
      std::this_thread::sleep_for(std::chrono::microseconds(dice() % 3000));
      board.leave(slot, held, entered);
      held.release();
    } else if (ec != errc::timed_out && ec != errc::unavailable && ec != errc::cancelled) {
      board.complain("acquire: " + ec.message());
    }
    std::this_thread::sleep_for(1ms * (dice() % static_cast<unsigned>(load.think_ms)));
  }
}

}  // namespace dlock::fleet
