// Writing in somebody else's process: a write that fails is an error here, never a signal there.
#pragma once

#include <csignal>

namespace kiln::cache {

// While one is alive, this thread's writes fail with EFBIG and EPIPE and nothing else. The system
// would also send SIGXFSZ (over the file-size limit) or SIGPIPE (nobody reads) to the thread, which
// ends a host program that has no handler. Here both are blocked, and what arrives meanwhile is
// taken away; one that was pending before stays.
class QuietWrites {
 public:
  QuietWrites();
  ~QuietWrites();  // keeps errno
  QuietWrites(const QuietWrites&) = delete;
  QuietWrites& operator=(const QuietWrites&) = delete;

 private:
  sigset_t before_{}, ours_{};
};

}  // namespace kiln::cache
