// SPDX-License-Identifier: Apache-2.0
//
// Password: what a store logs in with. A password that a file holds is read again for each login,
// since operators change passwords while programs run.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <memory>
#include <string>
#include <utility>

#include "dlock/spi/env.hpp"

namespace dlock::inline v0 {

/// Loop only.
class Password : public std::enable_shared_from_this<Password> {
 public:
  /// `file`: an absolute path; empty: the password does not change.
  explicit Password(std::string value, std::string file = {})
      : value_(std::move(value)), file_(std::move(file)) {}

  bool has_file() const noexcept { return !file_.empty(); }
  const std::string& file() const noexcept { return file_; }
  /// The last value that was read.
  const std::string& value() const noexcept { return value_; }
  /// The reason why the last reading failed, with the file's name; empty: it did not.
  const std::string& trouble() const noexcept { return trouble_; }

  /// Reads the file on a helper thread, then calls `done` on the loop, never inside this call. A
  /// file that cannot be read leaves the value as it is. Callers need a deadline: it may never end.
  void read_again(Env& env, Job done);

 private:
  std::string value_;
  const std::string file_;
  std::string trouble_;
};

}  // namespace dlock::inline v0
