#include "device/host/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "core/error.hpp"

#ifdef KILN_SANITIZE
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace kiln::host {
namespace {

namespace context = boost::context::detail;

// Kernels keep their tiles in local arrays of a few KiB. A sanitized frame is several times as
// large, and an error report is written from the stack where the error happened.
#ifdef KILN_SANITIZE
constexpr std::size_t stack_bytes = 256 * 1024;
#else
constexpr std::size_t stack_bytes = 64 * 1024;
#endif

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::size_t slot_bytes() { return page_bytes() + stack_bytes; }

// AddressSanitizer tracks the stack, so it has to be told about a switch before and after it. A
// null `fake_stack` before a switch means that nothing returns to the stack that is left.
void before_switch([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* stack,
                   [[maybe_unused]] std::size_t bytes) {
#ifdef KILN_SANITIZE
  __sanitizer_start_switch_fiber(fake_stack, stack, bytes);
#endif
}
void after_switch([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** stack_left,
                  [[maybe_unused]] std::size_t* bytes) {
#ifdef KILN_SANITIZE
  __sanitizer_finish_switch_fiber(fake_stack, stack_left, bytes);
#endif
}

}  // namespace

FiberStacks::FiberStacks(std::size_t count) : count_(count) {
  const std::size_t bytes = count * slot_bytes();
  void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED)
    fail(KILN_STATUS_ALLOC_FAILED, "no address space for ", count, " fiber stacks of ", stack_bytes,
         " bytes: ", std::strerror(errno));
  mapping_ = static_cast<std::byte*>(mapping);
  for (std::size_t i = 0; i < count; ++i) {
    if (mprotect(mapping_ + i * slot_bytes(), page_bytes(), PROT_NONE) == 0) continue;
    const int error = errno;
    munmap(mapping_, bytes);
    fail(KILN_STATUS_ALLOC_FAILED, "no guard page for fiber stack ", i, " of ", count, ": ",
         std::strerror(error));
  }
}

FiberStacks::~FiberStacks() {
#ifdef KILN_SANITIZE
  // Fibers that never returned have left red zones, and the addresses may be mapped again.
  __asan_unpoison_memory_region(mapping_, count_ * slot_bytes());
#endif
  munmap(mapping_, count_ * slot_bytes());
}

std::span<std::byte> FiberStacks::operator[](std::size_t index) const {
  return {mapping_ + index * slot_bytes() + page_bytes(), stack_bytes};
}

std::unique_ptr<FiberStacks> FiberStackPool::take(std::size_t at_least) {
  {
    const auto idle = idle_.lock();
    const auto found = std::ranges::find_if(
        *idle, [&](const auto& stacks) { return stacks->count() >= at_least; });
    if (found != idle->end()) {
      auto stacks = std::move(*found);
      idle->erase(found);
      return stacks;
    }
    idle->clear();  // too small for this launch
  }
  return std::make_unique<FiberStacks>(at_least);
}

void FiberStackPool::give_back(std::unique_ptr<FiberStacks> stacks) noexcept {
  try {
    idle_.lock()->push_back(std::move(stacks));
  } catch (const std::bad_alloc&) {  // the stacks are unmapped, and the next launch maps new ones
  }
}

struct Fiber::Entry {
#if defined(KILN_SANITIZE)
  // The function never returns, so its frame must not have poisoned bytes around it.
  __attribute__((no_sanitize("address")))
#endif
  static void
  enter(context::transfer_t from) {
    Fiber& fiber = *static_cast<Fiber*>(from.data);
    fiber.context_ = from.fctx;
    after_switch(nullptr, &fiber.resumer_stack_, &fiber.resumer_stack_size_);
    fiber.body_(fiber.argument_);
    before_switch(nullptr, fiber.resumer_stack_, fiber.resumer_stack_size_);
    context::jump_fcontext(fiber.context_, nullptr);
  }
};

void Fiber::start(std::span<std::byte> stack, Body body, void* argument) {
  stack_ = stack;
  body_ = body;
  argument_ = argument;
  fake_stack_ = nullptr;
  context_ = context::make_fcontext(stack.data() + stack.size(), stack.size(), Entry::enter);
}

void Fiber::resume() {
  void* own_fake_stack = nullptr;
  before_switch(&own_fake_stack, stack_.data(), stack_.size());
  context_ = context::jump_fcontext(context_, this).fctx;
  after_switch(own_fake_stack, nullptr, nullptr);
}

void Fiber::suspend() {
  before_switch(&fake_stack_, resumer_stack_, resumer_stack_size_);
  context_ = context::jump_fcontext(context_, nullptr).fctx;
  after_switch(fake_stack_, &resumer_stack_, &resumer_stack_size_);
}

}  // namespace kiln::host
