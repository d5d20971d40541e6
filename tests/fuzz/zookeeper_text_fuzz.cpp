// SPDX-License-Identifier: Apache-2.0
//
// What stands in ZooKeeper: the names of children, and a node's data. Input: the children, a line
// each, of which the first is ours; also as data.
#include <algorithm>

#include "backends/zookeeper/rules/metadata.hpp"
#include "backends/zookeeper/rules/names.hpp"
#include "backends/zookeeper/rules/permits.hpp"
#include "backends/zookeeper/rules/queue.hpp"
#include "backends/zookeeper/rules/token_offset_text.hpp"
#include "backends/zookeeper/rules/words.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace dlock::fuzz {
namespace {

using namespace zookeeper;

void check_line(const std::vector<std::string>& children) {
  const auto line = in_line(children);
  require(line.size() <= children.size(), "a line is made of children");
  for (const auto& one : line) {
    const auto parsed = parse_contender(one.name);
    require(parsed && parsed->sequence == one.sequence && parsed->kind == one.kind,
            "a contender is known by its name");
  }
  if (children.empty()) return;
  const auto& own = children.front();
  const auto decision = decision_of(own, children);
  switch (decision.kind) {
    case zookeeper::QueueDecision::Kind::first:
      for (const auto& one : line) {
        if (one.name == own) break;
        require(is_shared(one.kind) && is_shared(parse_contender(own)->kind),
                "before the owner there are none, or readers before a reader");
      }
      break;
    case zookeeper::QueueDecision::Kind::behind: {
      bool found = false;
      for (const auto& child : children) found = found || child == decision.watch;
      require(found && decision.watch != own, "we wait for somebody else who is there");
      break;
    }
    case zookeeper::QueueDecision::Kind::missing:
      require(!parse_contender(own), "a contender is in its line");
      break;
    case zookeeper::QueueDecision::Kind::unborn:
      require(!decision.unborn.empty(), "somebody's birth is to be asked for");
      break;
  }
}

/// A permutation of the children gives the same owner.
void check_order(std::vector<std::string> children) {
  const auto line = in_line(children);
  std::reverse(children.begin(), children.end());
  const auto again = in_line(children);
  for (std::size_t i = 0; i < line.size(); ++i) {
    require(line[i].name == again[i].name, "the order of a listing does not count");
  }
}

void check_metadata(std::string_view text) {
  Metadata metadata;
  metadata.owner.id = std::string(take_until(text, '\n'));
  metadata.owner.host = std::string(take_until(text, '\n'));
  metadata.owner.app = std::string(text);
  metadata.owner.pid = static_cast<std::int64_t>(text.size());
  metadata.session_timeout = std::chrono::milliseconds(text.size());
  const auto read = read_metadata(write_metadata(metadata));
  require(read && read->owner.id == metadata.owner.id && read->owner.host == metadata.owner.host &&
              read->owner.app == metadata.owner.app && read->owner.pid == metadata.owner.pid &&
              read->session_timeout == metadata.session_timeout,
          "metadata is read back as it was written");
}

void check_foreign(std::string_view text) {
  const auto read = read_metadata(text);
  if (!read) return;
  require(read->session_timeout.count() >= 0, "a session's length is not negative");
  require(read->session_timeout <= std::chrono::hours(24), "a session is no longer than a day");
}

void check_offsets(std::string_view text) {
  const auto offsets = parse_offsets(text);
  if (!offsets) return;
  require(std::is_sorted(offsets->begin(), offsets->end()), "offsets rise");
  const auto again = parse_offsets(write_offsets(*offsets));
  require(again && again->back() == offsets->back(), "offsets are read back as they were written");
}

}  // namespace
}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dlock;
  using namespace dlock::fuzz;
  const auto text = as_text(data, size);
  const auto children = lines_of(text);
  check_line(children);
  check_order(children);
  check_metadata(text);
  check_offsets(text);
  check_foreign(text);
  check_foreign("dlock=1\n" + std::string(text));
  zookeeper::path_error(text);
  require(zookeeper::read_limit(text).value_or(1) > 0, "a limit is a number above 0");
  zookeeper::read_asking(text);
  const auto value = zookeeper::line_value(std::string(text), "Zxid");
  require(value.find('\n') == value.npos, "a line's value is in one line");
  return 0;
}
