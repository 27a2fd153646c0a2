#include "support/allocation_count.hpp"

#include <cstddef>  // also defines __GLIBC__

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KILN_TEST_COUNTS 0
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define KILN_TEST_COUNTS 0
#endif
#if !defined(KILN_TEST_COUNTS) && defined(__GLIBC__)
#define KILN_TEST_COUNTS 1
#elif !defined(KILN_TEST_COUNTS)
#define KILN_TEST_COUNTS 0
#endif

namespace {
thread_local long count = 0;
thread_local std::size_t bytes = 0;

[[maybe_unused]] void add(std::size_t size) {
  ++count;
  bytes += size;
}
}  // namespace

namespace test {
const bool counts_allocations = KILN_TEST_COUNTS;
long allocation_count() { return count; }
std::size_t allocated_bytes() { return bytes; }
}  // namespace test

// These replace the C library's functions in the whole process. operator new calls malloc.
#if KILN_TEST_COUNTS

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) {
  add(size);
  return __libc_malloc(size);
}

void* calloc(std::size_t items, std::size_t size) {
  add(items * size);
  return __libc_calloc(items, size);
}

void* realloc(void* old, std::size_t size) {
  add(size);
  return __libc_realloc(old, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  add(size);
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  add(size);
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? 12 : 0;  // ENOMEM
}
}

#endif
