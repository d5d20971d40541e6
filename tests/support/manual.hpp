// SPDX-License-Identifier: Apache-2.0
//
// The manual's commands, so that a test can do what it tells its readers to do.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::testkit {

/// The commands of the shell blocks below a heading, each as words, `dlock` in front left out;
/// `redis-cli` stays. Comments and `export` are left out.
std::vector<std::vector<std::string>> manual_commands(const std::string& page,
                                                      std::string_view heading);

/// The configuration blocks below a heading, as they stand there.
std::vector<std::string> manual_configurations(const std::string& page, std::string_view heading);

/// A configuration of the manual with these URLs instead of the lines of its stores, by name.
std::string with_stores(const std::string& configuration,
                        const std::map<std::string, std::string>& urls);
/// With the stores `old` and `new`.
std::string with_stores(const std::string& configuration, const std::string& old_url,
                        const std::string& new_url);

}  // namespace dlock::testkit
