// SPDX-License-Identifier: Apache-2.0
//
// A text as one YAML document. Not YAML::LoadAll: with a stray comma behind `---` that (yaml-cpp
// 0.7) makes documents until the memory is used up.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>

namespace dlock::core {

/// The document of the file `name`; null if there is none.
/// Throws LockError{config_invalid} for text that is not YAML, or more than one document.
YAML::Node load_document(const std::string& text, const std::string& name);

}  // namespace dlock::core
