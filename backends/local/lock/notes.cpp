// SPDX-License-Identifier: Apache-2.0
#include "backends/local/lock/notes.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "backends/local/lock/lock_contents.hpp"
#include "backends/local/rules/names.hpp"
#include "backends/local/wire/lock_file.hpp"

namespace dlock::local {
namespace {

constexpr const char* kWriters = ".notes";

RecordAnswer failed(RecordStatus status, int number, const std::string& path) {
  RecordAnswer answer;
  answer.status = status;
  answer.failure = system_failure(number, path);
  return answer;
}

/// `text` stays empty if the file does not exist.
SystemResult read_text(const Directory& directory, const std::string& file, std::string& text) {
  text.clear();
  LockFile opened;
  const auto result = LockFile::open_to_look(directory.get(), file.c_str(), opened);
  if (result.error == ENOENT) return {};
  if (!result.ok()) return result;
  std::vector<unsigned char> bytes(kTextSize + 1);
  std::size_t size = 0;
  if (const auto read = opened.read(bytes, 0, size); !read.ok()) return read;
  if (size > kTextSize) return {EFBIG};
  text.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  return {};
}

/// Writes the text to disk, in a separate file.
SystemResult write_text(const Directory& directory, const std::string& file,
                        std::string_view text) {
  LockFile made;
  auto result = create_file(directory, file, made);
  if (!result.ok()) return result;
  result = made.write(bytes_of(text), 0);
  if (result.ok() && ::fsync(made.descriptor()) != 0) result = {errno};
  if (!result.ok()) ::unlinkat(directory.get(), file.c_str(), 0);
  return result;
}

RecordAnswer replace(const Directory& directory, const std::string& file, std::string_view to,
                     const std::string& unique) {
  const auto path = directory.path_of(file);
  if (to.empty()) {
    if (::unlinkat(directory.get(), file.c_str(), 0) != 0 && errno != ENOENT) {
      return failed(RecordStatus::unavailable, errno, path);
    }
  } else {
    const std::string temporary = ".new-" + unique;
    if (const auto put = write_text(directory, temporary, to); !put.ok()) {
      return failed(RecordStatus::unavailable, put.error, path);
    }
    if (::renameat(directory.get(), temporary.c_str(), directory.get(), file.c_str()) != 0) {
      const int number = errno;
      ::unlinkat(directory.get(), temporary.c_str(), 0);
      return failed(RecordStatus::unavailable, number, path);
    }
  }
  if (::fsync(directory.get()) != 0) return failed(RecordStatus::unknown, errno, path);
  RecordAnswer answer;
  answer.status = RecordStatus::done;
  return answer;
}

}  // namespace

SystemResult open_writers(const Directory& directory, LockFile& out) {
  return open_or_make(directory, kWriters, out);
}

RecordAnswer read_note(const Directory& directory, const std::string& key) {
  const auto file = note_file_name(key);
  std::string text;
  if (const auto read = read_text(directory, file, text); !read.ok()) {
    return failed(RecordStatus::unavailable, read.error, directory.path_of(file));
  }
  RecordAnswer answer;
  answer.status = RecordStatus::done;
  if (!text.empty()) answer.found = std::move(text);
  return answer;
}

RecordAnswer write_note(const Directory& directory, const std::string& key, std::string_view from,
                        std::string_view to, const std::string& unique) {
  auto found = read_note(directory, key);
  if (found.status != RecordStatus::done) return found;
  if (found.found.value_or("") != from) {
    found.status = RecordStatus::conflict;
    return found;
  }
  return replace(directory, note_file_name(key), to, unique);
}

std::string read_small_file(const Directory& directory, const std::string& file) {
  std::string text;
  if (!read_text(directory, file, text).ok()) text.clear();
  return text;
}

Failure put_small_file(const Directory& directory, const std::string& file, std::string_view text,
                       const std::string& unique) {
  return replace(directory, file, text, unique).failure;
}

}  // namespace dlock::local
