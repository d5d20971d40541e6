// SPDX-License-Identifier: Apache-2.0
#include "backends/local/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "dlock/spi/error_category.hpp"

namespace dlock::local {
namespace {

ErrorMeaning meaning(Error error) noexcept {
  switch (error) {
    case Error::directory_unusable:
      return {errc::config_invalid, "the lock directory cannot be used: check the path"};
    case Error::permission:
      return {errc::access_denied,
              "the system refuses access to the lock directory or file: check owner and mode"};
    case Error::foreign_file:
      return {errc::protocol, "a file in the lock directory is not a lock file: move it away"};
    case Error::damaged_file:
      return {
          errc::protocol,
          "a lock file is damaged, nothing is granted: move it away when no client holds the lock"};
    case Error::descriptors_used_up:
      return {errc::unavailable, "no file descriptor is left: raise the limit (ulimit -n)"};
    case Error::no_space:
      return {errc::unavailable, "the disk or the quota of the lock directory is full"};
    case Error::file_system_refused:
      return {errc::config_unsafe,
              "the file system of the lock directory is not known to keep locks for all"};
    case Error::locks_not_kept:
      return {errc::config_unsafe, "locks do nothing on the file system of the lock directory"};
    case Error::no_boot_id:
      return {errc::config_unsafe, "the boot id cannot be read: mount /proc"};
    case Error::tokens_used_up:
      return {errc::invalid_argument, "the fencing tokens of this lock are used up"};
    case Error::too_slow:
      return {errc::unavailable, "the disk of the lock directory did not answer in time"};
    case Error::system:
      return {errc::unavailable, "a system call on the lock directory failed"};
    case Error::cannot_evict:
      return {errc::not_supported,
              "the local store has no lease that could be broken; end the process instead"};
    case Error::not_held:
      return {errc::not_found, "nobody holds this lock"};
    case Error::removed:
      return {errc::unavailable, "the lock directory was removed meanwhile"};
    case Error::sealed:
      return {errc::moving, "a migration has sealed this lock: no client can hold it here"};
    case Error::text_too_long:
      return {errc::invalid_argument, "a record or note is longer than 64 KiB"};
    case Error::too_new:
      return {errc::unavailable,
              "the path of the lock directory leads there only since a moment ago: try again"};
    case Error::no_thread:
      return {errc::unavailable,
              "the system has no thread left: raise the limit (ulimit -u, pids.max)"};
    case Error::other_token:
      return {errc::not_holder, "the lock is held under another token"};
    case Error::newer_format:
      return {errc::newer_format, "a newer version of dlock wrote it"};
    case Error::gate_is_written:
      return {errc::unavailable, "another program is writing the plan's gate: try again"};
  }
  return {errc::protocol, "unknown error"};
}

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
  return ErrorCategory<Error, meaning>::instance("dlock.local");
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

Failure front_failure(const Front& front, std::string_view path) {
  auto error = Error::damaged_file;
  if (front.error == FrontError::none) return {};
  if (front.error == FrontError::foreign) error = Error::foreign_file;
  if (front.error == FrontError::newer_format) error = Error::newer_format;
  return make_failure(error, describe_front(front, path));
}

}  // namespace dlock::local
