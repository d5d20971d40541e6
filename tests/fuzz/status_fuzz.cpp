// SPDX-License-Identifier: Apache-2.0
//
// What the command shows of what others wrote into a store: JSON that is JSON, and text that can do
// nothing to a terminal. Input: name, owner's fields and notes, a line each.
#include <boost/json/parse.hpp>

#include "cli/output/json.hpp"
#include "cli/output/text.hpp"
#include "program/output.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace dlock::fuzz {
namespace {

void check_json(const std::string& text) {
  boost::json::error_code ec;
  boost::json::parse(text, ec);
  require(!ec, "what is called JSON is JSON");
  require(text.find('\n') == text.npos, "one line");
}

void check_text(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    require(byte >= 0x20 || byte == '\n', "no control byte");
    require(byte != 0x7F, "no control byte");
    // U+0080 to U+009F: a terminal may take them for escapes.
    require(byte != 0xC2 || i + 1 >= text.size() || static_cast<unsigned char>(text[i + 1]) >= 0xA0,
            "no control character beyond ASCII");
  }
}

LockStatus status_of(std::string_view text) {
  LockStatus status;
  status.held = true;
  status.name = std::string(take_until(text, '\0'));
  status.owner.emplace();
  status.owner->id = std::string(take_until(text, '\0'));
  status.owner->host = std::string(take_until(text, '\0'));
  status.owner->app = std::string(take_until(text, '\0'));
  status.token = status.name.size();
  status.waiting.push_back(*status.owner);
  while (!text.empty()) status.notes.emplace_back(take_until(text, '\0'));
  return status;
}

}  // namespace
}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dlock;
  using namespace dlock::fuzz;
  const auto status = status_of(as_text(data, size));
  SemaphoreStatus semaphore;
  semaphore.name = status.name;
  semaphore.holders.push_back({*status.owner, 1, status.token, {}, {}});
  check_json(cli::to_json(status, std::nullopt, semaphore));
  check_json(cli::to_json({status, status}, {semaphore}));
  check_text(cli::to_text(status, std::nullopt));
  check_text(cli::to_text({status, status}, {semaphore}));
  cli::StoreFinding finding;
  finding.report.name = "store";
  finding.report.message = status.name;
  check_json(cli::to_json(std::vector<cli::StoreFinding>{finding}));
  check_text(cli::to_text(std::vector<cli::StoreFinding>{finding}));
  finding.report.capabilities.emplace();
  finding.report.capabilities->notes = status.notes;
  check_json(cli::to_json(std::vector<cli::StoreFinding>{finding}));
  check_text(cli::to_text(std::vector<cli::StoreFinding>{finding}));
  return 0;
}
