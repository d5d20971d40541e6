// SPDX-License-Identifier: Apache-2.0
#include "core/config/yaml_document.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>

#include <sstream>

#include "core/config/fail.hpp"

namespace dlock::core {

namespace {

/// Where a document starts; its content is passed over.
class Starts final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { last = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  YAML::Mark last;
};

/// An unquoted password that begins with an asterisk is an alias to YAML, which would show it.
std::string without_anchor(const std::string& message) {
  if (message.find("anchor") == std::string::npos) return message;
  return message.substr(0, message.find(": "));
}

}  // namespace

YAML::Node load_document(const std::string& text, const std::string& name) {
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    Starts starts;
    if (!parser.HandleNextDocument(starts)) return {};
    if (parser.HandleNextDocument(starts)) {
      fail_config({name, starts.last.line + 1, starts.last.column + 1}, {},
                  "one document is expected; remove the `---`");
    }
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    fail_config({name, error.mark.line + 1, error.mark.column + 1}, {},
                fmt::format("not YAML: {}", without_anchor(error.msg)));
  }
}

}  // namespace dlock::core
