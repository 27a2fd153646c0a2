// Lets writes fail with an error instead of a signal, which could end the host program.
#pragma once

#include <csignal>

namespace kiln::cache {

// While such an object exists, failed writes of this thread only return EFBIG or EPIPE. Otherwise
// the system would also send SIGXFSZ (over the file-size limit) or SIGPIPE (nobody reads), which
// end a program without a handler. Both are blocked, and signals that arrive meanwhile are
// discarded; a signal that was pending before stays pending.
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
