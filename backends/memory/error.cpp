// SPDX-License-Identifier: Apache-2.0
#include "backends/memory/error.hpp"

namespace dlock::memory {
namespace {

class Category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "dlock.memory"; }

  std::string message(int value) const override {
    switch (static_cast<Error>(value)) {
      case Error::closed:
        return "the store was closed";
      case Error::not_holder:
        return "held with another token";
      case Error::not_held:
        return "nobody holds it";
      case Error::token_too_low:
        return "the store's tokens end";
      case Error::sealed:
        return "a migration's record stands in its place";
    }
    return "unknown error of the memory store";
  }

  boost::system::error_condition default_error_condition(int value) const noexcept override {
    switch (static_cast<Error>(value)) {
      case Error::closed:
        return errc::closed;
      case Error::not_holder:
        return errc::not_holder;
      case Error::not_held:
        return errc::not_found;
      case Error::token_too_low:
        return errc::unavailable;
      case Error::sealed:
        return errc::moving;
    }
    return errc::protocol;
  }
};

}  // namespace

const boost::system::error_category& category() noexcept {
  static const Category instance;
  return instance;
}

}  // namespace dlock::memory
