// Every command but conv and inspect.
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "run_kiln.hpp"

using kiln_test::Finished;
using kiln_test::Kiln;

namespace {

const std::string tiny = "mb2_ic3ih6_oc4_kh3ph1_n\"tiny\"";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(commands)

BOOST_AUTO_TEST_CASE(help) {
  const Kiln kiln;
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--help"}, "prewarm"},           {{"conv", "--help"}, "--repeat"},
      {{"inspect", "--help"}, "--emit"}, {{"prewarm", "--help"}, "--arch"},
      {{"cache", "--help"}, "clear"},    {{"info", "--help"}, "Devices"},
      {{"bundle", "--help"}, "merge"},   {{"doctor", "--help"}, "PROGRAM"},
  };
  for (const auto& [arguments, expected] : cases) {
    const Finished finished = kiln(arguments);
    BOOST_TEST(finished.status == 0);
    BOOST_TEST(contains(finished.out, expected));
    BOOST_TEST(finished.err == "");
  }
  BOOST_TEST(kiln({"--version"}).out.starts_with("kiln "));
  BOOST_TEST(contains(kiln({"--version"}).out, "built with CUDA 1"));
  BOOST_TEST(contains(kiln({"--help-all"}).out, "--repeat"));
}

// Neither GPU nor compilers, nor a place for a cache.
BOOST_AUTO_TEST_CASE(info_on_a_bare_machine) {
  Kiln kiln;
  kiln.environment = {{"KILN_NVRTC", "/dev/null/libnvrtc.so"},
                      {"KILN_HOST_CXX", "/dev/null/c++"},
                      {"CUDA_VISIBLE_DEVICES", ""}};
  const Finished finished = kiln({"info"});
  BOOST_TEST_INFO(finished.out << finished.err);
  BOOST_TEST(finished.status == 0);
  BOOST_TEST(contains(finished.out, "cuda                 none: "));
  BOOST_TEST(contains(finished.out, "/dev/null/libnvrtc.so"));
  BOOST_TEST(contains(finished.out, "/dev/null/c++"));
  BOOST_TEST(contains(finished.out, "not usable"));
  for (const char* name : {"KILN_CACHE_DIR", "KILN_NVRTC", "KILN_HOST_CXX", "KILN_LOG",
                           "KILN_LOG_FILE", "KILN_CUDNN_FORWARD"}) {
    BOOST_TEST(contains(finished.out, name));
  }

  const auto facts = nlohmann::json::parse(kiln({"info", "--json"}).out);
  BOOST_TEST(contains(facts["devices"][0]["none"].get<std::string>(), "no "));
  BOOST_TEST(facts["devices"][1]["device"] == "host");
  BOOST_TEST(contains(facts["compilers"]["nvrtc"]["none"].get<std::string>(), "/dev/null/lib"));
  BOOST_TEST(!facts["cache"]["usable"].get<bool>());
  BOOST_TEST(facts["environment"]["KILN_HOST_CXX"] == "/dev/null/c++");
  BOOST_TEST(facts["environment"]["KILN_LOG"].is_null());
}

BOOST_AUTO_TEST_CASE(info_tells_of_the_cache) {
  const Kiln kiln;
  BOOST_TEST(contains(kiln({"info"}).out, "entries              0, 0 bytes"));
  BOOST_REQUIRE(kiln({"conv", "--device", "host", tiny}).status == 0);
  const Finished finished = kiln({"info"});
  BOOST_TEST(contains(finished.out, kiln.directory / "cache"));
  BOOST_TEST(contains(finished.out, "entries              1, "));

  const auto facts = nlohmann::json::parse(kiln({"info", "--json"}).out);
  BOOST_TEST(facts["cache"]["directory"] == kiln.directory / "cache");
  BOOST_TEST(facts["cache"]["entries"] == 1);
  BOOST_TEST(facts["cache"]["counted"]["compiled"] == 1);
  BOOST_TEST(!facts["compilers"]["host"]["description"].get<std::string>().empty());
}

BOOST_AUTO_TEST_CASE(prewarm_fills_the_cache) {
  const Kiln kiln;
  const std::string file =
      kiln.directory.write("problems",
                           "# two kernels, one of them twice: 18 and 54 pixels are one tile\n"
                           "mb2ic3ih3oc4kh3ph1\nmb6ic3ih3oc4kh3ph1\nic3ih6oc4kh3\n");
  const std::vector<std::string> command{"prewarm", file, "--arch", "host", "-j", "2"};
  const Finished first = kiln(command);
  BOOST_TEST_INFO(first.out << first.err);
  BOOST_TEST(first.status == 0);
  const auto lines = first.lines();
  BOOST_REQUIRE(lines.size() == 3u);
  BOOST_TEST(lines[0].starts_with("compiled       conv --arch host g1mb2"));
  BOOST_TEST(lines[2] == "2 compiled, 0 already there, 0 failed");

  const Finished second = kiln(command);
  BOOST_TEST(second.status == 0);
  BOOST_TEST(second.lines().back() == "0 compiled, 2 already there, 0 failed");

  const Finished conv = kiln({"conv", "--device", "host", "--check", "mb5ic3ih3oc4kh3ph1"});
  BOOST_TEST(conv.status == 0);
  BOOST_TEST(contains(conv.out, "  disk "));

  const Finished more = kiln(
      {"prewarm", file, "--arch", "host", "--dt", "f32,f16", "--layout", "nchw,nhwc", "-j", "2"});
  BOOST_TEST(more.lines().back() == "6 compiled, 2 already there, 0 failed");
}

BOOST_AUTO_TEST_CASE(prewarm_draws_a_bar_on_a_terminal) {
  const Kiln kiln;
  const std::string file = kiln.directory.write("problems", tiny + "\nic3ih6oc4kh3\n");
  const Finished finished = kiln.on_terminal({"prewarm", file, "--arch", "host", "-j", "1"});
  BOOST_TEST_INFO(finished.out);
  BOOST_TEST(finished.status == 0);
  BOOST_TEST(contains(finished.out, "[....................] 0/2"));
  BOOST_TEST(contains(finished.out, "[....................] 0/2  conv --arch host g1mb2_ic3"));
  BOOST_TEST(contains(finished.out, "[##########..........] 1/2"));
  BOOST_TEST(contains(finished.out, "s left"));
  BOOST_TEST(!contains(finished.out, "compiled       "));
  BOOST_TEST(contains(finished.out, "2 compiled, 0 already there, 0 failed"));
}

BOOST_AUTO_TEST_CASE(prewarm_tells_what_failed) {
  Kiln kiln;
  const std::string file = kiln.directory.write("problems", "ic3ih6oc4kq3\n" + tiny + "\n");
  const Finished typo = kiln({"prewarm", file, "--arch", "host"});
  BOOST_TEST(typo.status == 1);
  BOOST_TEST(contains(typo.out, "failed         " + file + ":1: ic3ih6oc4kq3: column 10"));
  BOOST_TEST(typo.lines().back() == "1 compiled, 0 already there, 1 failed");

  BOOST_TEST(kiln({"prewarm", file}).status == 2);  // no --arch
  BOOST_TEST(kiln({"prewarm", file, "--arch", "sm_1"}).status == 2);
  BOOST_TEST(kiln({"prewarm", kiln.directory / "absent", "--arch", "host"}).status == 2);

  kiln.environment["KILN_HOST_CXX"] = "/dev/null/c++";
  kiln.environment["KILN_CACHE_DIR"] = kiln.directory / "empty";
  const Finished compiler = kiln({"prewarm", file, "--arch", "host"});
  BOOST_TEST(compiler.status == 1);
  BOOST_TEST(compiler.lines().back() == "0 compiled, 0 already there, 2 failed");

  const std::string shared = kiln.directory / "shared";
  std::filesystem::create_directory(shared);
  BOOST_REQUIRE(chmod(shared.c_str(), 0777) == 0);
  kiln.environment["KILN_CACHE_DIR"] = shared;
  const Finished unusable = kiln({"prewarm", file, "--arch", "host"});
  BOOST_TEST(unusable.status == 1);
  BOOST_TEST(contains(unusable.err, "cache cannot be used"));
}

BOOST_AUTO_TEST_CASE(prewarm_stops_at_ctrl_c) {
  const Kiln kiln;
  std::string problems;
  for (int channels = 1; channels <= 400; ++channels) {
    problems += "ic" + std::to_string(channels) + "ih6oc4kh3\n";
  }
  const std::string file = kiln.directory.write("problems", problems);
  const Finished finished = kiln.interrupted({"prewarm", file, "--arch", "host", "-j", "2"});
  BOOST_TEST_INFO(finished.out << finished.err);
  BOOST_TEST(finished.status == 130);
  BOOST_TEST(contains(finished.err, "interrupted"));
  const auto lines = finished.lines();
  BOOST_TEST(lines.size() < 100u);
  BOOST_TEST(lines.back() ==
             std::to_string(lines.size() - 1) + " compiled, 0 already there, 0 failed");
  BOOST_TEST(contains(kiln({"cache", "stat"}).out,
                      "entries    " + std::to_string(lines.size() - 1) + "\n"));
}

BOOST_AUTO_TEST_CASE(cache_commands) {
  const Kiln kiln;
  BOOST_TEST(kiln({"cache", "path"}).out == (kiln.directory / "cache") + "\n");
  BOOST_TEST(kiln({"cache", "ls"}).out == "");
  BOOST_TEST(contains(kiln({"cache", "stat"}).out, "entries    0\n"));
  BOOST_REQUIRE(kiln({"conv", "--device", "host", tiny, "ic3ih6oc4kh3"}).status == 0);

  const auto entries = kiln({"cache", "ls"}).lines();
  BOOST_REQUIRE(entries.size() == 2u);
  BOOST_TEST(contains(entries[0], "  host  "));
  BOOST_TEST(contains(kiln({"cache", "stat"}).out, "entries    2\n"));
  BOOST_TEST(kiln({"cache", "clear"}).out == "removed 2 entries\n");
  BOOST_TEST(kiln({"cache", "ls"}).out == "");
  // Whatever compiles a kernel says what for.
  BOOST_TEST(kiln({"inspect", "--arch", "host", "--emit", "cubin", tiny}).status == 0);
  BOOST_TEST(contains(kiln({"cache", "ls"}).out, "  conv --arch host g1mb2_ic3ih6iw6_oc4"));
  BOOST_TEST(kiln({"cache"}).status == 2);
  BOOST_TEST(kiln({"cache", "shrink"}).status == 2);
}

BOOST_AUTO_TEST_CASE(without_a_place_for_a_cache) {
  Kiln kiln;
  kiln.environment.erase("KILN_CACHE_DIR");
  for (const char* command : {"path", "ls", "stat", "clear"}) {
    const Finished finished = kiln({"cache", command});
    BOOST_TEST_INFO(command << ": " << finished.err);
    BOOST_TEST(finished.status == 1);
    BOOST_TEST(contains(finished.err, "cache"));
  }
}

BOOST_AUTO_TEST_SUITE_END()
