// Where kernels come from: bundles, the user's cache, one compiler among many processes, or none.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <thread>

#include "run_kiln.hpp"

using kiln_test::Finished;
using kiln_test::Kiln;

namespace {

const std::string tiny = "mb2_ic3ih6_oc4_kh3ph1";
const std::string problems =
    "ic3ih6oc4kh3ph1\npool ic4ih8kh2sh2ph0\nact --act relu 2x3x4x4\nsoftmax 2x8x3x3\n"
    "tensor --op add 2x4x3x3:1x4x1x1:2x4x3x3\n";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++count;
  return count;
}

// The machine's C++ compiler by a script of the same name in `folder`, which does `instead` where
// it is asked to compile a kernel.
void wrap_compiler(Kiln& kiln, const std::string& folder, const std::string& instead) {
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
void count_compilations(Kiln& kiln, const std::string& pause = ":") {
  wrap_compiler(kiln, "counting", "echo x >>'" + (kiln.directory / "compilations") + "'; " + pause);
}

std::size_t compilations(const Kiln& kiln) {
  return count_of(kiln_test::read(kiln.directory / "compilations"), "x\n");
}

template <class Condition>
bool becomes_true(const Condition& condition) {
  for (int i = 0; i < 3000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

void take_compilers_away(Kiln& kiln) {
  kiln.environment["KILN_HOST_CXX"] = "/nonexistent/c++";
  kiln.environment["KILN_NVRTC"] = "/nonexistent/libnvrtc.so";
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  return names;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(layers)

// 64 processes that start with nothing: one of them compiles.
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
  BOOST_TEST(compilations(kiln) == 1u);
  const std::string counted = kiln({"cache", "stat"}).out;
  BOOST_TEST(contains(counted, "compiled               1\n"), counted);
  BOOST_TEST(contains(counted, "hits_disk              63\n"), counted);
}

// The one that compiles is stopped: the others wait as long as they were told to, and then do it
// themselves. Killed, it holds nobody up at all.
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
  const std::size_t before = compilations(kiln);
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

// No HOME, nor any other place; a place that cannot be made; a HOME of somebody else's: it works,
// with one warning, and leaves nothing in the folder for temporary files.
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
      BOOST_TEST(count_of(finished.err, "\n") == 1u);
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
  BOOST_TEST(count_of(err, "\n") == 1u, err);
  BOOST_TEST(contains(err, home), err);
  BOOST_TEST(names_in(temporary).empty());
  BOOST_TEST(names_in(home).empty());
}

// kiln.bundle beside the library, or the program that has it inside, needs no variable.
BOOST_AUTO_TEST_CASE(a_bundle_beside_the_program) {
  Kiln kiln;
  const std::string folder = kiln.directory / "bin";
  std::filesystem::create_directory(folder);
  const std::string file = kiln.directory.write("problems", tiny + "\n");
  BOOST_REQUIRE(
      kiln({"prewarm", file, "--arch", "host", "--bundle", folder + "/kiln.bundle"}).status == 0);
  std::filesystem::copy(kiln.program, folder + "/kiln");
  kiln.program = folder + "/kiln";
  kiln.environment["KILN_CACHE_DIR"] = kiln.directory / "another";
  BOOST_TEST(contains(kiln({"conv", "--device", "host", "--check", tiny}).out, "  bundle "));
  BOOST_TEST(contains(kiln({"info"}).out, folder + "/kiln.bundle, 1 kernels"));
}

// A kernel in a bundle that cannot be loaded is looked for further down, and made only once.
BOOST_AUTO_TEST_CASE(a_bundle_of_kernels_that_do_not_load) {
  Kiln kiln;
  const std::string file = kiln.directory.write("problems", tiny + "\n"),
                    bundle = kiln.directory / "broken.bundle";
  // A compiler of the same name and build whose output is not to be loaded.
  wrap_compiler(kiln, "rubbish", "echo rubbish >kernel.so; exit");
  BOOST_REQUIRE(kiln({"prewarm", file, "--arch", "host", "--bundle", bundle}).status == 0);
  count_compilations(kiln);
  kiln.environment["KILN_BUNDLE_PATH"] = bundle;
  kiln.environment["KILN_CACHE_DIR"] = kiln.directory / "another";
  const std::vector<std::string> command{"conv", "--device", "host", "--check", tiny};
  for (const char* origin : {"  compiled ", "  disk "}) {
    const Finished finished = kiln(command);
    BOOST_TEST(finished.status == 0, finished.out);
    BOOST_TEST(contains(finished.out, origin), finished.out);
    BOOST_TEST(contains(finished.err, "does not load"), finished.err);
  }
  BOOST_TEST(compilations(kiln) == 1u);
  kiln.environment["KILN_CACHE"] = "strict";
  BOOST_TEST(kiln(command).status == 1);
}

// A bundle made with neither GPU nor driver serves a machine without compilers whole, for the host
// and for GPUs; what it lacks is refused by name.
BOOST_AUTO_TEST_CASE(offline) {
  Kiln kiln;
  const std::string bundle = kiln.directory / "kernels.bundle";
  const std::string file = kiln.directory.write("problems", problems);
  const Finished made = kiln({"prewarm", file, "--arch", "host", "--bundle", bundle});
  BOOST_TEST_REQUIRE(made.status == 0, made.out + made.err);
  BOOST_TEST(contains(made.out, "5 kernels"));
  const std::string gpu_bundle = kiln.directory / "gpu.bundle";
  const Finished gpu = kiln({"prewarm", file, "--arch", "sm_80,sm_90a", "--bundle", gpu_bundle});
  const bool has_nvrtc = gpu.status == 0;

  kiln.environment["KILN_CACHE_DIR"] = kiln.directory / "target";
  kiln.environment["KILN_CACHE"] = "strict";
  kiln.environment["KILN_BUNDLE_PATH"] = bundle + ":" + (has_nvrtc ? gpu_bundle : "");
  count_compilations(kiln);
  for (const bool compilers : {true, false}) {
    if (!compilers) take_compilers_away(kiln);
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"conv", "ic3ih6oc4kh3ph1"},
          {"pool", "ic4ih8kh2sh2ph0"},
          {"act", "--act", "relu", "2x3x4x4"},
          {"softmax", "2x8x3x3"},
          {"tensor", "--op", "add", "2x4x3x3:1x4x1x1:2x4x3x3"}}) {
      std::vector<std::string> words = command;
      words.insert(words.end(), {"--device", "host", "--check", "--json"});
      const Finished finished = kiln(words);
      BOOST_TEST_REQUIRE(finished.status == 0, finished.out + finished.err);
      BOOST_TEST(contains(finished.out, "\"kernel_source\":\"bundle\""));
    }
    const Finished refused = kiln({"conv", "--device", "host", "ic3ih9oc4kh3ph1"});
    BOOST_TEST(refused.status == 1);
    BOOST_TEST(contains(refused.out, "conv g1mb2_ic3ih9iw9_oc4oh9ow9"), refused.out);
    BOOST_TEST(contains(refused.out, "KILN_CACHE=strict"));
    const std::size_t key = refused.out.find("kernel ") + 7;
    BOOST_TEST(refused.out.substr(key, 32).find_first_not_of("0123456789abcdef") ==
               std::string::npos);
  }
  BOOST_TEST(compilations(kiln) == 0u);
  BOOST_TEST(!std::filesystem::exists(kiln.directory / "target"));  // nothing was written

  if (!has_nvrtc) {
    BOOST_TEST_MESSAGE("for GPUs skipped: " << gpu.out);
    return;
  }
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Finished ptx = kiln({"inspect", "ic3ih6oc4kh3ph1", "--emit", "ptx", "--arch", arch});
    BOOST_TEST_REQUIRE(ptx.status == 0, ptx.err);
    BOOST_TEST(contains(ptx.out, std::string(".target ") + arch));
  }
  BOOST_TEST(kiln({"inspect", "ic3ih6oc4kh3ph1", "--emit", "ptx", "--arch", "sm_86"}).status == 1);
}

// A bundle from another build of the compiler: passed over, with a word about it, where the
// compiler at hand can make its own; served where nothing may be compiled.
BOOST_AUTO_TEST_CASE(a_bundle_of_another_compiler) {
  Kiln kiln;
  const std::string file = kiln.directory.write("problems", tiny + "\n"),
                    bundle = kiln.directory / "kernels.bundle";
  BOOST_REQUIRE(kiln({"prewarm", file, "--arch", "host", "--bundle", bundle}).status == 0);
  const std::string script = kiln.directory.write(
      "other-c++",
      "#!/bin/sh\n[ \"$1\" = --version ] && { echo other 1.0; exit; }\nexec c++ \"$@\"\n");
  BOOST_REQUIRE(chmod(script.c_str(), 0700) == 0);
  kiln.environment["KILN_HOST_CXX"] = script;
  kiln.environment["KILN_BUNDLE_PATH"] = bundle;
  kiln.environment["KILN_CACHE_DIR"] = kiln.directory / "another";
  kiln.environment["KILN_LOG"] = "info";
  const std::vector<std::string> command{"conv", "--device", "host", "--check", tiny};
  kiln.environment["KILN_CACHE"] = "strict";
  BOOST_TEST(contains(kiln(command).out, "  bundle "));
  kiln.environment["KILN_CACHE"] = "on";
  const Finished compiled = kiln(command);
  BOOST_TEST(contains(compiled.out, "  compiled "), compiled.out);
  BOOST_TEST(contains(compiled.err, "miss (absent; a bundle has it from another compiler build)"),
             compiled.err);
  BOOST_TEST(contains(kiln({"cache", "stat"}).out, "misses_other_producer  1\n"));
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

// An entry that no process can run is no reason to fail, unless nothing may be compiled.
BOOST_AUTO_TEST_CASE(the_first_layer_that_has_it) {
  Kiln kiln;
  const std::string one = kiln.directory / "one.bundle", two = kiln.directory / "two.bundle";
  const std::string file = kiln.directory.write("problems", tiny + "\n");
  BOOST_REQUIRE(kiln({"prewarm", file, "--arch", "host", "--bundle", one}).status == 0);
  std::filesystem::copy(one, two);
  kiln.environment["KILN_BUNDLE_PATH"] = "/nonexistent.bundle:" + one + "::" + two;
  kiln.environment["KILN_LOG"] = "info";
  const std::vector<std::string> command{"conv", "--device", "host", "--check", tiny};
  const Finished first = kiln(command);
  BOOST_TEST(contains(first.out, "  bundle "));
  BOOST_TEST(contains(first.err, "the kernel bundle /nonexistent.bundle cannot be opened"));
  BOOST_TEST(contains(first.err, "hit in bundle " + one), first.err);

  // Damaged, it is passed over for the next one, and then for the user's cache.
  for (const std::string& bundle : {one, two}) {
    std::string bytes = kiln_test::read(bundle);
    bytes[200] = static_cast<char>(bytes[200] ^ 1);
    kiln.directory.write(std::filesystem::path(bundle).filename(), bytes);
    const Finished next = kiln(command);
    BOOST_TEST(next.status == 0);
    BOOST_TEST(
        contains(next.err, bundle == one ? "hit in bundle " + two : "hit in the user's cache"),
        next.err);
  }
  const Finished verified = kiln({"bundle", "verify", one, two});
  BOOST_TEST(verified.status == 1);
  BOOST_TEST(count_of(verified.out, "wrong checksum") == 2u, verified.out);
}

BOOST_AUTO_TEST_CASE(a_log_line_that_can_be_run_again) {
  Kiln kiln;
  kiln.environment["KILN_LOG"] = "info";
  kiln.environment["KILN_LOG_FILE"] = kiln.directory / "log";
  BOOST_REQUIRE(kiln({"pool", "--dt", "f16", "--device", "host", "ic4ih8kh2sh2ph0"}).status == 0);
  BOOST_REQUIRE(kiln({"pool", "--dt", "f16", "--device", "host", "ic4ih8kh2sh2ph0"}).status == 0);
  const std::string log = kiln_test::read(kiln.directory / "log");
  BOOST_TEST(count_of(log, "kiln pool --device host --dt f16 ") == 2u, log);
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
