// SPDX-License-Identifier: Apache-2.0
//
// A board on which the holders of a few names find each other: memory that processes share. It
// records when two hold one name at once, and when a token does not rise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>

#include "dlock/lock_manager.hpp"

namespace dlock::fleet {

/// Any thread, any process that has opened the file.
class Board {
 public:
  static constexpr std::size_t kSlots = 128;      ///< one for each contended name
  static constexpr std::size_t kPrograms = 1024;  ///< at most

  /// Opens the file, and makes it if it is missing.
  explicit Board(const std::filesystem::path& file);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  /// Records a holder of the slot's name. Returns a value for leave().
  std::uint64_t enter(std::size_t slot, const LockHandle& held, std::size_t program);
  void leave(std::size_t slot, const LockHandle& held, std::uint64_t entered);
  void complain(const std::string& what);

  /// Locks that this program was granted.
  std::uint64_t grants(std::size_t program) const;
  /// The first complaint; empty: none.
  std::string complaint() const;

 private:
  struct Slot;
  struct Memory;
  Memory* memory_;
};

/// How a program uses the contended names.
struct Load {
  std::size_t program = 0;  ///< on the board
  std::size_t names = 8;
  int think_ms = 10;  ///< at most, between two acquires
};

/// The name of a slot.
std::string board_name(std::size_t slot);

/// Acquires and releases contended names until it is stopped.
void work(LockManager& locks, Board& board, const Load& load, const std::stop_token& stop);

}  // namespace dlock::fleet
