// The library as a citizen of its process: fork, exit, threads and memory that are not to be had,
// child processes. The C API's sources and the core are linked in, so that tests can reach both.
#define BOOST_TEST_MODULE process
#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "folder.hpp"

namespace {

// Before the library reads its environment.
struct Environment {
  Environment() {
    test::folder();
    setenv("KILN_CACHE_DIR", (test::folder() + "/cache").c_str(), 1);
    setenv("KILN_HOST_CXX", test::compiler().c_str(), 1);
    setenv("KILN_RECORD", (test::folder() + "/recorded").c_str(), 1);
    setenv("KILN_LOG", "info", 1);
    setenv("KILN_LOG_FILE", (test::folder() + "/log").c_str(), 1);
    setenv("KILN_COMPILE_THREADS", "2", 1);
    for (const char* unset : {"KILN_CACHE", "KILN_BUNDLE_PATH"}) unsetenv(unset);
  }
  ~Environment() { test::remove_folder(); }
};
BOOST_TEST_GLOBAL_FIXTURE(Environment);

}  // namespace
