// SPDX-License-Identifier: Apache-2.0
//
// The error category of a backend, made of one function that says what each of its codes means.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <boost/system/error_category.hpp>
#include <new>
#include <string>

#include "dlock/error.hpp"

namespace dlock::inline v0 {

/// Meaning of a code: its portable condition, and a sentence for the user.
struct ErrorMeaning {
  errc condition;
  const char* text;
};

/// `meaning`: a switch over all enumerators, so that the compiler misses none. It returns
/// {errc::protocol, "unknown ..."} for other values.
template <class Error, ErrorMeaning (*meaning)(Error) noexcept>
class ErrorCategory final : public boost::system::error_category {
 public:
  explicit ErrorCategory(const char* name) noexcept : name_(name) {}
  const char* name() const noexcept override { return name_; }
  std::string message(int value) const override { return meaning(static_cast<Error>(value)).text; }
  boost::system::error_condition default_error_condition(int value) const noexcept override {
    return make_error_condition(meaning(static_cast<Error>(value)).condition);
  }

  /// Never destroyed: codes of static storage may be asked after the end of main(). `name` counts
  /// the first time.
  static const ErrorCategory& instance(const char* name) noexcept {
    alignas(ErrorCategory) static unsigned char place[sizeof(ErrorCategory)];
    static const auto* const category = ::new (place) ErrorCategory(name);
    return *category;
  }

 private:
  const char* name_;
};

}  // namespace dlock::inline v0
