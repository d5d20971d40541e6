// SPDX-License-Identifier: Apache-2.0
#include "dlock/sequencer_check.hpp"

#include <mutex>

#include "core/fencing/highest_tokens.hpp"

namespace dlock::inline v0 {

struct SequencerCheck::Impl {
  explicit Impl(std::size_t most_names) : highest(most_names) {}
  std::mutex mutex;
  core::HighestTokens highest;
};

SequencerCheck::SequencerCheck(std::size_t most_names)
    : impl_(std::make_unique<Impl>(most_names)) {}
SequencerCheck::~SequencerCheck() = default;

SequencerCheck::Verdict SequencerCheck::admit(std::string_view name, std::uint64_t token,
                                              Mode mode) {
  const std::lock_guard lock(impl_->mutex);
  const auto highest = impl_->highest.find(name, mode);
  if (highest && token < *highest) return Verdict::stale;
  if (!highest && token < impl_->highest.floor()) return Verdict::below_floor;
  impl_->highest.raise(name, token, mode);
  return Verdict::admitted;
}

std::uint64_t SequencerCheck::floor() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->highest.floor();
}

std::size_t SequencerCheck::size() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->highest.size();
}

const char* to_string(SequencerCheck::Verdict value) noexcept {
  switch (value) {
    case SequencerCheck::Verdict::admitted:
      return "admitted";
    case SequencerCheck::Verdict::stale:
      return "stale";
    case SequencerCheck::Verdict::below_floor:
      return "below_floor";
  }
  return "unknown";
}

}  // namespace dlock::inline v0
