// What ends the program with exit status 2.
#pragma once

#include <stdexcept>

namespace kiln::cli {

// Something wrong with the command line itself, or with a file that it names, in a sentence.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace kiln::cli
