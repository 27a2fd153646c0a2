#include "core/process/loader.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <new>

namespace kiln {
namespace {

// Not std::timed_mutex, which some standard libraries construct when the program begins. All zeros
// is PTHREAD_MUTEX_INITIALIZER.
constinit pthread_mutex_t mutex{};
// The thread that holds the lock to use the loader, and the one that holds it to fork; 0: none.
constinit std::atomic<pthread_t> user{0}, forker{0};

// A fork waits no longer than this. A thread that opens a library may itself wait for what the
// forking thread holds: before glibc 2.36 closing a library waits until no fork is under way.
// NVRTC takes less than a second to open from a disk.
constexpr std::time_t patience = 5;  // seconds

bool lock_in_time() {
  timespec end{};
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += patience;
  return pthread_mutex_timedlock(&mutex, &end) == 0;
}

}  // namespace

LoaderLock::LoaderLock() : outermost_(user.load() != pthread_self()) {
  if (!outermost_) return;
  pthread_mutex_lock(&mutex);
  user = pthread_self();
}

LoaderLock::~LoaderLock() {
  if (!outermost_) return;
  user = 0;
  pthread_mutex_unlock(&mutex);
}

void take_loader_lock_for_fork() {
  if (user.load() != pthread_self() && lock_in_time()) forker = pthread_self();
}

void release_loader_lock_in_parent() {
  if (forker.load() != pthread_self()) return;
  forker = 0;
  pthread_mutex_unlock(&mutex);
}

// The child has only the thread that forked. Whatever the lock was, it is new, and held only if
// this thread forked while it was inside the loader.
void release_loader_lock_in_child() {
  mutex = pthread_mutex_t{};
  forker = 0;
  if (user.load() == pthread_self())
    pthread_mutex_lock(&mutex);
  else
    user = 0;
}

void* open_library(const std::string& path, std::string& why) {
  const LoaderLock lock;
  errno = 0;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  if (errno == ENOMEM) throw std::bad_alloc();
  const char* const reason = dlerror();
  why = reason != nullptr ? reason : path + " cannot be opened";
  return nullptr;
}

void close_library(void* library) {
  const LoaderLock lock;
  static_cast<void>(dlclose(library));  // fails only for what is not open
}

void* find_symbol(void* library, const char* name) {
  const LoaderLock lock;
  return dlsym(library, name);
}

std::string file_of(const void* address) {
  const LoaderLock lock;
  Dl_info info{};
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

}  // namespace kiln
