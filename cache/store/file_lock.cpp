#include "cache/store/file_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "cache/store/files.hpp"
#include "cache/store/quiet_writes.hpp"

namespace kiln::cache {
namespace {

// Locks of the open file description, not of the process: they exclude other threads too, and a
// forked child that closes its copy of the descriptor does not release them.
int set_lock(int descriptor, short kind) {
  struct flock lock {};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  int result = 0;
  while ((result = ::fcntl(descriptor, F_OFD_SETLK, &lock)) < 0 && errno == EINTR) {
  }
  return result == 0 ? 0 : errno;
}

}  // namespace

FileLock::FileLock(std::string path)
    : path_(std::move(path)), descriptor_(open_or_create(path_, O_RDWR)) {}

FileLock::~FileLock() {
  // Closing it releases the lock, unless a child was forked just when the file was opened.
  if (held_ && descriptor_.get() >= 0) static_cast<void>(set_lock(descriptor_.get(), F_UNLCK));
}

FileLock::Turn FileLock::ask() {
  if (descriptor_.get() < 0) return Turn::none;
  const int error = set_lock(descriptor_.get(), F_WRLCK);
  if (error == EAGAIN || error == EACCES) return Turn::others;
  held_ = error == 0;
  return held_ ? Turn::mine : Turn::none;
}

bool FileLock::wait(std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds longest_nap(16);
  const auto end = std::chrono::steady_clock::now() + patience;
  for (std::chrono::milliseconds nap(1);; nap = std::min(2 * nap, longest_nap)) {
    const Turn turn = ask();
    if (turn != Turn::others) return turn == Turn::mine;
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(nap);
  }
}

void FileLock::remove() { ::unlink(path_.c_str()); }

std::vector<std::byte> FileLock::read(std::size_t most) const {
  std::vector<std::byte> content(most);
  const auto count = ::pread(descriptor_.get(), content.data(), most, 0);
  content.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return content;
}

void FileLock::write(std::span<const std::byte> content) const {
  const QuietWrites quiet;
  // A partial write is detected by its checksum.
  if (::pwrite(descriptor_.get(), content.data(), content.size(), 0) < 0) ::unlink(path_.c_str());
}

}  // namespace kiln::cache
