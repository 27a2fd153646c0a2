#include "denial.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>

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

std::atomic<long> requests{0}, first_denied{0}, spawns{0}, denied_spawn{0};
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

void deny_spawn(long nth) {
  denied_spawn = 0;
  spawns = 0;
  denied_spawn = nth;
}

long spawn_calls() { return spawns; }

static bool is_spawn_denied() { return ++spawns == denied_spawn; }

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

#define KILN_TEST_SPAWN_CALL(name, parameters, arguments)                                   \
  int name parameters {                                                                     \
    if (test::is_spawn_denied()) return ENOMEM;                                             \
    static auto* const next = reinterpret_cast<decltype(&::name)>(dlsym(RTLD_NEXT, #name)); \
    return next arguments;                                                                  \
  }
KILN_TEST_SPAWN_CALL(posix_spawn_file_actions_init, (posix_spawn_file_actions_t * actions),
                     (actions))
KILN_TEST_SPAWN_CALL(posix_spawn_file_actions_addchdir_np,
                     (posix_spawn_file_actions_t * actions, const char* folder), (actions, folder))
KILN_TEST_SPAWN_CALL(posix_spawn_file_actions_addopen,
                     (posix_spawn_file_actions_t * actions, int to, const char* path, int flags,
                      mode_t mode),
                     (actions, to, path, flags, mode))
KILN_TEST_SPAWN_CALL(posix_spawn_file_actions_adddup2,
                     (posix_spawn_file_actions_t * actions, int from, int to), (actions, from, to))
KILN_TEST_SPAWN_CALL(posix_spawn_file_actions_addclosefrom_np,
                     (posix_spawn_file_actions_t * actions, int from), (actions, from))
KILN_TEST_SPAWN_CALL(posix_spawnattr_init, (posix_spawnattr_t * attributes), (attributes))
KILN_TEST_SPAWN_CALL(posix_spawnattr_setsigdefault,
                     (posix_spawnattr_t * attributes, const sigset_t* set), (attributes, set))
KILN_TEST_SPAWN_CALL(posix_spawnattr_setsigmask,
                     (posix_spawnattr_t * attributes, const sigset_t* set), (attributes, set))
KILN_TEST_SPAWN_CALL(posix_spawnattr_setflags, (posix_spawnattr_t * attributes, short flags),
                     (attributes, flags))
KILN_TEST_SPAWN_CALL(posix_spawn,
                     (pid_t * child, const char* path, const posix_spawn_file_actions_t* actions,
                      const posix_spawnattr_t* attributes, char* const arguments[],
                      char* const variables[]),
                     (child, path, actions, attributes, arguments, variables))
int memfd_create(const char* name, unsigned flags) {
  if (test::is_spawn_denied()) return errno = ENOMEM, -1;
  static auto* const next =
      reinterpret_cast<decltype(&::memfd_create)>(dlsym(RTLD_NEXT, "memfd_create"));
  return next(name, flags);
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
