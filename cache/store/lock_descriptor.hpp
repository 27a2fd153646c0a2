// The descriptor of a file or folder that this process locks. A forked child does not keep it:
// locks of descriptors last until the last copy is closed, so the child of a killed process would
// keep everybody waiting for a lock that nobody uses.
#pragma once

#include <atomic>

namespace kiln::cache {

class LockDescriptor {
 public:
  // Takes the descriptor over; -1: there is none. A child forked between opening the file and this
  // call keeps its copy, and others then wait for their bounded time.
  explicit LockDescriptor(int number);
  ~LockDescriptor();  // closes it
  LockDescriptor(const LockDescriptor&) = delete;
  LockDescriptor& operator=(const LockDescriptor&) = delete;

  // -1 if there is none, or if this process is a child that was forked since.
  int get() const;

 private:
  int number_;
  std::atomic<int>* place_ = nullptr;  // in the list of descriptors that a child closes
};

}  // namespace kiln::cache
