// The sources of kernels: the user's cache in its modes, one compilation shared by many processes,
// or no compiler.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>

#include "counted_compiler.hpp"

using kiln_test::compilations;
using kiln_test::contains;
using kiln_test::count_compilations;
using kiln_test::count_of;
using kiln_test::Finished;
using kiln_test::Kiln;

namespace {

const std::string tiny = "mb2_ic3ih6_oc4_kh3ph1";

template <class Condition>
bool becomes_true(const Condition& condition) {
  for (int i = 0; i < 3000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  return names;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(layers)

// Of 64 processes that start with an empty cache, one compiles.
BOOST_AUTO_TEST_CASE(single_flight_among_processes) {
  Kiln kiln;
  count_compilations(kiln);
  constexpr int processes = 64;
  std::vector<int> running;
  for (int i = 0; i < processes; ++i)
    running.push_back(
        kiln.start_apart({"conv", "--device", "host", "--check", tiny}, "p" + std::to_string(i)));
  for (int i = 0; i < processes; ++i) {
    const Finished finished =
        kiln.wait_for(running[static_cast<std::size_t>(i)], "p" + std::to_string(i));
    BOOST_TEST_REQUIRE(finished.status == 0, finished.out + finished.err);
  }
  BOOST_TEST(compilations(kiln) == 1);
  const std::string counted = kiln({"cache", "stat"}).out;
  BOOST_TEST(contains(counted, "compiled               1\n"), counted);
  BOOST_TEST(contains(counted, "hits_disk              63\n"), counted);
}

// If the compiling process is stopped, the others wait as long as configured and then compile
// themselves. If it is killed, they do not wait.
BOOST_AUTO_TEST_CASE(a_stopped_compiler_holds_nobody_up) {
  Kiln kiln;
  count_compilations(kiln, "[ -e '" + (kiln.directory / "quick") + "' ] || sleep 30");
  kiln.environment["KILN_COMPILE_WAIT"] = "1";
  const std::vector<std::string> command{"conv", "--device", "host", tiny};
  const int holder = kiln.start_apart(command, "holder");
  BOOST_REQUIRE(becomes_true([&] { return compilations(kiln) == 1; }));
  kill(holder, SIGSTOP);
  kiln.directory.write("quick", "");
  const auto start = std::chrono::steady_clock::now();
  const int first = kiln.start_apart(command, "first"),
            second = kiln.start_apart(command, "second");
  const Finished one = kiln.wait_for(first, "first"), two = kiln.wait_for(second, "second");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  BOOST_TEST_REQUIRE(one.status == 0, one.err);
  BOOST_TEST_REQUIRE(two.status == 0, two.err);
  BOOST_TEST(took.count() >= 1.0);
  BOOST_TEST(took.count() < 20.0);
  BOOST_TEST(contains(one.err + two.err, "by another process for more than 1 s"));
  kill(holder, SIGKILL);
  kiln.wait_for(holder, "holder");

  BOOST_REQUIRE(kiln({"cache", "clear"}).status == 0);
  std::filesystem::remove(kiln.directory / "quick");
  kiln.environment["KILN_COMPILE_WAIT"] = "60";
  const int before = compilations(kiln);
  const int victim = kiln.start_apart(command, "victim");
  BOOST_REQUIRE(becomes_true([&] { return compilations(kiln) == before + 1; }));
  const int waiter = kiln.start_apart(command, "waiter");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  kiln.directory.write("quick", "");
  kill(victim, SIGKILL);
  kiln.wait_for(victim, "victim");
  const auto freed = std::chrono::steady_clock::now();
  BOOST_TEST(kiln.wait_for(waiter, "waiter").status == 0);
  BOOST_TEST((std::chrono::steady_clock::now() - freed < std::chrono::seconds(20)));
}

// Without HOME or another place, with a place that cannot be created, or with another user's HOME,
// the program works with one warning and leaves nothing in the folder for temporary files.
BOOST_AUTO_TEST_CASE(homeless) {
  struct Place {
    const char *variable, *value;
  };
  for (const Place place : {Place{nullptr, nullptr}, Place{"HOME", "relative"},
                            Place{"KILN_CACHE_DIR", "/proc/kiln"}, Place{"HOME", "/dev/null"}}) {
    Kiln kiln;
    kiln.environment.erase("KILN_CACHE_DIR");
    if (place.variable) kiln.environment[place.variable] = place.value;
    const std::string temporary = kiln.directory / "tmp";
    std::filesystem::create_directory(temporary);
    kiln.environment["TMPDIR"] = temporary;
    const Finished finished =
        kiln({"conv", "--device", "host", "--check", tiny, "ic3ih7oc4kh3", tiny});
    BOOST_TEST_CONTEXT((place.value ? place.value : "nothing") << "\n" << finished.err) {
      BOOST_TEST(finished.status == 0);
      BOOST_TEST(contains(finished.out, "3 passed"));
      BOOST_TEST(contains(finished.out, " memory "));
      BOOST_TEST(count_of(finished.err, "\n") == 1);
      BOOST_TEST(contains(finished.err, "cache"));
      BOOST_TEST(names_in(temporary).empty());
    }
  }
}

// A user whom nobody knows, with a HOME of another's.
BOOST_AUTO_TEST_CASE(homeless_and_nameless) {
  if (geteuid() != 0) {
    BOOST_TEST_MESSAGE("skipped: only root can become somebody else");
    return;
  }
  Kiln kiln;
  const std::string home = kiln.directory / "home", temporary = kiln.directory / "tmp";
  for (const std::string& folder : {home, temporary}) std::filesystem::create_directory(folder);
  for (const std::string& folder : {kiln.directory / "", temporary})
    BOOST_REQUIRE(chmod(folder.c_str(), 0777) == 0);
  kiln.environment.erase("KILN_CACHE_DIR");
  kiln.environment["HOME"] = home;
  kiln.environment["TMPDIR"] = temporary;
  signal(SIGCHLD, SIG_DFL);
  const pid_t child = fork();
  if (child == 0) {
    int status = 1;
    try {
      if (setgid(54321) == 0 && setuid(54321) == 0)
        status = kiln({"conv", "--device", "host", "--check", tiny, tiny}).status;
    } catch (const std::exception&) {
      status = 77;  // the program is out of that user's reach
    }
    _exit(status);
  }
  int status = -1;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  if (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127) return;
  const std::string err = kiln_test::read(kiln.directory / "err");
  BOOST_TEST(WEXITSTATUS(status) == 0, err);
  BOOST_TEST(count_of(err, "\n") == 1, err);
  BOOST_TEST(contains(err, home), err);
  BOOST_TEST(names_in(temporary).empty());
  BOOST_TEST(names_in(home).empty());
}

BOOST_AUTO_TEST_CASE(modes) {
  Kiln kiln;
  const std::vector<std::string> command{"conv", "--device", "host", "--check", tiny};
  const auto run = [&](const char* mode) {
    kiln.environment["KILN_CACHE"] = mode;
    return kiln(command);
  };
  const std::string directory = kiln.directory / "cache";
  for (const char* mode : {"off", "readonly"}) {
    const Finished finished = run(mode);
    BOOST_TEST(finished.status == 0);
    BOOST_TEST(contains(finished.out, "  compiled "));
    BOOST_TEST(!std::filesystem::exists(directory));
  }
  BOOST_TEST(run("strict").status == 1);
  BOOST_TEST(contains(run("on").out, "  compiled "));
  const auto written = std::filesystem::last_write_time(directory + "/v1/uses");
  for (const char* mode : {"readonly", "strict"}) BOOST_TEST(contains(run(mode).out, "  disk "));
  BOOST_TEST((std::filesystem::last_write_time(directory + "/v1/uses") == written));
  BOOST_TEST(contains(run("off").out, "  compiled "));
  const Finished unknown = run("maybe");
  BOOST_TEST(contains(unknown.out, "  disk "));
  BOOST_TEST(contains(unknown.err, "KILN_CACHE is maybe; expected on, readonly, strict or off"));
}

BOOST_AUTO_TEST_CASE(a_log_line_that_can_be_run_again) {
  Kiln kiln;
  kiln.environment["KILN_LOG"] = "info";
  kiln.environment["KILN_LOG_FILE"] = kiln.directory / "log";
  BOOST_REQUIRE(kiln({"pool", "--dt", "f16", "--device", "host", "ic4ih8kh2sh2ph0"}).status == 0);
  BOOST_REQUIRE(kiln({"pool", "--dt", "f16", "--device", "host", "ic4ih8kh2sh2ph0"}).status == 0);
  const std::string log = kiln_test::read(kiln.directory / "log");
  BOOST_TEST(count_of(log, "kiln pool --arch host --dt f16 ") == 2, log);
  BOOST_TEST(contains(log, " -> pooling for host, miss (absent), compiled, "), log);
  BOOST_TEST(contains(log, " -> pooling for host, hit in the user's cache, "), log);
  const std::size_t begin = log.find("kiln pool ") + 5;
  std::vector<std::string> words;
  std::istringstream line(log.substr(begin, log.find(" -> ") - begin));
  for (std::string word; line >> word;) words.push_back(word);
  const Finished again = kiln(words);
  BOOST_TEST(again.status == 0);
  BOOST_TEST(contains(again.out, "  disk "), again.out);
}

// The cache is kept below its limit by the program as well.
BOOST_AUTO_TEST_CASE(the_limit_of_the_size) {
  Kiln kiln;
  kiln.environment["KILN_CACHE_MAX_SIZE"] = "300K";
  std::string lines;
  for (int channels = 1; channels <= 10; ++channels)
    lines += "ic" + std::to_string(channels) + "ih6oc4kh3\n";
  const std::string file = kiln.directory.write("problems", lines);
  BOOST_TEST(kiln({"prewarm", file, "--arch", "host"}).status == 0);
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kiln.directory / "cache"))
    if (entry.path().extension() == ".kiln") bytes += entry.file_size();
  BOOST_TEST(bytes <= 300u * 1024);
  BOOST_TEST(bytes > 0u);
  BOOST_TEST(contains(kiln({"cache", "stat"}).out, "evicted "));
  kiln.environment["KILN_CACHE_MAX_SIZE"] = "lots";
  BOOST_TEST(contains(kiln({"cache", "stat"}).err, "KILN_CACHE_MAX_SIZE is lots; expected bytes"));
}

BOOST_AUTO_TEST_SUITE_END()
