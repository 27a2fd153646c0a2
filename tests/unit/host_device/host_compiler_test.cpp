// The host compiler: its description, and its failures.
#include "compile/host_compiler.hpp"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "compile/run_program.hpp"
#include "unit/host_device/host_device_support.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// A folder for one test, in which the compiler puts its temporary files as well.
struct OwnTemporaryFolder {
  OwnTemporaryFolder() {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    path = (fs::temp_directory_path() / "kiln-test-XXXXXX").string();
    BOOST_REQUIRE(mkdtemp(path.data()));
    setenv("TMPDIR", path.c_str(), 1);
  }
  ~OwnTemporaryFolder() {
    before_.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before_.c_str(), 1);
    fs::remove_all(path);
  }
  std::string path;

 private:
  std::string before_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(host_compiler)

BOOST_AUTO_TEST_CASE(the_identity_names_version_and_target) {
  std::string why;
  const auto compiler = find_host_compiler(why);
  BOOST_REQUIRE_MESSAGE(compiler, why);
  const std::string identity = compiler->identity();
  BOOST_TEST(identity.find_first_of("0123456789") != std::string::npos, identity);
  BOOST_TEST(contains(identity, "linux"), identity);
  BOOST_TEST(!contains(identity, "/"), identity);
  BOOST_TEST(contains(identity, "+asan") == sanitized, identity);
  BOOST_TEST(find_host_compiler(why) == compiler);
}

BOOST_FIXTURE_TEST_CASE(equal_text_gives_equal_binaries_and_no_file_stays, OwnTemporaryFolder) {
  const std::string text = cat(kernel_prelude, "KILN_KERNEL(test, 64, 1, Params, p) {}");
  const Compiled first = compile_for_host(text), second = compile_for_host(text);
  BOOST_TEST(first.milliseconds > 0);
  BOOST_CHECK(first.binary == second.binary);
  BOOST_TEST(fs::is_empty(path));
}

BOOST_FIXTURE_TEST_CASE(a_compile_error_carries_log_options_and_source, OwnTemporaryFolder) {
  try {
    compile_for_host(
        cat(kernel_prelude, "KILN_KERNEL(test, 64, 1, Params, p) { no_such_name(); }"));
    BOOST_FAIL("a text with an unknown name was compiled");
  } catch (const Error& error) {
    const std::string message = error.what();
    BOOST_TEST(error.status() == KILN_STATUS_COMPILE_FAILED);
    BOOST_TEST(contains(message, "test.cu:"), message);
    BOOST_TEST(contains(message, "no_such_name"), message);
    BOOST_TEST(contains(message, "KILN_LOG=debug"), message);
    BOOST_TEST(std::count(message.begin(), message.end(), '\n') <= 5, message);
  }
  BOOST_TEST(fs::is_empty(path));
}

BOOST_FIXTURE_TEST_CASE(a_missing_compiler_is_told_apart_from_a_broken_one, OwnTemporaryFolder) {
  const std::string broken = path + "/broken";
  std::ofstream(broken) << "#!/bin/sh\nexit 3\n";
  chmod(broken.c_str(), 0700);
  std::string why;
  const std::string candidates[] = {path + "/absent", "no-such-compiler-anywhere", broken};
  BOOST_TEST(!find_host_compiler_among(candidates, why));
  BOOST_TEST(contains(why, path + "/absent: no such executable file"), why);
  BOOST_TEST(contains(why, "no-such-compiler-anywhere: not found on PATH"), why);
  BOOST_TEST(contains(why, broken + ": does not answer --version"), why);
}

BOOST_FIXTURE_TEST_CASE(a_compiler_that_vanishes_is_reported, OwnTemporaryFolder) {
  const std::string vanishing = path + "/cxx";
  std::ofstream(vanishing) << "#!/bin/sh\necho vanishing 1.0\n";
  chmod(vanishing.c_str(), 0700);
  std::string why;
  const auto compiler = find_host_compiler_among({&vanishing, 1}, why);
  BOOST_REQUIRE_MESSAGE(compiler, why);
  // A compiler that exits with status 0 but has written no file.
  BOOST_CHECK_EXCEPTION(compiler->compile("", "test.cu", {}), Error, [](const Error& error) {
    return error.status() == KILN_STATUS_COMPILE_FAILED;
  });
  fs::remove(vanishing);
  BOOST_CHECK_EXCEPTION(compiler->compile("", "test.cu", {}), Error, [](const Error& error) {
    return error.status() == KILN_STATUS_NO_COMPILER;
  });
}

BOOST_AUTO_TEST_CASE(programs_get_their_arguments_unchanged) {
  const std::string shell = find_program("sh");
  const ProgramResult result = run_program(
      {shell, "-c", "printf '%s|' \"$@\"; echo err >&2; exit 7", "sh", "a b", "$HOME", ""});
  BOOST_TEST(result.started);
  BOOST_TEST(!result.succeeded);
  BOOST_TEST(result.ending == "exit status 7");
  BOOST_TEST(result.output == "a b|$HOME||err\n");
  BOOST_TEST(run_program({shell, "-c", "kill -9 $$"}).ending == "signal 9");
  BOOST_TEST(!run_program({"/no/such/program"}).started);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::test
