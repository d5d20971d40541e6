// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>

namespace ticket_office {

struct Options {
  std::string store;  ///< a lock store's URL, or `none`: sell without a lock
  int stock = 200;
  int sellers = 8;
  std::string counter = "tickets.txt";
  std::chrono::microseconds think{500};  ///< between reading the stock and writing it, on average
  std::string lock = "tickets";
  bool json = false;
  std::optional<int> seller;  ///< set in the processes that sell: which of them this is

  bool locked() const { return store != "none"; }
};

/// Its text is for the user.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws UsageError.
Options parse(int argc, char** argv);

extern const char* const usage;

}  // namespace ticket_office
