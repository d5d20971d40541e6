// SPDX-License-Identifier: Apache-2.0
//
// What can go wrong in a simulated run. Pure words: Network carries out those of messages, each
// store those of its servers, the run those of processes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace dlock::simulation {

enum class Fault : std::uint8_t {
  // Of one message.
  request_lost,  ///< it never arrives, nor does what follows on its connection
  reply_lost,    ///< it is carried out; nothing comes back on its connection any more
  request_late,  ///< it takes long
  reply_late,    ///< it is carried out at once; the reply takes long
  duplicated,    ///< it is carried out twice
  reset_before,  ///< the connection breaks before it arrives
  reset_after,   ///< the connection breaks after it was carried out, instead of the reply
  overtaken,     ///< the connection breaks; it arrives all the same, after what is sent next
  // Of a process.
  client_paused,
  client_crashed,
  client_clock_jump,  ///< of its wall clock
  client_cut,         ///< from every server, for a while
  // Of the store.
  server_restarted,   ///< killed; back with its data
  server_emptied,     ///< killed; back without
  failover,           ///< another server takes over
  server_cut,         ///< one server from the others, which its clients do not see
  evicted,            ///< a key goes to make room
  deleted,            ///< an operator removes the lock by hand
  server_clock_jump,  ///< of the server's wall clock
};

inline constexpr std::size_t kFaults = 19;

inline constexpr std::array<std::string_view, kFaults> kFaultNames = {
    "request_lost",      "reply_lost",  "request_late",     "reply_late",       "duplicated",
    "reset_before",      "reset_after", "overtaken",        "client_paused",    "client_crashed",
    "client_clock_jump", "client_cut",  "server_restarted", "server_emptied",   "failover",
    "server_cut",        "evicted",     "deleted",          "server_clock_jump"};

constexpr std::string_view to_string(Fault fault) {
  return kFaultNames.at(static_cast<std::size_t>(fault));
}

constexpr bool is_of_message(Fault fault) { return fault <= Fault::overtaken; }
constexpr bool is_of_process(Fault fault) {
  return fault >= Fault::client_paused && fault <= Fault::client_cut;
}

}  // namespace dlock::simulation
