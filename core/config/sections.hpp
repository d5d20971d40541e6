// SPDX-License-Identifier: Apache-2.0
//
// Sections: the rules for their content, and how `sections:` is read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/config/yaml_node.hpp"
#include "dlock/config.hpp"

namespace dlock::core {

/// Returns what is wrong with the section alone, and what to write; empty: nothing. A name of a
/// lock may be missing.
std::string section_error(const Section& section);

/// Returns the type as users write it: `semaphore`.
std::string_view type_name(LockType type) noexcept;

/// `sections:`. Throws LockError{config_invalid}.
std::vector<SectionConfig> read_sections(const YamlFile& file, const YAML::Node& node);

}  // namespace dlock::core
