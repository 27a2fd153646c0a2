// The dynamic loader, under a lock that a fork waits for.
//
// The C library's loader has locks of its own. A child that is forked while another thread is
// inside the loader finds them taken for ever, and hangs as soon as it loads a kernel of the host
// device. So the library calls the loader under a lock of its own, and fork() waits until nobody
// holds it. What other code of the process loads meanwhile is not covered.
#pragma once

#include <string>

namespace kiln {

// Held for as long as this lives. A thread that holds it may take it again: the constructor of a
// library that is being opened may open another one, or fork.
class LoaderLock {
 public:
  LoaderLock();
  ~LoaderLock();
  LoaderLock(const LoaderLock&) = delete;
  LoaderLock& operator=(const LoaderLock&) = delete;

 private:
  bool outermost_;
};

// dlopen with RTLD_NOW | RTLD_LOCAL. If it returns null, `why` is the loader's reason; if that is
// want of memory, std::bad_alloc is thrown.
void* open_library(const std::string& path, std::string& why);
void close_library(void* library);
// dlsym: null if the library has no symbol of this name.
void* find_symbol(void* library, const char* name);
// The library or program that contains this address, as the loader knows it; "" if none does.
std::string file_of(const void* address);

// What a fork does with the lock (per_process.cpp): takes it before, and releases it in the parent
// and in the child.
void take_loader_lock_for_fork();
void release_loader_lock_in_parent();
void release_loader_lock_in_child();

}  // namespace kiln
