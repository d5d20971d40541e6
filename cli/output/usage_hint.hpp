// SPDX-License-Identifier: Apache-2.0
//
// What a command line that was not understood may have meant.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dlock::cli {

struct UsageHint {
  std::string verb;                     ///< that was understood; empty: none
  std::vector<std::string> verbs;       ///< that may stand there
  std::vector<std::string> options;     ///< that may stand there, with their dashes
  std::vector<std::string> unexpected;  ///< words that nobody wanted, as they came
  bool has_dashes = false;              ///< there is a `--`
};

/// One sentence: which word is wrong, and what to write.
std::string words_for(const UsageHint& hint);

/// The index of the first word that is neither an option nor the value of `--config` or `--store`;
/// words.size() if there is none.
std::size_t first_word(const std::vector<std::string>& words);

}  // namespace dlock::cli
