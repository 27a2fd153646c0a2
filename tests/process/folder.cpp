#include "folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace test {

namespace fs = std::filesystem;

const std::string& folder() {
  static const std::string path = [] {
    std::string name = (fs::temp_directory_path() / "kiln-test-process-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    std::ofstream(name + "/cxx") << "#!/bin/sh\n"
                                 << "if [ -e " << name << "/slow ]; then touch " << name
                                 << "/begun; sleep 2; fi\n"
                                 << "exec " KILN_TEST_CXX " \"$@\"\n";
    chmod((name + "/cxx").c_str(), 0700);
    return name;
  }();
  return path;
}

void remove_folder() { fs::remove_all(folder()); }

std::string compiler() { return folder() + "/cxx"; }

std::string copying_compiler() {
  const std::string path = folder() + "/copying-cxx", kept = folder() + "/kept.so";
  std::ofstream(path) << "#!/bin/sh\n"
                      << "case $1 in --version | -dumpmachine) exec " KILN_TEST_CXX " $1 ;; esac\n"
                      << "[ -e " << kept << " ] && exec cp " << kept << " kernel.so\n"
                      << KILN_TEST_CXX " \"$@\" && cp kernel.so " << kept << "\n";
  chmod(path.c_str(), 0700);
  return path;
}

void make_compiler_slow(bool slow) {
  fs::remove(folder() + "/begun");
  if (slow)
    std::ofstream(folder() + "/slow").flush();
  else
    fs::remove(folder() + "/slow");
}

void wait_until_compiler_begins() {
  while (access((folder() + "/begun").c_str(), F_OK) != 0) usleep(1000);
}

}  // namespace test
