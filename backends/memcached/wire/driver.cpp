// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "backends/memcached/wire/library_client.hpp"

namespace dlock::memcached {
namespace {

/// An io_context of its own, so that there is no mutex here.
class ThreadQueue final : public JobQueue {
 public:
  ThreadQueue() : more_(queue_.get_executor()) {}
  void post(Job job) override {
    boost::asio::post(queue_, [job = std::move(job)]() mutable { job(); });
  }
  void run() override { queue_.run(); }
  void close() override { more_.reset(); }

 private:
  boost::asio::io_context queue_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> more_;
};

}  // namespace

const Driver& library_driver() {
  static const Driver driver{
      [](Env& env, Endpoint server, std::uint32_t flags) -> std::unique_ptr<Client> {
        return std::make_unique<LibraryClient>(env, std::move(server), flags);
      },
      []() -> std::unique_ptr<JobQueue> { return std::make_unique<ThreadQueue>(); }};
  return driver;
}

}  // namespace dlock::memcached
