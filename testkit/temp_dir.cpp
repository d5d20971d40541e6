// SPDX-License-Identifier: Apache-2.0
#include "testkit/temp_dir.hpp"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace dlock::testkit {

namespace {

[[noreturn]] void fail_with(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

std::filesystem::path default_parent() {
  const char* base = std::getenv("TMPDIR");
  return base != nullptr && *base != '\0' ? base : "/tmp";
}

}  // namespace

TempDir::TempDir(std::string_view prefix) : TempDir(prefix, default_parent()) {}

TempDir::TempDir(std::string_view prefix, const std::filesystem::path& parent) {
  std::string pattern = (parent / (std::string(prefix) + "-XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) fail_with(errno, "cannot make " + pattern);
  path_ = pattern;
}

TempDir::~TempDir() { remove(); }

TempDir::TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  if (this != &other) {
    remove();
    path_ = std::exchange(other.path_, {});
  }
  return *this;
}

void TempDir::remove() noexcept {
  if (path_.empty() || std::getenv("DLOCK_KEEP_TEMP") != nullptr) return;
  std::error_code ignored;  // a leftover in /tmp is no reason to fail a test that passed
  std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::filesystem::path& file, std::string_view content) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) fail_with(EIO, "cannot write " + file.string());
}

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) fail_with(ENOENT, "cannot read " + file.string());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace dlock::testkit
