// SPDX-License-Identifier: Apache-2.0
//
// Which list of servers the clients have. A name's server is chosen by its place in the list, so
// two clients with the same servers in another order, or with other ones, would have two locks of
// one name and never meet. Each server keeps a note of its place and of the list, under a key of
// its own; who comes with another one is refused. Pure.
#pragma once

#include <chrono>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/spi/options.hpp"

namespace dlock::memcached {

/// What the note on the server at `place` (from 0) says. `label`: the operator's name for the list,
/// for servers that have other addresses elsewhere; empty: the addresses are compared. One server
/// alone has no list: only that it is alone.
std::string server_note(const std::vector<Endpoint>& servers, std::size_t place,
                        std::string_view label);

/// How long a note outlives the last client: longer than any lock that the clients take by default,
/// and ten minutes at least.
std::time_t note_exptime(std::chrono::milliseconds lease);

/// What to do about another note.
std::string other_note(std::string_view address, std::string_view key, std::string_view ours,
                       std::string_view theirs, std::time_t exptime);

}  // namespace dlock::memcached
