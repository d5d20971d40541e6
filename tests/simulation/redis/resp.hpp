// SPDX-License-Identifier: Apache-2.0
//
// The server's half of RESP2: replies as values, and as bytes. The value is the production codec's
// Reply, so that a test can compare what a simulated and a real server have answered.
#pragma once

#include <string>
#include <vector>

#include "backends/redis/wire/codec.hpp"

namespace dlock::simulation::redis {

/// The code under test; this namespace is the world around it.
namespace production = dlock::redis;

using production::Command;
using production::Replies;
using production::Reply;

inline Reply nil() { return {}; }
inline Reply status(std::string text) { return {Reply::Kind::status, 0, std::move(text), {}}; }
inline Reply error(std::string text) { return {Reply::Kind::error, 0, std::move(text), {}}; }
inline Reply integer(std::int64_t number) { return {Reply::Kind::integer, number, {}, {}}; }
inline Reply bulk(std::string text) { return {Reply::Kind::text, 0, std::move(text), {}}; }
inline Reply array(Replies items) { return {Reply::Kind::array, 0, {}, std::move(items)}; }

void append_reply(const Reply& reply, std::string& out);

/// For a test's words.
std::string to_text(const Reply& reply);

}  // namespace dlock::simulation::redis
