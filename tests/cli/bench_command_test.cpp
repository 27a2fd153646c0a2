// kiln bench: its command line, and a small run on the host device.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "run_kiln.hpp"
#include "support/text.hpp"

using kiln_test::contains;
using kiln_test::count_of;
using kiln_test::Finished;
using kiln_test::Kiln;

BOOST_AUTO_TEST_SUITE(bench_command)

BOOST_AUTO_TEST_CASE(help_names_the_flags) {
  const Finished finished = Kiln()({"bench", "--help"});
  BOOST_TEST(finished.status == 0);
  for (const char* flag : {"--suite", "--layers", "--dir", "--dt", "--layout", "--math", "--mb",
                           "--against", "--samples", "--csv", "--json", "--list"})
    BOOST_TEST(contains(finished.out, flag));
}

BOOST_AUTO_TEST_CASE(list_needs_no_gpu) {
  const Kiln kiln;
  const Finished finished = kiln({"bench", "--list"});
  BOOST_TEST_INFO(finished.out << finished.err);
  BOOST_TEST(finished.status == 0);
  // Five layers, two batch sizes, three directions.
  BOOST_TEST(count_of(finished.out, "\npaper  ") + finished.out.starts_with("paper  ") == 30);
  BOOST_TEST(contains(finished.out, "paper  L5  default  conv --dir wgrad g1mb16_ic128ih13"));
  BOOST_TEST(contains(finished.out, "memory  max pool 3x3/2 96x118x118  pool "));
  BOOST_TEST(contains(finished.out, "latency  small convolution"));

  // As many as the file has layers.
  BOOST_TEST(kiln({"bench", "--list", "--suite", "resnet50"}).lines().size() == 24u);
  BOOST_TEST(kiln({"bench", "--list", "--suite", "vgg16"}).lines().size() == 10u);
  // The mode is of f32 alone.
  const Finished few =
      kiln({"bench", "--list", "--suite", "paper", "--layers", "L2,L3", "--mb", "32", "--dir",
            "dgrad", "--dt", "f32,f64", "--math", "strict,tf32", "--layout", "nhwc"});
  BOOST_TEST_INFO(few.out << few.err);
  const auto lines = few.lines();
  BOOST_REQUIRE(lines.size() == 7u);
  BOOST_TEST(lines[0].starts_with(
      "paper  L2  strict  conv --dir dgrad --layout nhwc --math strict g1mb32_"));
  BOOST_TEST(lines[3].starts_with("paper  L3  tf32  "));
  BOOST_TEST(lines[4].starts_with("paper  L2  default  conv --dir dgrad --dt f64 "));
  BOOST_TEST(lines[6] == "6 cases");
}

BOOST_AUTO_TEST_CASE(wrong_command_lines) {
  const Kiln kiln;
  const std::string bad = kiln.directory.write("bad", "# a comment\nic3ih6oc4kh9\n");
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--suite", "alexnet"}, "alexnet"},
      {{"--dt", "f8"}, "f8"},
      {{"--math", "fast"}, "fast"},
      {{"--against", "onednn"}, "onednn"},
      {{"--samples", "0"}, "--samples"},
      {{"--mb", "-1"}, "--mb"},
      {{"--list", "--layers", "L9", "--suite", "paper"}, "no case is left"},
      {{"--list", "--batch", "/dev/null/absent"}, "/dev/null/absent"},
      {{"--list", "--batch", bad}, bad + ":2: "},
  };
  for (const auto& [arguments, expected] : cases) {
    std::vector<std::string> all{"bench"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Finished finished = kiln(all);
    BOOST_TEST_INFO(finished.out << finished.err);
    BOOST_TEST(finished.status == 2);
    BOOST_TEST(contains(finished.err, expected));
    BOOST_TEST(finished.out == "");
  }
}

BOOST_AUTO_TEST_CASE(no_gpu_is_a_sentence) {
  Kiln kiln;
  kiln.environment["CUDA_VISIBLE_DEVICES"] = "";
  const Finished finished = kiln({"bench", "--against", "cudnn,cublas"});
  BOOST_TEST(finished.status == 2);
  BOOST_TEST(finished.err.starts_with("kiln: no GPU ("));
}

BOOST_AUTO_TEST_CASE(a_run_on_the_host_device) {
  const Kiln kiln;
  const std::string layers =
      kiln.directory.write("layers", "mb2ic3ih6oc4kh3ph1n\"one\"\nmb2ic4ih6oc4kh3ph1g2n\"two\"\n");
  const std::string csv = kiln.directory / "out.csv", json = kiln.directory / "out.json";
  const Finished finished =
      kiln({"bench", "--device", "host", "--batch", layers, "--suite", "latency", "--samples", "3",
            "--warm-up", "0", "--against", "cudnn", "--csv", csv, "--json", json});
  BOOST_TEST_INFO(finished.out << finished.err);
  BOOST_TEST(finished.status == 0);
  BOOST_TEST(contains(finished.out, "cudnn: none: not on the host device"));
  BOOST_TEST(contains(finished.out, "3 of 3 cases"));
  const std::string text = kiln_test::read(csv);
  BOOST_TEST(count_of(text, "\nbatch,") == 4);  // kiln and the ceiling, twice
  BOOST_TEST(contains(text, "\nbatch,one,2,conv,fwd,f32,nchw,default,kiln,"));
  for (const char* what : {"\"plan, compiled\"", "\"plan, from memory\"",
                           "\"kernel from the disk cache, loaded\"", "call"})
    BOOST_TEST(contains(text, std::string("\nlatency,") + what));
  const auto parsed = nlohmann::json::parse(kiln_test::read(json));
  bool seen = false;
  for (const auto& row : parsed["rows"])
    if (row["layer"] == "one" && row["contestant"] == "kiln") {
      seen = true;
      BOOST_TEST(row["time_us"]["samples"] == 3);
      BOOST_TEST(row["errors"]["relative_rms"].get<double>() < 1e-6);
      BOOST_TEST(row["errors"]["relative_rms"].get<double>() > 0);
      BOOST_TEST(row["note"] == "");
    }
  BOOST_TEST(seen);
}

// Every case that comes after the limit is told of.
BOOST_AUTO_TEST_CASE(time_limit) {
  const Kiln kiln;
  const std::string layers = kiln.directory.write("layers", "mb2ic3ih6oc4kh3ph1\n");
  const Finished finished =
      kiln({"bench", "--device", "host", "--batch", layers, "--time-limit", "0.000001"});
  BOOST_TEST(finished.status == 0);
  BOOST_TEST(contains(finished.out, "0 of 1 cases"));
  BOOST_TEST(contains(finished.out, "left out at --time-limit"));
}

BOOST_AUTO_TEST_SUITE_END()
