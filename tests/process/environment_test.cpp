// A set-user-ID program does not do what its caller's environment says.
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "compile/run_program.hpp"
#include "core/config.hpp"
#include "folder.hpp"
#include "in_child.hpp"

namespace test {
namespace {

namespace fs = std::filesystem;

constexpr uid_t nobody = 65534;

// `kiln info` as a set-user-ID program of another user, if this test may make one.
std::string privileged_program() {
  const std::string path = folder() + "/kiln-privileged";
  fs::copy_file(KILN_PROGRAM, path, fs::copy_options::overwrite_existing);
  chmod(folder().c_str(), 0755);
  if (geteuid() != 0 || chown(path.c_str(), nobody, nobody) != 0 || chmod(path.c_str(), 04755) != 0)
    return "";
  return path;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(environment)

BOOST_AUTO_TEST_CASE(is_the_callers) {
  BOOST_TEST(kiln::has_callers_privileges());
  BOOST_TEST(kiln::environment("KILN_HOST_CXX") == compiler());
  BOOST_TEST(kiln::environment("KILN_NO_SUCH_VARIABLE") == "");
}

BOOST_AUTO_TEST_CASE(is_not_that_of_a_set_user_id_program) {
  const std::string program = privileged_program();
  if (program.empty()) {
    BOOST_TEST_MESSAGE("skipped: only root can make the program");
    return;
  }
  const kiln::ProgramResult plain = kiln::run_program({KILN_PROGRAM, "info"});
  BOOST_REQUIRE(plain.succeeded);
  BOOST_TEST(plain.output.find(folder()) != std::string::npos, plain.output);
  const kiln::ProgramResult privileged = kiln::run_program({program, "info"});
  BOOST_REQUIRE_MESSAGE(privileged.succeeded, privileged.output);
  BOOST_TEST(privileged.output.find(folder()) == std::string::npos, privileged.output);

  // Its compiler is not run as the caller, who cannot read the kernel's text.
  const int end = in_child(60, [&] {
    constexpr uid_t caller = 1;
    if (setgid(caller) != 0 || setuid(caller) != 0) return 100;
    const kiln::ProgramResult compiling =
        kiln::run_program({program, "conv", "--device", "host", "mb1ic2ih4oc3kh3ph1"});
    if (!compiling.succeeded) std::fputs(compiling.output.c_str(), stderr);
    return compiling.succeeded ? 0 : 1;
  });
  BOOST_TEST(end == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace test
