// SPDX-License-Identifier: Apache-2.0
//
// The README's table of guarantees, made from what the stores declare when they are asked: each is
// started with the settings that its row names.
#pragma once

#include <string>
#include <vector>

namespace dlock::cli_test {

struct GuaranteeRow {
  std::string title;
  std::string backend;
  std::string line;  ///< as in the README; empty where the backend is not built in
};

/// Starts servers. Throws what they throw.
std::vector<GuaranteeRow> guarantee_rows();

/// The table, between the README's markers.
std::string guarantee_table(const std::vector<GuaranteeRow>& rows);

inline constexpr const char* kGuaranteesBegin =
    "<!-- from what the stores declare: ./scripts/guarantees writes this table -->\n";
inline constexpr const char* kGuaranteesEnd = "<!-- end of the table -->\n";

/// The text between the markers; throws std::runtime_error without them.
std::string table_of(const std::string& readme);

}  // namespace dlock::cli_test
