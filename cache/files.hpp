// The system calls of the cache: reading an entry, publishing one, looking through a directory, and
// the private directory itself. Errors are errno values, 0 for success.
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kiln::cache {

std::string error_text(int error);

struct FileBytes {
  std::unique_ptr<std::byte[]> data;
  std::size_t size = 0;
  int error = 0;

  std::span<const std::byte> bytes() const { return {data.get(), size}; }
};

// open, one read, close for any entry of less than a mebibyte. Never waits (a FIFO reads as empty
// or fails with EAGAIN), never follows a link (ELOOP), and stops reading where the header says that
// the entry ends or that it is none.
FileBytes read_entry_file(const std::string& path);

// Makes `bytes` appear as directory/name in one step, mode 0600 whatever the umask: written to a
// private file beside it, then renamed. Nothing is left behind on failure.
int publish_file(const std::string& directory, const std::string& name,
                 std::span<const std::byte> bytes);

// A directory open for looking through it. A link is not followed.
class OpenDirectory {
 public:
  explicit OpenDirectory(const std::string& path);
  OpenDirectory(const OpenDirectory& parent, const std::string& name);

  explicit operator bool() const { return stream_ != nullptr; }
  int error() const { return error_; }  // why it is not open

  std::vector<std::string> names();                                 // sorted; without "." and ".."
  bool status(const std::string& name, struct stat& status) const;  // of a link: the link's own
  bool remove(const std::string& name);                             // a file or a link
  bool remove_directory(const std::string& name);                   // an empty one

 private:
  OpenDirectory(int at, const char* path);

  struct Close {
    void operator()(DIR* stream) const { closedir(stream); }
  };
  std::unique_ptr<DIR, Close> stream_;
  int error_ = 0;
};

// Removes the temporary files that no living writer can still want.
void reclaim_orphans(const std::string& shard);

}  // namespace kiln::cache
