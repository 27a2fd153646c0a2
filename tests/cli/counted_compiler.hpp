// The machine's C++ compiler behind a script, which counts what it compiles or does something else.
#pragma once

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "run_kiln.hpp"
#include "support/text.hpp"

namespace kiln_test {

// The machine's C++ compiler by a script of the same name in `folder`, which does `instead` where
// it is asked to compile a kernel.
inline void wrap_compiler(Kiln& kiln, const std::string& folder, const std::string& instead) {
  const char* given = std::getenv("KILN_HOST_CXX");
  const std::filesystem::path real = given ? given : KILN_TEST_CXX;
  std::filesystem::create_directories(kiln.directory / folder);
  const std::string script =
      kiln.directory.write(folder + "/" + real.filename().string(),
                           "#!/bin/sh\ncase \"$*\" in *kernel.cpp*) " + instead + ";; esac\nexec " +
                               real.string() + " \"$@\"\n");
  BOOST_REQUIRE(chmod(script.c_str(), 0700) == 0);
  kiln.environment["KILN_HOST_CXX"] = script;
}

// Tells of each compilation, and then waits as `pause` says.
inline void count_compilations(Kiln& kiln, const std::string& pause = ":") {
  wrap_compiler(kiln, "counting", "echo x >>'" + (kiln.directory / "compilations") + "'; " + pause);
}

inline int compilations(const Kiln& kiln) {
  return count_of(read(kiln.directory / "compilations"), "x\n");
}

}  // namespace kiln_test
