// SPDX-License-Identifier: Apache-2.0
//
// The `zk-lock:` block of the Java starter that many come from, read unchanged: a store `zk` and a
// route for every name. Its own defaults are absurd (a session of ten minutes, 17 days to connect);
// they are put right with a warning that says the value used.
#pragma once

#include "core/config/yaml_node.hpp"
#include "dlock/config.hpp"

namespace dlock::core {

/// Adds the block's store to `config`, and warnings.
/// The starter's other block, `u2-lock`, which is not read.
bool is_u2_lock(std::string_view key);
[[noreturn]] void refuse_u2_lock(const YamlFile& file, const YamlFile::Entry& entry);

void read_zk_lock(const YamlFile& file, const YAML::Node& block, Config& config);

}  // namespace dlock::core
