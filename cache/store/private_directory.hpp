// Checks whether other users can have written to a directory or file whose content will be
// executed.
#pragma once

#include <sys/stat.h>

#include <string>

namespace kiln::cache {

// The reason, the end of a sentence, why users other than `owner` can have written to the file or
// directory that `status` describes ("can be written by other users"); "" if they cannot.
std::string other_writers(const struct stat& status, uid_t owner);

struct Standing {
  enum { absent, sound, refused } is = absent;
  std::string reason;  // why it is refused: the end of a sentence, "is a symbolic link"
};

// Examines a directory. It is sound if it is not a link, belongs to the effective user, can be
// written neither by its group nor by others, and cannot be renamed by everybody: a parent that all
// can write to must have the sticky bit, as /tmp has. For an absent one, only the parent is
// examined.
Standing examine(const std::string& path);

// Makes `path` and its missing parents with mode 0700, whatever the umask. Returns an errno value,
// or 0 if it exists now; it may nonetheless not be sound.
int make_private(const std::string& path);

// The absolute path, so that later changes of the working directory do not matter, without endings
// that hide whether its last component is a link ("link/", "link/."). Empty if the working
// directory is not known.
std::string settled_path(std::string path);

}  // namespace kiln::cache
