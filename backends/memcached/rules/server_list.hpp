// SPDX-License-Identifier: Apache-2.0
//
// Compares the server lists of the clients. A name's server follows from the list, the order and
// the distribution (placement.hpp). Two clients that differ in one of them would have two locks of
// one name on two servers. Each server keeps a note of its place, the list and the distribution,
// under a separate key. A client with another note is refused. Pure.
#pragma once

#include <chrono>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/spi/options.hpp"

namespace dlock::memcached {

/// Returns the note on the server at `place` (from 0). `label`: the operator's name for the list,
/// for servers that have other addresses elsewhere; empty: the addresses are compared. The note of
/// a lone server says only that it is alone: every distribution chooses it.
std::string server_note(const std::vector<Endpoint>& servers, std::size_t place,
                        std::string_view label, std::string_view distribution);

/// How long a note outlives the last client: longer than any lock that the clients take by default,
/// and ten minutes at least.
std::time_t note_exptime(std::chrono::milliseconds lease);

/// Returns the refusal of a note that a newer dlock wrote. Empty: the note is not newer.
std::string newer_note(std::string_view key, std::string_view note);

/// Returns the refusal of another note, with the remedy.
std::string other_note(std::string_view address, std::string_view key, std::string_view ours,
                       std::string_view theirs, std::time_t exptime);

}  // namespace dlock::memcached
