// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/fiber.hpp"

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <utility>

#include "tests/simulation/stack_switch.hpp"

namespace dlock::simulation {
namespace {

constexpr std::size_t kStackSize = 256 * 1024;

thread_local Fiber* running = nullptr;
thread_local std::size_t alive_here = 0;

/// Of this thread; what has ended is used again.
boost::context::pooled_fixedsize_stack& stacks() {
  static thread_local boost::context::pooled_fixedsize_stack pool(kStackSize);
  return pool;
}

/// Hands out one stack that somebody else owns.
struct Borrowed {
  boost::context::stack_context stack;
  boost::context::stack_context allocate() const { return stack; }
  void deallocate(boost::context::stack_context&) const noexcept {}
};

}  // namespace

struct Fiber::Stack {
  Stack() : memory(stacks().allocate()), switches(memory.sp, memory.size) {}
  ~Stack() { stacks().deallocate(memory); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  boost::context::stack_context memory;
  StackSwitch switches;
  boost::context::fiber inside;
  boost::context::fiber outside;
  Job job;
  std::shared_ptr<Fiber> itself;  ///< kept until it ends
};

Fiber::Fiber() : stack_(std::make_unique<Stack>()) {}

// What parks for ever keeps itself alive, and is reported by alive().
Fiber::~Fiber() = default;

std::shared_ptr<Fiber> Fiber::start(Job job) {
  std::shared_ptr<Fiber> fiber(new Fiber());
  auto& stack = *fiber->stack_;
  stack.job = std::move(job);
  stack.itself = fiber;
  stack.inside = boost::context::fiber(std::allocator_arg, Borrowed{stack.memory},
                                       [&stack](boost::context::fiber&& outside) {
                                         stack.switches.entered();
                                         stack.outside = std::move(outside);
                                         stack.job();
                                         stack.job = {};
                                         stack.switches.leave_for_good();
                                         return std::move(stack.outside);
                                       });
  ++alive_here;
  fiber->resume();
  return fiber;
}

void Fiber::resume() {
  if (ended()) return;
  const auto itself = shared_from_this();
  auto& stack = *stack_;
  auto* const before = std::exchange(running, this);
  stack.switches.enter();
  stack.inside = std::move(stack.inside).resume();
  stack.switches.left();
  running = before;
  if (stack.inside) return;
  --alive_here;
  stack.itself.reset();
}

bool Fiber::ended() const noexcept { return !stack_->inside; }

void Fiber::park() {
  auto& stack = *running->stack_;
  stack.switches.leave();
  stack.outside = std::move(stack.outside).resume();
  stack.switches.entered();
}

std::size_t Fiber::alive() { return alive_here; }

std::shared_ptr<Fiber> Fiber::current() {
  return running == nullptr ? nullptr : running->shared_from_this();
}

}  // namespace dlock::simulation
