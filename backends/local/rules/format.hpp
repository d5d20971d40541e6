// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a lock file. Pure. Little-endian, whatever the machine.
//
//   0    header  64   stamp, ledger, length of the name, CRC-32 of what is before it
//   64   name   512   the lock's name, zero-padded
//   576  holder 256   a record: the holder (written by the holder only)
//   832  move    32   after a migration of the lock: where its record is, CRC-32
//   1024 queue  124 x 256   records of waiters, at ticket modulo 124
//   32768 texts  2 x 64 KiB  a migration's record, alternately in one and the other
//
// The stamp is `dlock/1\n`, and `dlock/2\n` from the first migration on: then `move` counts. A file
// of a newer format is refused. Parts without data are holes.
//
// Header and holder are near each other so that a grant writes both at once. Records are only for
// people. The ledger and the kernel's locks decide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backends/local/rules/tickets.hpp"
#include "dlock/lock_status.hpp"

namespace dlock::local {

using Bytes = std::span<unsigned char>;
using ConstBytes = std::span<const unsigned char>;

/// Text as bytes, and bytes for text.
inline ConstBytes bytes_of(std::string_view text) noexcept {
  // NOLINTNEXTLINE: bytes may alias anything
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}
inline Bytes bytes_of(std::string& text) noexcept {
  // NOLINTNEXTLINE: bytes may alias anything
  return {reinterpret_cast<unsigned char*>(text.data()), text.size()};
}

inline constexpr std::size_t kHeaderSize = 64;
inline constexpr std::size_t kNameSize = 512;
inline constexpr std::size_t kFrontSize = kHeaderSize + kNameSize;  ///< read at every acquire
inline constexpr std::size_t kRecordSize = 256;
inline constexpr std::size_t kHolderOffset = kFrontSize;
inline constexpr std::size_t kQueueOffset = 1024;
inline constexpr std::uint64_t kQueueRecords = 124;
inline constexpr std::size_t kFileSize = kQueueOffset + kQueueRecords * kRecordSize;
/// Allocated at creation, so that a full disk cannot stop a grant half-way.
inline constexpr std::size_t kNewFileSize = 4096;

// Byte locks do not need data at their offsets.
inline constexpr std::uint64_t kGuardByte = std::uint64_t{1} << 60;
inline constexpr std::uint64_t kTicketBase = kGuardByte + 1;

/// plain: `dlock/1`. moved: `dlock/2`, there is a Move.
enum class Version { plain, moved };

void encode_header(const Ledger& ledger, std::size_t name_size, Version version, Bytes out);
/// `out` is kFrontSize long.
void encode_front(const Ledger& ledger, std::string_view name, Bytes out);

enum class FrontError { none, truncated, foreign, newer_format, damaged };
struct Front {
  FrontError error = FrontError::none;
  unsigned format = 0;  ///< with newer_format
  Version version = Version::plain;
  Ledger ledger;
  std::string_view name;  ///< in the bytes parsed
};
Front parse_front(ConstBytes bytes);
const char* to_string(FrontError error) noexcept;
/// Describes the error in the file at `path`.
std::string describe_front(const Front& front, std::string_view path);

struct Record {
  std::uint64_t ticket = 0;
  std::int64_t since_ms = 0;  ///< wall clock, since 1970: when the claim was made or granted
  Owner owner;
};
/// Host and app are cut to fit. `out` is kRecordSize long.
void encode_record(std::uint64_t ticket, std::int64_t since_ms, const Owner& owner, Bytes out);
inline void encode_record(const Record& record, Bytes out) {
  encode_record(record.ticket, record.since_ms, record.owner, out);
}
std::optional<Record> parse_record(ConstBytes bytes);
std::size_t queue_offset(std::uint64_t ticket);

inline constexpr std::size_t kMoveOffset = kHolderOffset + kRecordSize;
inline constexpr std::size_t kMoveSize = 32;
inline constexpr std::size_t kTextSize = 65'536;

/// The data that a migration has left in the file. It is within one sector, so that a power cut
/// leaves the old or the new one.
struct Move {
  std::uint64_t floor = 0;      ///< tickets up to here grant nothing any more
  std::uint32_t place = 0;      ///< 0 or 1: where the text is, or was
  std::uint32_t text_size = 0;  ///< 0: no record, the lock is a lock
  std::uint32_t text_crc = 0;
  bool sealed() const noexcept { return text_size != 0; }
};
/// `out` is kMoveSize long.
void encode_move(const Move& move, Bytes out);
std::optional<Move> parse_move(ConstBytes bytes);
std::size_t text_offset(std::uint32_t place);
std::uint32_t checksum(ConstBytes bytes);

}  // namespace dlock::local
