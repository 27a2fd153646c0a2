// The system calls of the cache: reading an entry, publishing one, looking through a directory, and
// the private directory itself. Errors are errno values, 0 for success.
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/store/layout.hpp"

namespace kiln::cache {

std::string error_text(int error);

struct FileBytes {
  std::unique_ptr<std::byte[]> data;
  std::size_t size = 0;
  int error = 0;
  std::string refusal;  // a sentence's end: why it was not read, though it is there

  std::span<const std::byte> bytes() const { return {data.get(), size}; }
};

// An entry: open, fstat, one read, close if it is of less than a mebibyte. Never waits, never
// follows a link (ELOOP). Refused are what is no regular file, what is larger than any entry, and
// what others than `owner` can have written. Stops reading where the header says that this is no
// entry, or one of another size than the file's.
FileBytes read_entry_file(const std::string& path, uid_t owner);

// No writer here lets a signal reach the program (quiet_writes.hpp).
int write_all(int descriptor, std::span<const std::byte> bytes);

// Makes `bytes` appear as directory/name in one step: written to a file beside it, then renamed.
// Nothing is left behind on failure.
enum class Access {
  owner,    // mode 0600 whatever the umask
  by_umask  // readable by whomever the umask allows
};
int publish_file(const std::string& directory, const std::string& name,
                 std::span<const std::byte> bytes, Access access = Access::owner);

// A file open for reading at any place; links are followed.
class FileReader {
 public:
  explicit FileReader(const std::string& path);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  int error() const { return error_; }  // the last one
  bool status(struct stat& status) const;
  // Fails if there are fewer bytes. `size` bytes are allocated, so the caller must have compared it
  // with the file's size.
  std::vector<std::byte> read(std::uint64_t offset, std::uint64_t size) const;

 private:
  int descriptor_;
  mutable int error_ = 0;
};

// At most `most` bytes of a file, under the same conditions.
FileBytes read_whole_file(const std::string& path, std::size_t most);

// Appends in one write to a file, made (0600) if need be; what arrives only in part is taken back,
// as ENOSPC. `size`, if not null, gets the file's size before that.
int append_to_file(const std::string& path, std::span<const std::byte> bytes,
                   std::uint64_t* size = nullptr);

// Opens for reading and writing what is no link, made (0600 whatever the umask) if need be. The
// descriptor, or -1.
int open_or_create(const std::string& path, int flags);

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
  bool listed_ = false;
  int error_ = 0;
};

// `visit(shard, name)` for every shard of the cache, in order; `top` is the versioned directory.
template <class Visit>
void for_each_shard(OpenDirectory& top, Visit visit) {
  if (!top) return;
  for (const std::string& name : top.names()) {
    if (!is_shard_name(name)) continue;
    if (OpenDirectory shard(top, name); shard) visit(shard, name);
  }
}

// Removes temporary files and locks that no live process can still use.
void remove_abandoned(OpenDirectory& directory);

}  // namespace kiln::cache
