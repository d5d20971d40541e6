// SPDX-License-Identifier: Apache-2.0
#include "backends/local/rules/format.hpp"

#include <algorithm>
#include <array>
#include <boost/endian/conversion.hpp>

#include "dlock/spi/record_format.hpp"

namespace dlock::local {
namespace {

constexpr std::string_view kStamp = "dlock/1\n";
constexpr std::string_view kStampMoved = "dlock/2\n";
constexpr std::string_view kStampOfAnyFormat = "dlock/";
constexpr unsigned kNewestFormat = 2;
constexpr std::size_t kLongestStamp = 20;

constexpr std::size_t kLast = 8;
constexpr std::size_t kLimit = 16;
constexpr std::size_t kRaised = 24;
constexpr std::size_t kBoot = 32;
constexpr std::size_t kNameLength = 48;
constexpr std::size_t kHeaderCrc = 60;

constexpr std::size_t kFloor = 0;
constexpr std::size_t kPlace = 8;
constexpr std::size_t kTextLength = 12;
constexpr std::size_t kTextCrc = 16;
constexpr std::size_t kMoveCrc = 28;

constexpr std::size_t kTicket = 0;
constexpr std::size_t kSince = 8;
constexpr std::size_t kPid = 16;
constexpr std::size_t kPidNamespace = 20;
constexpr std::size_t kId = 24;
constexpr std::size_t kIdSize = 36;
constexpr std::size_t kHostLength = 60;
constexpr std::size_t kAppLength = 61;
constexpr std::size_t kHost = 62;
constexpr std::size_t kHostSize = 64;
constexpr std::size_t kApp = kHost + kHostSize;
constexpr std::size_t kRecordCrc = 252;
constexpr std::size_t kAppSize = kRecordCrc - kApp;

void put_u64(Bytes out, std::size_t at, std::uint64_t value) {
  boost::endian::store_little_u64(out.subspan(at).data(), value);
}
void put_u32(Bytes out, std::size_t at, std::uint32_t value) {
  boost::endian::store_little_u32(out.subspan(at).data(), value);
}
std::uint64_t get_u64(ConstBytes in, std::size_t at) {
  return boost::endian::load_little_u64(in.subspan(at).data());
}
std::uint32_t get_u32(ConstBytes in, std::size_t at) {
  return boost::endian::load_little_u32(in.subspan(at).data());
}

// CRC-32 (as in zlib), eight bytes per step: table n has the sums of a byte that n zeros follow.
// boost::crc handles one byte per step, which was a tenth of an acquire and release.
using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;
constexpr CrcTables make_crc_tables() {
  CrcTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    auto sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1U) ^ ((sum & 1U) != 0 ? 0xEDB88320U : 0U);
    tables[0][byte] = sum;
  }
  for (std::size_t zeros = 1; zeros < tables.size(); ++zeros) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const auto sum = tables[zeros - 1][byte];
      tables[zeros][byte] = (sum >> 8U) ^ tables[0][sum & 0xFFU];
    }
  }
  return tables;
}
constexpr CrcTables kCrc = make_crc_tables();

std::uint32_t crc(ConstBytes bytes) {
  std::uint32_t sum = 0xFFFFFFFF;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    const auto all = get_u64(bytes, 0) ^ sum;
    sum = kCrc[7][all & 0xFFU] ^ kCrc[6][(all >> 8U) & 0xFFU] ^ kCrc[5][(all >> 16U) & 0xFFU] ^
          kCrc[4][(all >> 24U) & 0xFFU] ^ kCrc[3][(all >> 32U) & 0xFFU] ^
          kCrc[2][(all >> 40U) & 0xFFU] ^ kCrc[1][(all >> 48U) & 0xFFU] ^ kCrc[0][all >> 56U];
  }
  for (const auto byte : bytes) sum = (sum >> 8U) ^ kCrc[0][(sum ^ byte) & 0xFFU];
  return ~sum;
}

void put_text(Bytes out, std::size_t at, std::string_view text) {
  std::copy(text.begin(), text.end(), out.subspan(at).begin());
}
std::string get_text(ConstBytes in, std::size_t at, std::size_t size) {
  const auto bytes = in.subspan(at, size);
  return {bytes.begin(), bytes.end()};
}

std::string_view cut(std::string_view text, std::size_t size) {
  if (text.size() <= size) return text;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

/// 0: the file does not begin with a stamp.
unsigned format_in(ConstBytes in) {
  const auto stamp = get_text(in, 0, std::min(in.size(), kLongestStamp));
  return format_of(stamp, kStampOfAnyFormat);
}

bool has(ConstBytes in, std::string_view text) {
  return in.size() >= text.size() &&
         std::equal(text.begin(), text.end(), in.begin(),
                    [](char a, unsigned char b) { return static_cast<unsigned char>(a) == b; });
}

}  // namespace

void encode_header(const Ledger& ledger, std::size_t name_size, Version version, Bytes out) {
  std::fill_n(out.begin(), kHeaderSize, static_cast<unsigned char>(0));
  put_text(out, 0, version == Version::plain ? kStamp : kStampMoved);
  put_u64(out, kLast, ledger.last);
  put_u64(out, kLimit, ledger.limit);
  put_u64(out, kRaised, ledger.raised);
  std::copy(ledger.boot.begin(), ledger.boot.end(), out.subspan(kBoot).begin());
  put_u32(out, kNameLength, static_cast<std::uint32_t>(name_size));
  put_u32(out, kHeaderCrc, crc(out.first(kHeaderCrc)));
}

void encode_front(const Ledger& ledger, std::string_view name, Bytes out) {
  std::fill(out.begin(), out.end(), static_cast<unsigned char>(0));
  encode_header(ledger, name.size(), Version::plain, out);
  put_text(out, kHeaderSize, name);
}

Front parse_front(ConstBytes bytes) {
  Front front;
  if (bytes.empty()) {
    front.error = FrontError::truncated;
    return front;
  }
  if (has(bytes, kStampMoved)) front.version = Version::moved;
  if (!has(bytes, kStamp) && front.version != Version::moved) {
    // All zeros is what a crash of a file system leaves of a file.
    const bool zeros = std::all_of(bytes.begin(), bytes.end(), [](auto b) { return b == 0; });
    front.format = format_in(bytes);
    front.error = front.format > kNewestFormat ? FrontError::newer_format
                  : zeros                      ? FrontError::damaged
                                               : FrontError::foreign;
    return front;
  }
  if (bytes.size() < kFrontSize) {
    front.error = FrontError::truncated;
    return front;
  }
  front.ledger.last = get_u64(bytes, kLast);
  front.ledger.limit = get_u64(bytes, kLimit);
  front.ledger.raised = get_u64(bytes, kRaised);
  const auto boot = bytes.subspan(kBoot, front.ledger.boot.size());
  std::copy(boot.begin(), boot.end(), front.ledger.boot.begin());
  const auto name_size = get_u32(bytes, kNameLength);
  if (get_u32(bytes, kHeaderCrc) != crc(bytes.first(kHeaderCrc)) || name_size > kNameSize ||
      !is_consistent(front.ledger)) {
    front.error = FrontError::damaged;
    return front;
  }
  const auto name = bytes.subspan(kHeaderSize, name_size);
  // Bytes as characters: a name is text.
  front.name = {reinterpret_cast<const char*>(name.data()), name.size()};  // NOLINT
  return front;
}

const char* to_string(FrontError error) noexcept {
  switch (error) {
    case FrontError::none:
      return "no error";
    case FrontError::truncated:
      return "the file is truncated";
    case FrontError::foreign:
      return "the file is not a lock file of dlock";
    case FrontError::newer_format:
      return "a newer version of dlock wrote the file";
    case FrontError::damaged:
      return "the ticket counter does not match its checksum or its limits";
  }
  return "?";
}

std::string describe_front(const Front& front, std::string_view path) {
  if (front.error == FrontError::newer_format) {
    const auto stamp = std::string(kStampOfAnyFormat) + std::to_string(front.format);
    return newer_format(path, stamp, kStampOfAnyFormat, kNewestFormat);
  }
  return std::string(path).append(": ").append(to_string(front.error));
}

void encode_record(std::uint64_t ticket, std::int64_t since_ms, const Owner& owner, Bytes out) {
  std::fill_n(out.begin(), kRecordSize, static_cast<unsigned char>(0));
  const auto host = cut(owner.host, kHostSize);
  const auto app = cut(owner.app, kAppSize);
  put_u64(out, kTicket, ticket);
  put_u64(out, kSince, static_cast<std::uint64_t>(since_ms));
  put_u32(out, kPid, static_cast<std::uint32_t>(owner.pid));
  put_u32(out, kPidNamespace, owner.pid_namespace);
  put_text(out, kId, cut(owner.id, kIdSize));
  out[kHostLength] = static_cast<unsigned char>(host.size());
  out[kAppLength] = static_cast<unsigned char>(app.size());
  put_text(out, kHost, host);
  put_text(out, kApp, app);
  put_u32(out, kRecordCrc, crc(out.first(kRecordCrc)));
}

std::optional<Record> parse_record(ConstBytes bytes) {
  if (bytes.size() < kRecordSize) return {};
  if (get_u32(bytes, kRecordCrc) != crc(bytes.first(kRecordCrc))) return {};
  Record record;
  record.ticket = get_u64(bytes, kTicket);
  // A hole in the file reads as zeros.
  if (record.ticket == 0) return {};
  if (bytes[kHostLength] > kHostSize || bytes[kAppLength] > kAppSize) return {};
  record.since_ms = static_cast<std::int64_t>(get_u64(bytes, kSince));
  record.owner.pid = get_u32(bytes, kPid);
  record.owner.pid_namespace = get_u32(bytes, kPidNamespace);
  record.owner.id = get_text(bytes, kId, kIdSize);
  record.owner.id.erase(std::min(record.owner.id.find('\0'), record.owner.id.size()));
  record.owner.host = get_text(bytes, kHost, bytes[kHostLength]);
  record.owner.app = get_text(bytes, kApp, bytes[kAppLength]);
  return record;
}

void encode_move(const Move& move, Bytes out) {
  std::fill_n(out.begin(), kMoveSize, static_cast<unsigned char>(0));
  put_u64(out, kFloor, move.floor);
  put_u32(out, kPlace, move.place);
  put_u32(out, kTextLength, move.text_size);
  put_u32(out, kTextCrc, move.text_crc);
  put_u32(out, kMoveCrc, crc(out.first(kMoveCrc)));
}

std::optional<Move> parse_move(ConstBytes bytes) {
  if (bytes.size() < kMoveSize) return {};
  Move move;
  move.floor = get_u64(bytes, kFloor);
  move.place = get_u32(bytes, kPlace);
  move.text_size = get_u32(bytes, kTextLength);
  move.text_crc = get_u32(bytes, kTextCrc);
  // The checksum of zeros is not zero, so a hole is not a valid Move.
  const bool sound = get_u32(bytes, kMoveCrc) == crc(bytes.first(kMoveCrc));
  if (!sound || move.place > 1 || move.text_size > kTextSize) return {};
  return move;
}

std::size_t text_offset(std::uint32_t place) { return kFileSize + place * kTextSize; }

std::uint32_t checksum(ConstBytes bytes) { return crc(bytes); }

std::size_t queue_offset(std::uint64_t ticket) {
  return kQueueOffset + static_cast<std::size_t>(ticket % kQueueRecords) * kRecordSize;
}

}  // namespace dlock::local
