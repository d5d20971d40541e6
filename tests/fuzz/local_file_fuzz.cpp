// SPDX-License-Identifier: Apache-2.0
//
// A lock file of the local store, and its tickets. Input: the file as it comes; and once more with
// checksums that fit, or no input would get past them.
#include <algorithm>
#include <array>
#include <boost/crc.hpp>
#include <boost/endian/conversion.hpp>

#include "backends/local/rules/format.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace dlock::fuzz {
namespace {

using namespace local;

void sign(Bytes bytes, std::size_t at) {
  if (bytes.size() < at + 4) return;
  boost::crc_32_type sum;
  sum.process_bytes(bytes.data(), at);
  boost::endian::store_little_u32(bytes.subspan(at).data(), sum.checksum());
}

void check_tickets(const Ledger& ledger, const BootId& boot, std::uint64_t min_token) {
  const auto next = next_ticket(ledger, boot, min_token);
  switch (next.what) {
    case NextTicket::Action::issue:
      require(next.ticket > ledger.last && next.ticket > min_token, "tickets rise");
      require(next.ticket <= kLastTicket, "a ticket is below 2^53");
      require(next.ticket <= next.ledger.limit, "no ticket is above what is on the disk");
      require(is_consistent(next.ledger), "a ledger stays consistent");
      break;
    case NextTicket::Action::raise: {
      require(is_consistent(next.ledger), "a ledger stays consistent");
      const auto confirmed = confirm(next.ledger, next.ledger.raised);
      require(is_consistent(confirmed), "a confirmed ledger is consistent");
      require(next_ticket(confirmed, boot, min_token).what != NextTicket::Action::raise,
              "once raised, it goes on");
      break;
    }
    case NextTicket::Action::refuse:
      require(std::max({ledger.last, ledger.raised, min_token}) >= kLastTicket - kTicketsPerSync,
              "tickets are refused at their end only");
      break;
  }
}

void check_front(ConstBytes bytes) {
  const auto front = parse_front(bytes);
  if (front.error != FrontError::none) return;
  require(is_consistent(front.ledger), "a ledger that is taken is consistent");
  require(front.name.size() <= kNameSize, "a name fits");
  std::array<unsigned char, kFrontSize> written{};
  encode_front(front.ledger, front.name, written);
  const auto again = parse_front(written);
  require(
      again.error == FrontError::none && again.ledger == front.ledger && again.name == front.name,
      "a file is read back as it was written");
  check_tickets(front.ledger, front.ledger.boot, bytes.size() > kFrontSize ? bytes[kFrontSize] : 0);
  check_tickets(front.ledger, BootId{1}, front.ledger.limit);
}

void check_record(ConstBytes bytes) {
  const auto record = parse_record(bytes);
  if (!record) return;
  require(record->ticket != 0, "a record has a ticket");
  std::array<unsigned char, kRecordSize> written{};
  encode_record(*record, written);
  const auto again = parse_record(written);
  require(again && again->ticket == record->ticket && again->since_ms == record->since_ms &&
              again->owner.pid == record->owner.pid && again->owner.id == record->owner.id &&
              again->owner.host == record->owner.host && again->owner.app == record->owner.app,
          "a record is read back as it was written");
  require(queue_offset(record->ticket) + kRecordSize <= kFileSize, "a record is in the file");
}

void check_move(ConstBytes bytes) {
  const auto move = parse_move(bytes);
  if (!move) return;
  require(move->text_size <= kTextSize && move->place <= 1, "a text is in its place");
  std::array<unsigned char, kMoveSize> written{};
  encode_move(*move, written);
  const auto again = parse_move(written);
  require(again && again->floor == move->floor && again->place == move->place &&
              again->text_size == move->text_size && again->text_crc == move->text_crc,
          "a move is read back as it was written");
}

}  // namespace
}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dlock::fuzz;
  constexpr std::size_t kHeaderCrc = 60;
  constexpr std::size_t kRecordCrc = 252;
  constexpr std::size_t kMoveCrc = 28;
  std::vector<unsigned char> bytes(data, data + size);
  check_front(bytes);
  check_record(bytes);
  check_move(bytes);
  sign(bytes, kRecordCrc);
  check_record(bytes);
  auto moved = bytes;
  sign(moved, kMoveCrc);
  check_move(moved);
  constexpr std::string_view kStamp = "dlock/1\n";
  bytes.resize(std::max(bytes.size(), dlock::local::kFrontSize));
  std::copy(kStamp.begin(), kStamp.end(), bytes.begin());
  sign(bytes, kHeaderCrc);
  check_front(bytes);
  return 0;
}
