// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <getopt.h>

#include <charconv>
#include <cstring>

namespace ticket_office {

const char* const usage =
    "usage: ticket_office --store URL|none [option...]\n"
    "  --store URL      where the lock lives: file:///var/tmp/locks, zookeeper://host:2181/, ...\n"
    "                   `none` sells without a lock\n"
    "  --stock N        tickets to sell (200)\n"
    "  --sellers N      processes that sell (8)\n"
    "  --counter FILE   the stock's file, overwritten; the ledger is FILE.ledger (tickets.txt)\n"
    "  --think US       microseconds between reading the stock and writing it (500)\n"
    "  --lock NAME      the lock's name (tickets)\n"
    "  --json           the result as one JSON object\n"
    "Exit status: 0; 1 oversold under a lock; 64 usage; 69 the store is unavailable; 130 Ctrl-C.\n";

namespace {

int number(const char* text, const char* option, int least) {
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < least) {
    throw UsageError(std::string(option) + " takes a number from " + std::to_string(least) +
                     ", not '" + text + "'");
  }
  return value;
}

}  // namespace

Options parse(int argc, char** argv) {
  static const option known[] = {{"store", required_argument, nullptr, 's'},
                                 {"stock", required_argument, nullptr, 'n'},
                                 {"sellers", required_argument, nullptr, 'k'},
                                 {"counter", required_argument, nullptr, 'c'},
                                 {"think", required_argument, nullptr, 't'},
                                 {"lock", required_argument, nullptr, 'l'},
                                 {"json", no_argument, nullptr, 'j'},
                                 {"seller", required_argument, nullptr, 'i'},
                                 {nullptr, 0, nullptr, 0}};
  Options options;
  opterr = 0;
  int found = 0;
  while ((found = ::getopt_long(argc, argv, "", known, nullptr)) != -1) {
    switch (found) {
      case 's':
        options.store = optarg;
        break;
      case 'n':
        options.stock = number(optarg, "--stock", 1);
        break;
      case 'k':
        options.sellers = number(optarg, "--sellers", 1);
        break;
      case 'c':
        options.counter = optarg;
        break;
      case 't':
        options.think = std::chrono::microseconds(number(optarg, "--think", 0));
        break;
      case 'l':
        options.lock = optarg;
        break;
      case 'j':
        options.json = true;
        break;
      case 'i':
        options.seller = number(optarg, "--seller", 0);
        break;
      default:
        throw UsageError(std::string("cannot use ") + argv[optind - 1]);
    }
  }
  if (optind < argc) throw UsageError(std::string("cannot use ") + argv[optind]);
  if (options.store.empty()) throw UsageError("--store is missing");
  return options;
}

}  // namespace ticket_office
