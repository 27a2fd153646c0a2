// The system calls of the cache: reading and publishing entries, appending to files and listing
// directories. Errors are errno values, 0 for success.
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
  std::string refusal;  // the end of a sentence: why an existing file was not read

  std::span<const std::byte> bytes() const { return {data.get(), size}; }
};

// Reads an entry, for less than 1 MiB with open, fstat, one read and close. Never blocks, and never
// follows a link (ELOOP). Refuses files that are not regular, are larger than any entry, or that
// users other than `owner` can have written. Stops reading if the header is not that of an entry,
// or of one of another size than the file's.
FileBytes read_entry_file(const std::string& path, uid_t owner);

// Writes all bytes. Like all writers here, it lets no signal reach the program (quiet_writes.hpp).
int write_all(int descriptor, std::span<const std::byte> bytes);

// Publishes `bytes` as directory/name in one step: writes them to a temporary file beside it, and
// renames that. On failure it leaves no file behind.
enum class Access {
  owner,    // mode 0600 whatever the umask
  by_umask  // readable by whomever the umask allows
};
int publish_file(const std::string& directory, const std::string& name,
                 std::span<const std::byte> bytes, Access access = Access::owner);

// A file that is open for reading at any offset. Links are followed.
class FileReader {
 public:
  explicit FileReader(const std::string& path);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  int error() const { return error_; }  // the last one
  bool status(struct stat& status) const;
  // Reads `size` bytes; fails if there are fewer. They are allocated first, so the caller has to
  // compare `size` with the file's size before.
  std::vector<std::byte> read(std::uint64_t offset, std::uint64_t size) const;

 private:
  int descriptor_;
  mutable int error_ = 0;
};

// Reads at most the first `most` bytes of a regular file. Links are not followed (ELOOP).
FileBytes read_whole_file(const std::string& path, std::size_t most);

// Appends to a file in one write, and creates it (mode 0600) if necessary. If only a part was
// written, it is removed again, and the error is ENOSPC. `size`, if not null, gets the file's size
// before.
int append_to_file(const std::string& path, std::span<const std::byte> bytes,
                   std::uint64_t* size = nullptr);

// Opens a file for reading and writing, and creates it (mode 0600 whatever the umask) if necessary.
// Links are not followed. Returns the descriptor, or -1.
int open_or_create(const std::string& path, int flags);

// A directory that is open for listing. Links are not followed.
class OpenDirectory {
 public:
  explicit OpenDirectory(const std::string& path);
  OpenDirectory(const OpenDirectory& parent, const std::string& name);

  explicit operator bool() const { return stream_ != nullptr; }
  int error() const { return error_; }  // why it is not open

  std::vector<std::string> names();                                 // sorted; without "." and ".."
  bool status(const std::string& name, struct stat& status) const;  // does not follow a link
  bool remove(const std::string& name);                             // removes a file or a link
  bool remove_directory(const std::string& name);                   // removes an empty directory

 private:
  OpenDirectory(int at, const char* path);

  struct Close {
    void operator()(DIR* stream) const { closedir(stream); }
  };
  std::unique_ptr<DIR, Close> stream_;
  bool listed_ = false;
  int error_ = 0;
};

// Calls visit(shard, name) for every shard of the cache, in order. top: the versioned directory.
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
