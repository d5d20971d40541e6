// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <boost/crc.hpp>

#include <array>
#include <string>
#include <vector>

#include "backends/local/error.hpp"
#include "backends/local/rules/format.hpp"
#include "backends/local/wire/file_system.hpp"

namespace dlock::local {
namespace {

std::vector<unsigned char> front_of(const Ledger& ledger, std::string_view name) {
  std::vector<unsigned char> bytes(kFrontSize);
  encode_front(ledger, name, bytes);
  return bytes;
}

const Ledger kLedger{.last = 5, .limit = 65'541, .raised = 131'077, .boot = {9, 8, 7}};

TEST(LocalFormat, HeaderAndNameComeBack) {
  for (const std::string& name :
       {std::string("a"), std::string("orders/42"), std::string(512, 'n')}) {
    const auto bytes = front_of(kLedger, name);
    const auto front = parse_front(bytes);
    ASSERT_EQ(front.error, FrontError::none);
    EXPECT_EQ(front.ledger, kLedger);
    EXPECT_EQ(front.name, name);
  }
}

TEST(LocalFormat, BytesAreThoseOfVersion1) {
  const auto bytes = front_of(kLedger, "ab");
  EXPECT_EQ(std::string(bytes.begin(), bytes.begin() + 8), "dlock/1\n");
  EXPECT_EQ(bytes[8], 5);
  EXPECT_EQ(bytes[16], 5);  // 65541 = 0x010005
  EXPECT_EQ(bytes[18], 1);
  EXPECT_EQ(bytes[32], 9);
  EXPECT_EQ(bytes[48], 2);
  EXPECT_EQ(bytes[64], 'a');
  EXPECT_EQ(bytes[66], 0);
}

// F81: whatever happened to the counter, it is noticed.
TEST(LocalFormat, F81_EveryChangedBitOfTheHeaderIsNoticed) {
  const auto good = front_of(kLedger, "a");
  for (std::size_t bit = 0; bit < kHeaderSize * 8; ++bit) {
    auto bytes = good;
    bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ (1U << (bit % 8)));
    EXPECT_NE(parse_front(bytes).error, FrontError::none) << bit;
  }
}

TEST(LocalFormat, F81_ATruncatedFileIsNoticed) {
  const auto good = front_of(kLedger, "a");
  for (std::size_t size = 0; size < good.size(); ++size) {
    const auto error = parse_front(ConstBytes(good).first(size)).error;
    EXPECT_TRUE(size < 8 ? error != FrontError::none : error == FrontError::truncated) << size;
  }
}

TEST(LocalFormat, OtherFilesAreToldFromDamagedOnes) {
  std::vector<unsigned char> zeros(kFrontSize, 0);
  EXPECT_EQ(parse_front(zeros).error, FrontError::damaged);
  const std::string text(kFrontSize, 'x');
  EXPECT_EQ(parse_front(std::vector<unsigned char>(text.begin(), text.end())).error,
            FrontError::foreign);
  auto newer = front_of(kLedger, "a");
  newer[6] = '3';
  EXPECT_EQ(parse_front(newer).error, FrontError::newer_format);
  EXPECT_EQ(describe_front(parse_front(newer), "/l/a.lock"),
            "/l/a.lock has format 3; this program reads format 2; upgrade it");
  newer[6] = '0';
  EXPECT_EQ(parse_front(newer).error, FrontError::foreign);
}

TEST(LocalFormat, AFileOfAMigrationSaysSo) {
  auto bytes = front_of(kLedger, "a");
  EXPECT_EQ(parse_front(bytes).version, Version::plain);
  encode_header(kLedger, 1, Version::moved, Bytes(bytes).first(kHeaderSize));
  EXPECT_EQ(std::string(bytes.begin(), bytes.begin() + 8), "dlock/2\n");
  const auto front = parse_front(bytes);
  ASSERT_EQ(front.error, FrontError::none);
  EXPECT_EQ(front.version, Version::moved);
  EXPECT_EQ(front.ledger, kLedger);
}

TEST(LocalFormat, F81_EveryChangedBitOfAMoveIsNoticed) {
  const Move move{.floor = kLastTicket, .place = 1, .text_size = kTextSize, .text_crc = 0xDEADBEEF};
  std::array<unsigned char, kMoveSize> good{};
  encode_move(move, good);
  const auto parsed = parse_move(good);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->floor, move.floor);
  EXPECT_EQ(parsed->place, move.place);
  EXPECT_EQ(parsed->text_size, move.text_size);
  EXPECT_EQ(parsed->text_crc, move.text_crc);
  EXPECT_TRUE(parsed->sealed());
  for (std::size_t bit = 0; bit < 20 * 8; ++bit) {
    auto bytes = good;
    bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ (1U << (bit % 8)));
    EXPECT_FALSE(parse_move(bytes)) << bit;
  }
  EXPECT_FALSE(parse_move(std::array<unsigned char, kMoveSize>{})) << "a hole";
  EXPECT_FALSE(parse_move(ConstBytes(good).first(kMoveSize - 1)));
  // One sector, and nothing else's place.
  EXPECT_EQ(kMoveOffset / 512, (kMoveOffset + kMoveSize - 1) / 512);
  EXPECT_LE(kMoveOffset + kMoveSize, kQueueOffset);
  EXPECT_GE(text_offset(0), kFileSize);
  EXPECT_EQ(text_offset(1), text_offset(0) + kTextSize);
}

TEST(LocalFormat, RecordsComeBack) {
  const Record record{.ticket = 77,
                      .since_ms = 1'700'000'000'123,
                      .owner = {"0e0f1a2b-0000-4000-8000-000000000001", "node-7", 4711, "shop"}};
  std::array<unsigned char, kRecordSize> bytes{};
  encode_record(record, bytes);
  const auto parsed = parse_record(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->ticket, record.ticket);
  EXPECT_EQ(parsed->since_ms, record.since_ms);
  EXPECT_EQ(parsed->owner.id, record.owner.id);
  EXPECT_EQ(parsed->owner.host, record.owner.host);
  EXPECT_EQ(parsed->owner.pid, record.owner.pid);
  EXPECT_EQ(parsed->owner.app, record.owner.app);
  bytes[30] ^= 1;
  EXPECT_FALSE(parse_record(bytes));
  EXPECT_FALSE(parse_record(std::array<unsigned char, kRecordSize>{}));
}

TEST(LocalFormat, LongMetadataIsCutBetweenCharacters) {
  Record record{.ticket = 1, .since_ms = 0, .owner = {"id", std::string(300, 'h'), 1, "a"}};
  for (int i = 0; i < 200; ++i) record.owner.app += "ü";
  std::array<unsigned char, kRecordSize> bytes{};
  encode_record(record, bytes);
  const auto parsed = parse_record(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->owner.host, std::string(64, 'h'));
  EXPECT_TRUE(parsed->owner.app.starts_with("aü"));
  EXPECT_TRUE(parsed->owner.app.ends_with("ü"));
  EXPECT_EQ(parsed->owner.id, "id");
}

TEST(LocalFormat, QueueRecordsStayInTheFile) {
  for (const std::uint64_t ticket : {std::uint64_t{1}, std::uint64_t{123}, kLastTicket}) {
    EXPECT_GE(queue_offset(ticket), kQueueOffset);
    EXPECT_LE(queue_offset(ticket) + kRecordSize, kFileSize);
  }
}

TEST(LocalFileSystem, F78_NetworkFileSystemsAreRefused) {
  using Verdict = FileSystem::Verdict;
  const std::pair<std::uint64_t, Verdict> rows[] = {
      {0xEF53, Verdict::good},         // ext4
      {0x58465342, Verdict::good},     // xfs
      {0x9123683E, Verdict::good},     // btrfs
      {0x01021994, Verdict::good},     // tmpfs
      {0x794C7630, Verdict::good},     // overlayfs
      {0x6969, Verdict::refused},      // nfs
      {0xFF534D42, Verdict::refused},  // cifs
      {0xFE534D42, Verdict::refused},  // smb2
      {0x65735546, Verdict::refused},  // fuse
      {0x01021997, Verdict::refused},  // 9p
      {0x12345678, Verdict::unknown},
  };
  for (const auto& [type, verdict] : rows) {
    EXPECT_EQ(classify_file_system(type).verdict, verdict) << std::hex << type;
  }
  EXPECT_TRUE(classify_file_system(0x01021994).forgets);
  EXPECT_FALSE(classify_file_system(0xEF53).forgets);
}

TEST(LocalError, CodesMeanWhatTheCallerDoesNext) {
  EXPECT_EQ(make_error_code(Error::file_system_refused), dlock::errc::config_unsafe);
  EXPECT_EQ(make_error_code(Error::locks_not_kept), dlock::errc::config_unsafe);
  EXPECT_EQ(make_error_code(Error::cannot_evict), dlock::errc::not_supported);
  EXPECT_EQ(make_error_code(Error::other_token), dlock::errc::not_holder);
  EXPECT_EQ(make_error_code(Error::not_held), dlock::errc::not_found);
  EXPECT_EQ(system_failure(EACCES, "x").error, dlock::errc::access_denied);
  EXPECT_EQ(system_failure(EROFS, "x").error, dlock::errc::access_denied);
  EXPECT_EQ(system_failure(ENOSPC, "x").error, dlock::errc::unavailable);
  EXPECT_EQ(system_failure(EMFILE, "x").error, dlock::errc::unavailable);
  EXPECT_EQ(system_failure(ENOTDIR, "x").error, dlock::errc::config_invalid);
  EXPECT_EQ(system_failure(EIO, "x").error, dlock::errc::unavailable);
  for (int value = 1; value <= static_cast<int>(Error::text_too_long); ++value) {
    const auto code = make_error_code(static_cast<Error>(value));
    EXPECT_NE(code.message(), "unknown error") << value;
    EXPECT_STREQ(code.category().name(), "dlock.local");
  }
}

// What other programs, and files of other versions, know by this name.
TEST(LocalFormat, TheChecksumIsCrc32) {
  EXPECT_EQ(checksum(bytes_of("123456789")), 0xCBF43926U);
  std::string text;
  for (int size = 0; size < 64; ++size) {
    boost::crc_32_type known;
    known.process_bytes(text.data(), text.size());
    EXPECT_EQ(checksum(bytes_of(std::string_view(text))), known.checksum()) << size;
    text += static_cast<char>(7 * size + 200);
  }
}

}  // namespace
}  // namespace dlock::local
