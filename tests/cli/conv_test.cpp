#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "run_kiln.hpp"

using kiln_test::Finished;
using kiln_test::Kiln;

namespace {

const std::string tiny = "mb2_ic3ih6_oc4_kh3ph1_n\"tiny\"";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// One sentence on standard error, nothing on standard output, exit status 2.
void check_usage_error(const Finished& finished, const std::string& part) {
  BOOST_TEST_INFO("standard error: " << finished.err);
  BOOST_TEST(finished.status == 2);
  BOOST_TEST(finished.out == "");
  BOOST_TEST(finished.err.starts_with("kiln: "));
  BOOST_TEST(std::count(finished.err.begin(), finished.err.end(), '\n') == 1);
  BOOST_TEST(contains(finished.err, part));
}

std::vector<nlohmann::json> objects(const Finished& finished) {
  std::vector<nlohmann::json> result;
  for (const std::string& line : finished.lines()) result.push_back(nlohmann::json::parse(line));
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(conv)

BOOST_AUTO_TEST_CASE(passes_and_says_so) {
  const Kiln kiln;
  const Finished finished = kiln({"conv", "--device", "host", "--check", tiny});
  BOOST_TEST_INFO(finished.out << finished.err);
  BOOST_TEST(finished.status == 0);
  const auto lines = finished.lines();
  BOOST_REQUIRE(lines.size() == 2u);
  BOOST_TEST(lines[0].starts_with("PASSED   " + tiny));
  BOOST_TEST(contains(lines[0], "  compiled "));
  BOOST_TEST(contains(lines[0], " ms  exec "));
  BOOST_TEST(contains(lines[0], "FLOP/s  rel "));
  BOOST_TEST(lines[1] == "1 passed, 0 failed, 0 refused");
}

BOOST_AUTO_TEST_CASE(every_type_layout_and_mode) {
  const Kiln kiln;
  for (const char* type : {"f32", "f64", "f16", "bf16"}) {
    const Finished finished =
        kiln({"conv", "--device", "host", "--check", "--dt", type, "--layout", "nhwc", "--mode",
              "conv", "--alpha", "-1.5", "--beta", "0.75", "--repeat", "2", tiny});
    BOOST_TEST_INFO(finished.out << finished.err);
    BOOST_TEST(finished.status == 0);
  }
}

BOOST_AUTO_TEST_CASE(without_a_gpu_the_host_device_is_named) {
  const Kiln kiln;
  check_usage_error(kiln({"conv", tiny}), "use --device host");
  check_usage_error(kiln({"conv", "--device", "cuda:3", tiny}), "use --device host");
}

BOOST_AUTO_TEST_CASE(usage_errors) {
  const Kiln kiln;
  check_usage_error(kiln({}), "no command; expected conv");
  check_usage_error(kiln({"frobnicate"}), "frobnicate");
  check_usage_error(kiln({"conv"}), "expected PROBLEM... or --batch FILE");
  check_usage_error(kiln({"conv", "--dt", "f8", tiny}), "f8");
  check_usage_error(kiln({"conv", "--dt", "f16:f16:f8", tiny}), "f8 not in {f32,f64,f16,bf16}");
  check_usage_error(kiln({"tensor", "--dt", "f31", "1x2"}), "f31");
  check_usage_error(kiln({"act", "--layout", "nchw:chwn", "1x2x3"}), "chwn");
  check_usage_error(kiln({"conv", "--layout", "chwn", tiny}), "chwn");
  check_usage_error(kiln({"conv", "--mode", "corr", tiny}), "corr");
  check_usage_error(kiln({"conv", "--dir", "bwd", tiny}), "bwd");
  check_usage_error(kiln({"conv", "--repeat", "0", tiny}), "--repeat");
  check_usage_error(kiln({"conv", "--alpha", "much", tiny}), "much");
  check_usage_error(kiln({"conv", "--device", "tpu", tiny}), "expected cuda, cuda:N or host");
  check_usage_error(kiln({"conv", "--device", "host", "--engine", "magic", tiny}), "direct");
  check_usage_error(kiln({"conv", "--device", "host", "--batch", kiln.directory / "absent"}),
                    "No such file");
}

BOOST_AUTO_TEST_CASE(problems_that_are_wrong_are_refused) {
  const Kiln kiln;
  const std::pair<const char*, const char*> cases[] = {
      {"ic3ih8oc4kq3", "column 10: \"kq\" begins no entry"},
      {"ic3ih8oc4kh9", "the filter spans 9 in height"},
      {"g2ic3ih8oc4kh3", "expected a multiple of the 2 groups"},
      {"mb1000000000000ic1000000000000ih1000000000000oc4kh3", "x: dims"},
  };
  std::vector<std::string> arguments{"conv", "--device", "host", "--check"};
  for (const auto& [line, reason] : cases) arguments.push_back(line);
  arguments.push_back(tiny);
  const Finished finished = kiln(arguments);
  BOOST_TEST_INFO(finished.out << finished.err);
  BOOST_TEST(finished.status == 1);
  const auto lines = finished.lines();
  BOOST_REQUIRE(lines.size() == 6u);
  for (std::size_t i = 0; i < 4; ++i) {
    BOOST_TEST(lines[i].starts_with(std::string("REFUSED  ") + cases[i].first + ": "));
    BOOST_TEST(contains(lines[i], cases[i].second));
  }
  BOOST_TEST(lines[4].starts_with("PASSED   "));
  BOOST_TEST(lines[5] == "1 passed, 0 failed, 4 refused");
}

BOOST_AUTO_TEST_CASE(batch_files) {
  const Kiln kiln;
  const std::string path = kiln.directory.write(
      "problems", "# comment\n--dir=FWD_B\n\n" + tiny + "\n   ic3ih6oc4kx3\n" + tiny);
  const Finished finished = kiln({"conv", "--device", "host", "--batch", path});
  BOOST_TEST(finished.status == 1);
  const auto lines = finished.lines();
  BOOST_REQUIRE(lines.size() == 4u);
  BOOST_TEST(lines[0].starts_with("RAN      "));  // compared with nothing
  BOOST_TEST(lines[1].starts_with("REFUSED  " + path + ":5: "));
  BOOST_TEST(contains(lines[1], "column 13: \"kx\""));
  BOOST_TEST(contains(lines[2], "  memory "));
  BOOST_TEST(lines[3] == "2 ran (not compared; --check does), 0 failed, 1 refused");
}

BOOST_AUTO_TEST_CASE(what_is_not_compared_has_not_passed) {
  const Kiln kiln;
  const Finished finished = kiln({"conv", "--device", "host", "--json", tiny});
  BOOST_TEST(finished.status == 0);
  BOOST_TEST(finished.err == "1 ran (not compared; --check does), 0 failed, 0 refused\n");
  const auto results = objects(finished);
  BOOST_REQUIRE(results.size() == 1u);
  BOOST_TEST(results[0]["status"] == "RAN");
}

BOOST_AUTO_TEST_CASE(values_of_variables_in_any_case) {
  Kiln kiln;
  kiln.environment["KILN_LOG"] = "INFO";
  const Finished told = kiln({"conv", "--device", "host", tiny});
  BOOST_TEST(contains(told.err, "[info] kiln conv --arch host"));
  kiln.environment["KILN_LOG"] = "1";
  kiln.environment["KILN_LINEINFO"] = "yes";
  kiln.environment["KILN_CACHE"] = "maybe";
  const Finished warned = kiln({"conv", "--device", "host", tiny});
  BOOST_TEST(warned.status == 0);
  for (const char* sentence :
       {"KILN_LOG is 1; expected off, error, warn, info, debug or trace. It is warn",
        "KILN_LINEINFO is yes; expected 0 or 1. It is 0",
        "KILN_CACHE is maybe; expected on, readonly, strict or off. It is on"})
    BOOST_TEST(contains(warned.err, sentence), warned.err);
}

BOOST_AUTO_TEST_CASE(names_that_are_nearly_right) {
  const Kiln kiln;
  const std::pair<std::vector<std::string>, const char*> rows[] = {
      {{"conv", "--layuot", "nhwc", tiny},
       "kiln: --layuot is no option of kiln conv; did you mean --layout? See kiln conv --help\n"},
      {{"convolution", tiny},
       "kiln: convolution is no command of kiln; did you mean conv? See kiln --help\n"},
      {{"cache", "prun"},
       "kiln: prun is no command of kiln cache; did you mean prune? See kiln cache --help\n"},
  };
  for (const auto& [words, sentence] : rows) {
    const Finished finished = kiln(words);
    BOOST_TEST(finished.status == 2);
    BOOST_TEST(finished.err == sentence);
  }
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"help"}, {"help", "conv"}, {"conv", "--help"}}) {
    const Finished finished = kiln(words);
    BOOST_TEST(finished.status == 0);
    BOOST_TEST(contains(finished.out, words.size() == 1 ? "prewarm" : "--residual"));
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_text_is_refused) {
  const Kiln kiln;
  const std::string bundle = kiln.directory.write("b", std::string("KILNBNDL\0\1", 10));
  const std::string binary = kiln.directory.write("c", "mb1ic3\033[2J");
  BOOST_TEST(contains(kiln({"prewarm", bundle}).err, bundle + " is a bundle of kernels"));
  const Finished finished = kiln({"conv", "--device", "host", "--batch", binary});
  BOOST_TEST(finished.status == 2);
  BOOST_TEST(contains(finished.err, binary + " has byte 27 at offset 6; expected text"));
}

BOOST_AUTO_TEST_CASE(json) {
  const Kiln kiln;
  const Finished finished = kiln({"conv", "--device", "host", "--check", "--json", "--repeat", "3",
                                  "--seed", "7", tiny, "ic3\"\xff"});
  BOOST_TEST(finished.status == 1);
  BOOST_TEST(finished.err == "1 passed, 0 failed, 1 refused\n");
  const auto results = objects(finished);
  BOOST_REQUIRE(results.size() == 2u);
  const nlohmann::json& passed = results[0];
  BOOST_TEST(passed["status"] == "PASSED");
  BOOST_TEST(passed["problem"] ==
             "--arch host g1mb2_ic3ih6iw6_oc4oh6ow6_kh3kw3_sh1sw1_ph1pw1_dh0dw0");
  BOOST_TEST(passed["name"] == "tiny");
  BOOST_TEST(passed["kernel_source"] == "compiled");
  BOOST_TEST(passed["architecture"] == "host");
  BOOST_TEST(!passed["engine"].get<std::string>().empty());
  BOOST_TEST(!passed["tile"].get<std::string>().empty());
  BOOST_TEST(passed["compile_ms"].get<double>() > 0);
  BOOST_TEST(passed["plan_ms"].get<double>() >= passed["compile_ms"].get<double>());
  BOOST_TEST(passed["load_ms"].get<double>() >= 0);
  BOOST_TEST(passed["workspace_bytes"] == 0);
  BOOST_TEST(passed["registers"] == 0);
  BOOST_TEST(passed["local_memory_bytes"] == 0);
  BOOST_TEST(passed["seed"] == 7);
  BOOST_TEST(passed["outputs"] == 288);
  BOOST_TEST(passed["checked"] == 288);
  BOOST_TEST(passed["tflops"].get<double>() > 0);
  const nlohmann::json& time = passed["time_ms"];
  BOOST_TEST(time["count"] == 3);
  BOOST_TEST(time["min"].get<double>() <= time["median"].get<double>());
  BOOST_TEST(time["median"].get<double>() <= time["max"].get<double>());
  const nlohmann::json& errors = passed["errors"];
  BOOST_TEST(errors["relative_rms"].get<double>() > 0);
  BOOST_TEST(errors["relative_rms"].get<double>() < 1e-6);
  BOOST_TEST(errors["max_bound_share"].get<double>() <= 1);
  BOOST_TEST(results[1]["status"] == "REFUSED");
  BOOST_TEST(contains(results[1]["reason"].get<std::string>(), "column 4"));
}

BOOST_AUTO_TEST_CASE(json_has_the_bytes_of_workspace) {
  const Kiln kiln;
  const Finished finished =
      kiln({"conv", "--device", "host", "--check", "--json", "--engine", "channels_last_copies",
            "--workspace", "65536", "mb1ic8ih3oc8kh1"});
  BOOST_TEST_REQUIRE(finished.status == 0, finished.out);
  const std::int64_t bytes = objects(finished).at(0)["workspace_bytes"].get<std::int64_t>();
  const std::int64_t copy_of_x = 8 * 3 * 3 * sizeof(float);
  BOOST_TEST(bytes >= copy_of_x);
  BOOST_TEST(bytes <= 65536);
}

BOOST_AUTO_TEST_CASE(strides_of_the_callers_own) {
  const Kiln kiln;
  // x: a window of rows of 10 in images of 8 rows; w broadcast over its output channels; y: NHWC
  // with room for 2 more channels.
  const Finished window =
      kiln({"conv", "--device", "host", "--check", "--json", "--x-strides", "240:80:10:1",
            "--w-strides", "0:9:3:1", "--y-strides", "216:1:36:6", tiny});
  BOOST_TEST_INFO(window.out << window.err);
  BOOST_REQUIRE(window.status == 0);
  const std::string line = objects(window)[0]["problem"];
  BOOST_TEST(contains(line, "--x-strides 240:80:10:1 --w-strides 0:9:3:1"));

  const std::pair<std::vector<std::string>, const char*> wrong[] = {
      {{"--x-strides", "80:10:1"}, "expected 4 whole numbers"},
      {{"--x-strides", "240:80:10:1:1"}, "expected 4 whole numbers"},
      {{"--x-strides", "240:80:x:1"}, "no number at character 8"},
      {{"--x-strides", "240:-80:10:1"}, "strides[1] is -80"},
      {{"--y-strides", "144:36:3:1"}, "no two elements"},
  };
  for (const auto& [options, reason] : wrong) {
    std::vector<std::string> arguments{"conv", "--device", "host", tiny};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Finished finished = kiln(arguments);
    BOOST_TEST_INFO(finished.out << finished.err);
    BOOST_TEST(finished.status == 1);
    BOOST_TEST(finished.out.starts_with("REFUSED"));
    BOOST_TEST(contains(finished.out, reason));
  }
}

BOOST_AUTO_TEST_CASE(kernels_come_from_the_disk_the_second_time) {
  const Kiln kiln;
  // So few pixels are one tile, whatever the batch and the number of cores.
  const std::string image = "ic3ih3_oc4_kh3ph1";
  const auto origin = [&](std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"conv", "--device", "host", "--json", "mb2_" + image};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return objects(kiln(arguments))[0]["kernel_source"].get<std::string>();
  };
  BOOST_TEST(origin({"--no-cache"}) == "compiled");
  BOOST_TEST(origin() == "compiled");  // --no-cache left nothing
  BOOST_TEST(origin() == "disk");
  BOOST_TEST(origin({"--no-cache"}) == "compiled");
  // Another batch is no other kernel.
  BOOST_TEST(objects(kiln({"conv", "--device", "host", "--json",
                           "mb5_" + image}))[0]["kernel_source"] == "disk");
}

BOOST_AUTO_TEST_CASE(an_engine_may_be_named) {
  const Kiln kiln;
  const Finished finished =
      kiln({"conv", "--device", "host", "--check", "--json", "--engine", "direct", tiny});
  BOOST_TEST(finished.status == 0);
  BOOST_TEST(objects(finished)[0]["engine"] == "direct");
}

BOOST_AUTO_TEST_CASE(without_a_compiler_problems_are_refused) {
  Kiln kiln;
  kiln.environment["KILN_HOST_CXX"] = "/dev/null/c++";
  const Finished finished = kiln({"conv", "--device", "host", tiny});
  BOOST_TEST(finished.status == 1);
  BOOST_TEST(finished.out.starts_with("REFUSED"));
  BOOST_TEST(contains(finished.out, "/dev/null/c++"));
}

BOOST_AUTO_TEST_CASE(an_unusable_cache_costs_one_warning) {
  Kiln kiln;
  const std::string shared = kiln.directory / "shared";
  std::filesystem::create_directory(shared);
  BOOST_REQUIRE(chmod(shared.c_str(), 0777) == 0);
  kiln.environment["KILN_CACHE_DIR"] = shared;
  const Finished finished = kiln({"conv", "--device", "host", tiny, tiny + "2"});
  BOOST_TEST(finished.status == 0);
  BOOST_TEST(std::count(finished.err.begin(), finished.err.end(), '\n') == 1);
  BOOST_TEST(contains(finished.err, shared));
}

BOOST_AUTO_TEST_SUITE_END()
