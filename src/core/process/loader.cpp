#include "core/process/loader.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <new>

namespace kiln {
namespace {

constinit std::timed_mutex mutex;
// The thread that holds the lock to use the loader, and the one that holds it to fork; 0: none.
constinit std::atomic<pthread_t> user{0}, forker{0};

// A fork waits no longer than this. A thread that opens a library may itself wait for what the
// forking thread holds: before glibc 2.36 closing a library waits until no fork is under way.
// NVRTC takes less than a second to open from a disk.
constexpr std::chrono::seconds patience(5);

}  // namespace

LoaderLock::LoaderLock() : outermost_(user.load() != pthread_self()) {
  if (!outermost_) return;
  mutex.lock();
  user = pthread_self();
}

LoaderLock::~LoaderLock() {
  if (!outermost_) return;
  user = 0;
  mutex.unlock();
}

void take_loader_lock_for_fork() {
  if (user.load() != pthread_self() && mutex.try_lock_for(patience)) forker = pthread_self();
}

void release_loader_lock_in_parent() {
  if (forker.load() != pthread_self()) return;
  forker = 0;
  mutex.unlock();
}

// The child has only the thread that forked. Whatever the lock was, it is new, and held only if
// this thread forked while it was inside the loader.
void release_loader_lock_in_child() {
  new (&mutex) std::timed_mutex;
  forker = 0;
  if (user.load() == pthread_self())
    mutex.lock();
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
