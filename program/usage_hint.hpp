// SPDX-License-Identifier: Apache-2.0
//
// Suggests a correction for a command line that the program does not understand.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dlock::program {

struct UsageHint {
  std::string verb;                     ///< the verb that was understood; empty: none
  std::vector<std::string> verbs;       ///< verbs that are valid here
  std::vector<std::string> options;     ///< options that are valid here, with their dashes
  std::vector<std::string> unexpected;  ///< words that are not valid, in their order
  bool has_dashes = false;              ///< there is a `--`
};

/// One sentence: which word is wrong, and what to write.
std::string words_for(const UsageHint& hint);

/// The index of the first word that is neither an option nor the value of `--config` or `--store`;
/// words.size() if there is none.
std::size_t first_word(const std::vector<std::string>& words);

}  // namespace dlock::program
