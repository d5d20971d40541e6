// SPDX-License-Identifier: Apache-2.0
#include "box_office.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

namespace ticket_office {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void write_whole(const std::string& file, int flags, const std::string& bytes) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
  if (fd < 0) fail("cannot open " + file);
  const ssize_t written = ::write(fd, bytes.data(), bytes.size());
  ::close(fd);
  if (written != static_cast<ssize_t>(bytes.size())) fail("cannot write " + file);
}

}  // namespace

BoxOffice::BoxOffice(std::string counter)
    : counter_(std::move(counter)), ledger_(counter_ + ".ledger") {}

void BoxOffice::open(int stock) {
  write_stock(stock);
  write_whole(ledger_, O_TRUNC, "");
}

int BoxOffice::read_stock() const {
  std::ifstream in(counter_);
  int stock = 0;
  if (!(in >> stock)) fail("cannot read " + counter_);
  return stock;
}

// Always the same width and never truncated, so that a reader without a lock gets an old number or
// a new one, and the demonstration is about lost updates and not about torn files.
void BoxOffice::write_stock(int stock) {
  std::string digits = std::to_string(stock);
  digits.resize(12, ' ');
  write_whole(counter_, 0, digits + "\n");
}

void BoxOffice::record(const Sale& sale) {
  std::string line = std::to_string(sale.seller);
  if (sale.token) line.append(" ").append(std::to_string(*sale.token));
  write_whole(ledger_, O_APPEND, line + "\n");
}

std::vector<Sale> BoxOffice::sales() const {
  std::ifstream in(ledger_);
  if (!in) fail("cannot read " + ledger_);
  std::vector<Sale> result;
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    Sale sale;
    std::uint64_t token = 0;
    fields >> sale.seller;
    if (fields >> token) sale.token = token;
    result.push_back(sale);
  }
  return result;
}

}  // namespace ticket_office
