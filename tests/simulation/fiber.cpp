// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/fiber.hpp"

#include <semaphore>
#include <string_view>
#include <thread>
#include <vector>

#include "core/planted.hpp"

namespace dlock::simulation {

struct FiberThread {
  std::binary_semaphore go{0};
  std::binary_semaphore back{0};
  core::Job job;
  std::shared_ptr<Fiber> fiber;  ///< kept until it ends
  std::string_view defect;
  bool ended = true;
  bool quit = false;
  std::jthread thread{[this] { main(); }};

  ~FiberThread() {
    quit = true;
    go.release();
  }
  void main();
};

namespace {

thread_local FiberThread* running = nullptr;

}  // namespace

void FiberThread::main() {
  running = this;
  for (;;) {
    go.acquire();
    if (quit) return;
    core::planted_defect = defect;
    job();
    job = {};
    ended = true;
    back.release();
  }
}

namespace {

/// Threads whose fiber has ended, for the next one.
struct Pool {
  std::vector<std::unique_ptr<FiberThread>> all;
  std::vector<FiberThread*> idle;

  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  // What parks for ever has been reported; its stack cannot be taken apart.
  ~Pool() {
    for (auto& thread : all) {
      if (thread->ended) continue;
      thread->thread.detach();
      static_cast<void>(thread.release());
    }
  }
};

Pool& pool() {
  static thread_local Pool threads;
  return threads;
}

}  // namespace

std::shared_ptr<Fiber> Fiber::start(core::Job job) {
  auto& threads = pool();
  if (threads.idle.empty()) {
    threads.all.push_back(std::make_unique<FiberThread>());
    threads.idle.push_back(threads.all.back().get());
  }
  std::shared_ptr<Fiber> fiber(new Fiber());
  fiber->thread_ = threads.idle.back();
  threads.idle.pop_back();
  fiber->thread_->job = std::move(job);
  fiber->thread_->fiber = fiber;
  fiber->thread_->defect = core::planted_defect;
  fiber->thread_->ended = false;
  fiber->resume();
  return fiber;
}

Fiber::~Fiber() = default;

void Fiber::resume() {
  auto* const thread = thread_;
  if (thread == nullptr) return;
  thread->go.release();
  thread->back.acquire();
  if (!thread->ended) return;
  pool().idle.push_back(thread);
  thread_ = nullptr;
  const auto last = std::move(thread->fiber);
}

bool Fiber::ended() const noexcept { return thread_ == nullptr; }

std::size_t Fiber::alive() { return pool().all.size() - pool().idle.size(); }

void Fiber::park() {
  running->back.release();
  running->go.acquire();
}

std::shared_ptr<Fiber> Fiber::current() { return running == nullptr ? nullptr : running->fiber; }

}  // namespace dlock::simulation
