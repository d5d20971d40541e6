// SPDX-License-Identifier: Apache-2.0
//
// The file of a FencedRegister: its form, and how it is replaced. The order of the steps makes it
// safe: a writer has the lock, the old token is compared, the new file is whole and on the disk
// before it gets the name, and the name is on the disk before the write returns.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/fencing/fenced_place.hpp"
#include "dlock/spi/answers.hpp"

namespace dlock::core {

struct FencedContent {
  std::string bytes;
  std::uint64_t token = 0;
  std::string lock;  ///< empty: not known
};

/// The file's bytes.
std::string encode_fenced(const FencedContent& content);
/// Empty, or what is wrong with the file.
std::string decode_fenced(std::string_view file, FencedContent& content);

/// Called before each step: for tests that die there.
using BeforeStep = std::function<void(std::string_view step)>;

/// A clear error is success. `content.lock` empty: no lock's name is compared.
Failure write_fenced(FencedPlace& place, const FencedContent& content,
                     const BeforeStep& before = {});
/// A clear error is success; without content the file does not exist.
Failure read_fenced(FencedPlace& place, std::optional<FencedContent>& content);

}  // namespace dlock::core
