// A directory that nobody else can have put anything into.
#pragma once

#include <string>

namespace kiln::cache {

struct Standing {
  enum { absent, sound, refused } is = absent;
  std::string reason;  // why it is refused: a sentence's end, "is a symbolic link"
};

// Sound: a directory, not a link to one, that belongs to the effective user and that neither group
// nor others can write. Its parents are the user's affair: whoever may rename the user's
// directories needs no cache to do harm.
Standing examine(const std::string& path);

// Makes `path`, and its parents where they are missing, mode 0700 whatever the umask. Returns an
// errno value, 0 if it is there now; what is there may still not be sound.
int make_private(const std::string& path);

// Without the ways of writing a path that hide what its last component is ("link/", "link/."), and
// independent of later changes of the working directory. Empty if that is not known.
std::string settled_path(std::string path);

}  // namespace kiln::cache
