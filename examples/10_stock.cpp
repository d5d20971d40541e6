// SPDX-License-Identifier: Apache-2.0
//
// Sellers and a view of their stock: who sells writes, alone; who looks reads, beside others who
// look. Two managers stand for two programs; start this one several times at once, too.
#include <chrono>
#include <dlock/dlock.hpp>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

std::string stock_file = "/var/tmp/dlock-example-stock";
constexpr int kTickets = 1000;

struct Stock {
  int left = kTickets;
  int sold = 0;
};

Stock read_stock() {
  Stock stock;
  std::ifstream(stock_file) >> stock.left >> stock.sold;
  return stock;
}

void write_stock(const Stock& stock) {
  std::ofstream(stock_file) << stock.left << ' ' << stock.sold << '\n';
}

const dlock::Section to_sell{.type = dlock::LockType::write, .lock = "stock", .wait = 20s};
const dlock::Section to_look{.type = dlock::LockType::read, .lock = "stock", .wait = 20s};

void sell(dlock::LockManager& locks) {
  dlock::synchronized(locks, to_sell, [] {
    auto stock = read_stock();
    if (stock.left == 0) stock = Stock();  // the next performance
    --stock.left;
    ++stock.sold;
    write_stock(stock);
  });
}

/// Nobody sees a sale that is half done.
bool is_whole(dlock::LockManager& locks) {
  return dlock::synchronized(locks, to_look, [] {
    const auto stock = read_stock();
    return stock.left + stock.sold == kTickets;
  });
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string url = argc > 1 ? argv[1] : "file:///var/tmp/dlock-example";
  if (argc > 2) stock_file = argv[2];
  auto box_office = dlock::LockManager::open(url);
  auto web_shop = dlock::LockManager::open(url);

  std::vector<std::thread> threads;
  for (auto* const locks : {&box_office, &web_shop}) {
    threads.emplace_back([locks] {
      for (int i = 0; i < 10; ++i) sell(*locks);
    });
    for (int viewer = 0; viewer < 3; ++viewer) {
      threads.emplace_back([locks] {
        for (int i = 0; i < 10; ++i) {
          if (!is_whole(*locks)) std::cout << "a sale that was half done was seen\n";
        }
      });
    }
  }
  for (auto& thread : threads) thread.join();

  const auto stock = dlock::synchronized(web_shop, to_look, [] { return read_stock(); });
  std::cout << stock.sold << " sold, " << stock.left << " left\n";
  return stock.left + stock.sold == kTickets ? 0 : 1;
} catch (const dlock::LockError& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
