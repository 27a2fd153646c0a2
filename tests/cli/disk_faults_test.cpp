// The whole program on a disk that fails at each call that it makes in the cache's folder, while it
// publishes a kernel, finds one, or replaces a damaged one. The convolution's result is right, and
// so is the next run's.
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <filesystem>
#include <functional>

#include "run_kiln.hpp"
#include "support/counts.hpp"

using kiln_test::count;
using kiln_test::Finished;

namespace {

namespace fs = std::filesystem;

constexpr int errors[] = {ENOSPC, EIO, EACCES, EROFS, ESTALE, EBUSY, ENOLCK, EMFILE, EINTR};

struct Fixture {
  kiln_test::Kiln kiln;
  std::string cache = kiln.directory / "cache", model = kiln.directory / "model";

  // The real compiler, asked once for each text: thousands of runs want the same one or two.
  Fixture() {
    const std::string folder = kiln.directory / "compiled";
    fs::create_directory(folder);
    const std::string compiler = kiln.directory.write(
        "cxx",
        "#!/bin/sh\nreal=" KILN_TEST_CXX "\ncase $1 in -*version | -dump*)\n  name=" + folder +
            "/answer$1\n  [ -f $name ] || $real \"$@\" >$name.$$ && mv $name.$$ $name "
            "2>/dev/null\n  exec cat $name;;\nesac\n"
            "name=" +
            folder +
            "/$(cksum <kernel.cpp | tr ' ' '-').so\n"
            "[ -f $name ] || { $real \"$@\" && cp kernel.so $name; }\n"
            "cp $name kernel.so\n");
    BOOST_REQUIRE(chmod(compiler.c_str(), 0700) == 0);
    kiln.environment["KILN_HOST_CXX"] = compiler;
    kiln.environment["KILN_FAULT_FOLDER"] = cache;
    kiln.environment["KILN_LOG"] = "off";
    kiln.environment["LD_PRELOAD"] = KILN_FAILING_CALLS;
  }

  Finished convolve(const std::map<std::string, std::string>& fault = {}) {
    const auto variables = kiln.environment;
    for (const auto& [name, value] : fault) kiln.environment["KILN_FAULT_" + name] = value;
    Finished finished = kiln({"conv", "--device", "host", "--check", "mb2_ic3ih6_oc4_kh3ph1"});
    kiln.environment = variables;
    return finished;
  }

  // Sets the cache up before each run: a copy of `model`, or absent.
  void prepare() {
    fs::remove_all(cache);
    if (fs::exists(model)) fs::copy(model, cache, fs::copy_options::recursive);
  }

  void fill_model(const std::function<void(const fs::path&)>& change) {
    BOOST_REQUIRE(convolve().status == 0);
    fs::copy(cache, model, fs::copy_options::recursive);
    for (const auto& file : fs::recursive_directory_iterator(model))
      if (file.is_regular_file()) change(file);
  }

  std::vector<std::string> calls() {
    prepare();
    const std::string log = kiln.directory / "log";
    fs::remove(log);
    BOOST_REQUIRE(convolve({{"LOG", log}}).status == 0);
    return Finished{0, kiln_test::read(log), ""}.lines();
  }

  int faults = 0, compiled = 0;

  void check(std::map<std::string, std::string> fault, int at, bool is_killed = false) {
    fault["AT"] = std::to_string(at);
    prepare();
    const Finished first = convolve(fault);
    ++faults;
    compiled += first.out.find("  compiled ") != std::string::npos;
    if (is_killed)
      BOOST_TEST(first.status == -1);
    else
      BOOST_TEST((first.status == 0 && first.out.starts_with("PASSED")), first.out << first.err);
    const Finished next = convolve();
    BOOST_TEST((next.status == 0 && next.out.starts_with("PASSED")), next.out << next.err);
    int entries = 0, others = 0;
    for (const auto& file : fs::recursive_directory_iterator(cache)) {
      const std::string name = file.path().filename();
      if (file.is_regular_file() && name != "size" && name != "uses")
        ++(file.path().extension() == ".kiln" ? entries : others);
    }
    BOOST_TEST(entries == 1);
    BOOST_TEST(others <= 2);  // an unfinished entry and its lock, reclaimed when their hour is over
  }

  // By default, errors take turns from call to call. A full run makes every call fail with every
  // error, also together with all later calls.
  void walk() {
    const std::vector<std::string> made = calls();
    BOOST_TEST(made.size() >= 3u);
    for (int at = 0; at < static_cast<int>(made.size()); ++at) {
      BOOST_TEST_CONTEXT("call " << at << ", " << made[static_cast<std::size_t>(at)]) {
        for (int i = 0; i < count(1, std::ssize(errors)); ++i) {
          const std::string error = std::to_string(errors[(at + i) % std::ssize(errors)]);
          check({{"ERROR", error}}, at);
          if (kiln_test::full_counts() && error != std::to_string(EINTR))
            check({{"ERROR", error}, {"ONWARDS", "1"}}, at);
        }
        if (made[static_cast<std::size_t>(at)] == "read" ||
            made[static_cast<std::size_t>(at)] == "write")
          check({{"BYTES", "1"}}, at);
        if (kiln_test::full_counts()) check({{"KILL", "1"}}, at, true);
      }
    }
    check({{"BYTES", "1000"}, {"ONWARDS", "1"}}, 0);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(disk_faults, Fixture)

BOOST_AUTO_TEST_CASE(while_a_kernel_is_published) {
  walk();
  kiln_test::report(std::to_string(faults) + " convolutions with faults in publishing");
}

BOOST_AUTO_TEST_CASE(while_a_kernel_is_found) {
  fill_model([](const fs::path&) {});
  walk();
  BOOST_TEST(compiled > 0);  // the faults had an effect
  kiln_test::report(std::to_string(faults) + " convolutions with faults in a hit");
}

BOOST_AUTO_TEST_CASE(while_a_damaged_kernel_is_replaced) {
  fill_model([](const fs::path& file) { fs::resize_file(file, fs::file_size(file) - 1); });
  walk();
  kiln_test::report(std::to_string(faults) + " convolutions with faults in a replacement");
}

BOOST_AUTO_TEST_SUITE_END()
