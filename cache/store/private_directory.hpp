// Whether other users can have written to a directory or a file whose content will be executed.
#pragma once

#include <sys/stat.h>

#include <string>

namespace kiln::cache {

// A sentence's end that says why `owner` is not the only user who can have written what `status`
// describes ("can be written by other users"); "" if it is.
std::string other_writers(const struct stat& status, uid_t owner);

struct Standing {
  enum { absent, sound, refused } is = absent;
  std::string reason;  // why it is refused: a sentence's end, "is a symbolic link"
};

// Sound: a directory, not a link to one, that belongs to the effective user and that neither group
// nor others can write, in a directory where not everybody may rename it: one that all can write
// has to have the sticky bit, as /tmp has. Absent ones are judged by their parent alone.
Standing examine(const std::string& path);

// Makes `path`, and its parents where they are missing, mode 0700 whatever the umask. Returns an
// errno value, 0 if it is there now; what is there may still not be sound.
int make_private(const std::string& path);

// Without the ways of writing a path that hide what its last component is ("link/", "link/."), and
// independent of later changes of the working directory. Empty if that is not known.
std::string settled_path(std::string path);

}  // namespace kiln::cache
