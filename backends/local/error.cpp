// SPDX-License-Identifier: Apache-2.0
#include "backends/local/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace dlock::local {
namespace {

struct Row {
  const char* message;
  dlock::errc means;
};

Row row(int value) {
  switch (static_cast<Error>(value)) {
    case Error::directory_unusable:
      return {"the lock directory cannot be used: check the path", errc::config_invalid};
    case Error::permission:
      return {"the system refuses access to the lock directory or file: check owner and mode",
              errc::access_denied};
    case Error::foreign_file:
      return {"a file in the lock directory is not a lock file: move it away", errc::protocol};
    case Error::damaged_file:
      return {"a lock file is damaged, nothing is granted: move it away once nobody holds the lock",
              errc::protocol};
    case Error::descriptors_used_up:
      return {"no file descriptor is left: raise the limit (ulimit -n)", errc::unavailable};
    case Error::no_space:
      return {"the disk or the quota of the lock directory is full", errc::unavailable};
    case Error::file_system_refused:
      return {"the file system of the lock directory is not known to keep locks for all",
              errc::config_unsafe};
    case Error::locks_not_kept:
      return {"locks do nothing on the file system of the lock directory", errc::config_unsafe};
    case Error::no_boot_id:
      return {"the boot id cannot be read: mount /proc", errc::config_unsafe};
    case Error::tokens_used_up:
      return {"the fencing tokens of this lock are used up", errc::invalid_argument};
    case Error::too_slow:
      return {"the disk of the lock directory did not answer in time", errc::unavailable};
    case Error::system:
      return {"a system call on the lock directory failed", errc::unavailable};
    case Error::cannot_evict:
      return {"the local store has no lease that could be broken; end the process instead",
              errc::not_supported};
    case Error::not_held:
      return {"nobody holds this lock", errc::not_found};
    case Error::removed:
      return {"the lock directory was removed meanwhile", errc::unavailable};
    case Error::sealed:
      return {"a migration has sealed this lock: nobody holds it here", errc::moving};
    case Error::text_too_long:
      return {"a record or note is longer than 64 KiB", errc::invalid_argument};
    case Error::too_new:
      return {"the path of the lock directory has only just come to lead there: try again",
              errc::unavailable};
    case Error::no_thread:
      return {"the system has no thread to give: raise the limit (ulimit -u, pids.max)",
              errc::unavailable};
    case Error::other_token:
      return {"the lock is held under another token", errc::not_holder};
    case Error::gate_is_written:
      return {"another program is writing the plan's gate: try again", errc::unavailable};
  }
  return {"unknown error", errc::protocol};
}

class Category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "dlock.local"; }
  std::string message(int value) const override { return row(value).message; }
  boost::system::error_condition default_error_condition(int value) const noexcept override {
    return dlock::make_error_condition(row(value).means);
  }
};

Error classify(int number) {
  switch (number) {
    case EACCES:
    case EPERM:
    case EROFS:
      return Error::permission;
    case EMFILE:
    case ENFILE:
      return Error::descriptors_used_up;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Error::no_space;
    case ENOTDIR:
    case ENAMETOOLONG:
      return Error::directory_unusable;
    case ENOENT:
    case ESTALE:
      return Error::removed;
    case EISDIR:
    case ELOOP:
    case ESPIPE:
    case ENXIO:
      return Error::foreign_file;
    default:
      return Error::system;
  }
}

}  // namespace

const boost::system::error_category& category() noexcept {
  static const Category instance;
  return instance;
}

boost::system::error_code make_error_code(Error error) noexcept {
  return {static_cast<int>(error), category()};
}

Failure system_failure(int number, std::string_view what) {
  return {make_error_code(classify(number)),
          fmt::format("{}: {}", what, std::generic_category().message(number))};
}

Failure make_failure(Error error, std::string text) {
  return {make_error_code(error), std::move(text)};
}

Failure front_failure(FrontError error, std::string_view path) {
  if (error == FrontError::none) return {};
  const bool foreign = error == FrontError::foreign || error == FrontError::other_version;
  return make_failure(foreign ? Error::foreign_file : Error::damaged_file,
                      fmt::format("{}: {}", path, to_string(error)));
}

}  // namespace dlock::local
