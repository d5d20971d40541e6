// SPDX-License-Identifier: Apache-2.0
//
// One file with everything in it: the page, its style and script, Chart.js, and the document as
// JSON that the script lays out.
#include <boost/json/serialize.hpp>
#include <stdexcept>

#include "compare/embedded.hpp"
#include "compare/report/report.hpp"

namespace dlock::compare {

namespace {

void put(std::string& page, std::string_view place, std::string_view content) {
  const auto at = page.find(place);
  if (at == std::string::npos) throw std::logic_error("the template has no " + std::string(place));
  page.replace(at, place.size(), content);
}

/// JSON for inside a script element: `</script>` in a text would end it.
std::string for_script(const boost::json::object& document) {
  std::string out;
  for (const char byte : boost::json::serialize(document)) {
    if (byte == '<') {
      out += "\\u003c";
    } else {
      out += byte;
    }
  }
  return out;
}

}  // namespace

std::string to_html(const boost::json::object& document) {
  std::string page(embedded("report/template.html"));
  put(page, "/*STYLE*/", embedded("report/report.css"));
  put(page, "/*CHART*/", embedded("chart.js"));
  put(page, "/*DOCUMENT*/", for_script(document));
  put(page, "/*SCRIPT*/", embedded("report/report.js"));
  return page;
}

}  // namespace dlock::compare
