// SPDX-License-Identifier: Apache-2.0
#include "backends/memory/error.hpp"
#include "dlock/spi/error_category.hpp"

namespace dlock::memory {
namespace {

ErrorMeaning meaning(Error error) noexcept {
  switch (error) {
    case Error::closed:
      return {errc::closed, "the store was closed"};
    case Error::not_holder:
      return {errc::not_holder, "held with another token"};
    case Error::not_held:
      return {errc::not_found, "nobody holds it"};
    case Error::token_too_low:
      return {errc::unavailable, "the store's tokens end"};
    case Error::sealed:
      return {errc::moving, "a migration's record is in its place"};
  }
  return {errc::protocol, "unknown error of the memory store"};
}

}  // namespace

const boost::system::error_category& category() noexcept {
  return ErrorCategory<Error, meaning>::instance("dlock.memory");
}

}  // namespace dlock::memory
