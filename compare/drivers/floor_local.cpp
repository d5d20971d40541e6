// SPDX-License-Identifier: Apache-2.0
//
// The floor of one machine: flock(2) on a file that stays open.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "compare/drivers/floor.hpp"

namespace dlock::compare {
namespace {

class File {
 public:
  File(const std::string& folder, std::string name) {
    std::filesystem::create_directories(folder);
    std::replace(name.begin(), name.end(), '/', '_');
    descriptor_ = ::open((folder + "/" + name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "open");
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void change(int operation) {
    while (::flock(descriptor_, operation) != 0) {
      if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "flock");
    }
  }

 private:
  int descriptor_ = -1;
};

class FlockClient : public Client {
 public:
  FlockClient(const std::string& folder, const std::string& lock) : file_(folder, lock) {}
  void acquire() override { file_.change(LOCK_EX); }
  void release() override { file_.change(LOCK_UN); }

 private:
  File file_;
};

class Holders : public Crowd {
 public:
  Holders(const std::string& folder, int count) {
    for (int i = 0; i < count; ++i) {
      files_.push_back(std::make_unique<File>(folder, fmt::format("many-{}", i)));
      files_.back()->change(LOCK_EX);
    }
  }

 private:
  std::vector<std::unique_ptr<File>> files_;
};

/// flock() blocks a thread for each waiter; there is no other way to be told.
class Waiters : public Crowd {
 public:
  Waiters(const std::string& folder, int count) : holder_(folder, "one") {
    holder_.change(LOCK_EX);
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([folder] {
        File file(folder, "one");
        file.change(LOCK_EX);
      });
    }
  }
  ~Waiters() override {
    holder_.change(LOCK_UN);
    for (auto& thread : threads_) thread.join();
  }

 private:
  File holder_;
  std::vector<std::thread> threads_;
};

class LocalFloor : public Driver {
 public:
  explicit LocalFloor(std::string folder) : folder_(std::move(folder)) {}
  std::unique_ptr<Client> client(const std::string& lock, Use) override {
    return std::make_unique<FlockClient>(folder_, lock);
  }
  std::unique_ptr<Crowd> holders(int count) override {
    return std::make_unique<Holders>(folder_, count);
  }
  std::unique_ptr<Crowd> waiters(int count) override {
    return std::make_unique<Waiters>(folder_, count);
  }

 private:
  std::string folder_;
};

}  // namespace

std::unique_ptr<Driver> local_floor(const Address& address) {
  return std::make_unique<LocalFloor>(address.path + "-floor");
}

}  // namespace dlock::compare
