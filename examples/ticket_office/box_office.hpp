// SPDX-License-Identifier: Apache-2.0
//
// The shared resource: a stock of tickets in a plain file, and a ledger with one line for each
// sale. Deliberately without any protection of its own: whoever sells without a lock oversells.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ticket_office {

struct Sale {
  int seller = 0;
  std::optional<std::uint64_t> token;  ///< the fencing token it was made under
};

class BoxOffice {
 public:
  /// `counter` is the stock's file, the ledger lies beside it. Throws std::system_error.
  explicit BoxOffice(std::string counter);

  /// A fresh run: so many tickets, no sales.
  void open(int stock);

  int read_stock() const;
  void write_stock(int stock);
  void record(const Sale& sale);

  /// All sales, in the order they were made.
  std::vector<Sale> sales() const;

 private:
  std::string counter_;
  std::string ledger_;
};

}  // namespace ticket_office
