#include "denial.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>
#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KILN_TEST_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define KILN_TEST_SANITIZED 1
#endif

namespace test {
namespace {

std::atomic<long> requests{0}, first_denied{0};
std::atomic<bool> on{false};

}  // namespace

std::atomic<bool> deny_threads{false};

void deny_memory(long nth, bool goes_on) {
  first_denied = 0;
  requests = 0;
  on = goes_on;
  first_denied = nth;
}

long memory_requests() { return requests; }

#if defined(__GLIBC__) && !defined(KILN_TEST_SANITIZED)
const bool can_deny_memory = true;

static bool denied() {
  const long now = ++requests, first = first_denied;
  if (first == 0 || now < first || (now > first && !on)) return false;
  errno = ENOMEM;
  return true;
}
#else
const bool can_deny_memory = false;
#endif

}  // namespace test

// These stand before the C library's own for the whole process.
extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  if (test::deny_threads) return EAGAIN;
  static auto* const next =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return next(thread, attributes, start, argument);
}

#if defined(__GLIBC__) && !defined(KILN_TEST_SANITIZED)
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) { return test::denied() ? nullptr : __libc_malloc(size); }
void* calloc(std::size_t items, std::size_t size) {
  return test::denied() ? nullptr : __libc_calloc(items, size);
}
void* realloc(void* old, std::size_t size) {
  return test::denied() ? nullptr : __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return test::denied() ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  *out = test::denied() ? nullptr : __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}
#endif
}
