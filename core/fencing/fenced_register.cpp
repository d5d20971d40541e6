// SPDX-License-Identifier: Apache-2.0
#include "dlock/fenced_register.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/fencing/fenced_file.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::inline v0 {
namespace {

Failure write_file(core::FencedPlace& place, std::uint64_t token, std::string_view lock,
                   std::string_view bytes);

/// Several readers hold the lock together: none of them is the newest.
Failure write_file(core::FencedPlace& place, const Sequencer& sequencer, std::string_view bytes) {
  if (sequencer.mode() == Mode::exclusive) {
    return write_file(place, sequencer.token(), sequencer.name(), bytes);
  }
  return make_failure(errc::invalid_argument,
                      "the sequencer is a reader's (mode shared), and several hold the lock at the "
                      "same time: write with an exclusive one");
}

Failure write_file(core::FencedPlace& place, std::uint64_t token, std::string_view lock,
                   std::string_view bytes) {
  if (token >= kTokenEnd) {
    return make_failure(errc::invalid_argument,
                        fmt::format("the token {} is not below 2^53", token));
  }
  core::FencedContent content;
  content.bytes = bytes;
  content.token = token;
  content.lock = lock;
  return core::write_fenced(place, content);
}

void throw_if(const Failure& failure, const std::string& lock) {
  if (failure.error) throw LockError(failure.error, {lock, {}, failure.text});
}

}  // namespace

FencedRegister::FencedRegister(std::string path)
    : path_(std::move(path)), place_(std::make_shared<core::FencedPlace>(path_)) {}

void FencedRegister::write(const Sequencer& sequencer, std::string_view bytes) {
  throw_if(write_file(*place_, sequencer, bytes), sequencer.name());
}

void FencedRegister::write(std::uint64_t token, std::string_view bytes) {
  throw_if(write_file(*place_, token, {}, bytes), {});
}

void FencedRegister::write(const Sequencer& sequencer, std::string_view bytes, error_code& ec) {
  ec = write_file(*place_, sequencer, bytes).error;
}

void FencedRegister::write(std::uint64_t token, std::string_view bytes, error_code& ec) {
  ec = write_file(*place_, token, {}, bytes).error;
}

std::optional<FencedRegister::Content> FencedRegister::read() const {
  std::optional<core::FencedContent> found;
  throw_if(core::read_fenced(*place_, found), {});
  if (!found) return std::nullopt;
  Content content{std::move(found->bytes), found->token, std::nullopt};
  if (!found->lock.empty()) content.name = std::move(found->lock);
  return content;
}

}  // namespace dlock::inline v0
