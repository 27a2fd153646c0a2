// Runs the built program as a user would, in an environment of its own.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace kiln_test {

// A private directory, removed with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& content) const;  // the path

 private:
  std::filesystem::path path_;
};

std::string read(const std::string& path);

struct Finished {
  int status = -1;  // exit status; -1 if it was killed
  std::string out, err;

  std::vector<std::string> lines() const;  // of out
};

// The program with a kernel cache of its own, no GPU to be seen, and little else in its
// environment.
class Kiln {
 public:
  Kiln();

  // Goes on at once; `name` tells its output files from others'. The process number.
  int start_apart(const std::vector<std::string>& arguments, const std::string& name) const;
  Finished wait_for(int process, const std::string& name) const;

  Finished operator()(const std::vector<std::string>& arguments) const;

  // Standard output is a terminal; `out` is what it shows.
  Finished on_terminal(const std::vector<std::string>& arguments) const;

  // Sends SIGINT once something stands on standard output.
  Finished interrupted(const std::vector<std::string>& arguments) const;

  std::string program = KILN_PROGRAM;
  std::map<std::string, std::string> environment;
  TemporaryDirectory directory;

 private:
  int start(const std::vector<std::string>& arguments, int out, int err) const;
};

}  // namespace kiln_test
