// SPDX-License-Identifier: Apache-2.0
//
// Writes the table of guarantees into the README: `dlock-guarantees README.md`.
#include <cstdio>
#include <exception>

#include "testkit/temp_dir.hpp"
#include "tests/cli/guarantee_table.hpp"

int main(int argc, char** argv) try {
  using namespace dlock::cli_test;
  if (argc != 2) {
    std::fputs("usage: dlock-guarantees README\n", stderr);
    return 64;
  }
  const auto rows = guarantee_rows();
  for (const auto& row : rows) {
    if (!row.line.empty()) continue;
    std::fprintf(stderr, "dlock-guarantees: %s: build with -DDLOCK_BACKEND_%s=ON first\n",
                 row.title.c_str(), row.backend.c_str());
    return 1;
  }
  auto readme = dlock::testkit::read_file(argv[1]);
  const auto old = table_of(readme);
  readme.replace(readme.find(kGuaranteesBegin) + std::string(kGuaranteesBegin).size(), old.size(),
                 guarantee_table(rows));
  dlock::testkit::write_file(argv[1], readme);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "dlock-guarantees: %s\n", error.what());
  return 1;
}
