// The commands of every operation: conv in all directions, pool, act, softmax, norm, tensor; and
// inspect and prewarm of them.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "run_kiln.hpp"

using kiln_test::Finished;
using kiln_test::Kiln;

namespace {

using Words = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Words host(const std::string& command, const Words& more) {
  Words words{command, "--device", "host", "--check"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct Row {
  std::string command;
  Words words;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(operations)

BOOST_AUTO_TEST_CASE(every_command_passes_and_says_so) {
  const Kiln kiln;
  const Row rows[] = {
      {"conv", {"--dir", "dgrad", "--beta", "1", "mb2_ic3ih6_oc4_kh3sh2ph1"}},
      {"conv", {"--dir", "wgrad", "--dt", "f16", "--layout", "nhwc", "mb2_ic3ih6_oc4_kh3"}},
      {"conv", {"--dir", "bgrad", "--alpha", "-2", "mb2_ic3ih6_oc4_kh3"}},
      {"conv",
       {"--bias", "--residual", "--act", "clipped_relu", "--coef", "0.5", "--beta", "1",
        "mb2_ic3ih6_oc4_kh3"}},
      {"pool", {"--mode", "avg_exclude", "--dt", "bf16", "mb2ic3_ih7_kh3sh2ph1"}},
      {"pool", {"--dir", "bwd", "--nan", "ignore", "--beta", "0.5", "mb2ic3_id7_kd3sd2pd1"}},
      {"act", {"--act", "hard_swish", "2x3x5x7"}},
      {"act", {"--dir", "bwd", "--act", "leaky_relu", "--coef", "0.1", "--dt", "f64", "2x3x5"}},
      {"softmax", {"--algorithm", "fast", "2x3x5x7x2"}},
      {"softmax", {"--dir", "bwd", "--over", "image", "--layout", "nhwc", "2x3x5x7"}},
      {"norm", {"--act", "relu", "--residual", "--alpha2", "0.25", "2x3x5x7"}},
      {"tensor", {"--dt", "f32:f16", "--layout", "nchw:nhwc", "2x3x5x7"}},
      {"tensor", {"--op", "fill", "--alpha", "2.5", "2x3x5x7"}},
      {"tensor", {"--op", "add", "--alpha2", "-1", "2x3x5x7:1x3x1x1:2x3x5x7"}},
      {"tensor", {"--op", "reduce_norm2", "2x3x5x7:1x3x1x1"}},
  };
  for (const Row& row : rows) {
    const Finished finished = kiln(host(row.command, row.words));
    BOOST_TEST_CONTEXT(row.command << ": " << finished.out << finished.err) {
      BOOST_TEST(finished.status == 0);
      const auto lines = finished.lines();
      BOOST_REQUIRE(lines.size() == 2u);
      BOOST_TEST(lines[0].starts_with("PASSED   " + row.words.back() + "  "));
      BOOST_TEST(contains(lines[0], "  compiled "));
      const bool has_flops = row.command == "conv" && row.words[1] != "bgrad";
      BOOST_TEST(contains(lines[0], has_flops ? "FLOP/s  rel " : " GB/s  rel "));
      BOOST_TEST(lines[1] == "1 passed, 0 failed, 0 refused");
    }
  }
}

BOOST_AUTO_TEST_CASE(help) {
  const Kiln kiln;
  const std::pair<Words, const char*> cases[] = {{{"conv", "--help"}, "dgrad"},
                                                 {{"pool", "--help"}, "avg_exclude"},
                                                 {{"act", "--help"}, "hard_swish"},
                                                 {{"softmax", "--help"}, "accurate"},
                                                 {{"tensor", "--help"}, "reduce_norm2"},
                                                 {{"inspect", "pool", "--help"}, "avg_include"},
                                                 {{"prewarm", "--help"}, "pool --dir bwd"},
                                                 {{"tensor", "--help"}, "f32:f16"}};
  for (const auto& [arguments, expected] : cases) {
    const Finished finished = kiln(arguments);
    BOOST_TEST(finished.status == 0);
    BOOST_TEST(contains(finished.out, expected), arguments[0]);
    BOOST_TEST(finished.err == "");
  }
}

BOOST_AUTO_TEST_CASE(wrong_flags_are_usage_errors) {
  const Kiln kiln;
  const std::pair<Words, const char*> cases[] = {
      {{"pool", "--mode", "median", "mb1ic1_ih4_kh2"}, "median"},
      {{"pool", "--dir", "dgrad", "mb1ic1_ih4_kh2"}, "dgrad"},
      {{"pool", "--nan", "keep", "mb1ic1_ih4_kh2"}, "keep"},
      {{"act", "--dir", "both", "1x1x1"}, "both"},
      {{"act", "--coef", "much", "1x1x1"}, "much"},
      {{"pool", "--dt", "f32:f16", "mb1ic1_ih4_kh2"}, "f32:f16"},
      {{"act", "--dt", "f32:f16", "1x1x1"}, "f32:f16"},
      {{"softmax", "--dt", "f32:f16", "1x1x1"}, "f32:f16"},
      {{"softmax", "--algorithm", "exact", "1x1x1"}, "exact"},
      {{"softmax", "--over", "space", "1x1x1"}, "space"},
      {{"tensor", "--op", "divide", "1x1x1"}, "divide"},
      {{"conv", "--dir", "backward", "ic1ih4oc1kh3"}, "backward"},
      {{"pool"}, "expected PROBLEM... or --batch FILE"},
      {{"act", "--bias", "1x1x1"}, "--bias"},
      {{"softmax", "--alpha2", "1", "1x1x1"}, "--alpha2"},
  };
  for (const auto& [arguments, part] : cases) {
    const Finished finished = kiln(arguments);
    BOOST_TEST_INFO("standard error: " << finished.err);
    BOOST_TEST(finished.status == 2);
    BOOST_TEST(finished.out == "");
    BOOST_TEST(contains(finished.err, part));
  }
}

// One default of --coef for every command, and what is said of types is so.
BOOST_AUTO_TEST_CASE(help_says_what_is_taken) {
  const Kiln kiln;
  for (const char* command : {"conv", "act"}) {
    std::istringstream words(kiln({command, "--help"}).out);
    std::string help;
    for (std::string word; words >> word;) help += word + " ";
    BOOST_TEST(contains(help,
                        "Ceiling of clipped_relu (6 if left out), slope of leaky_relu (0.01), "
                        "alpha of elu (1)"),
               help);
  }
  for (const char* command : {"conv", "pool", "act", "softmax"})
    BOOST_TEST(!contains(kiln({command, "--help"}).out, "f32:f16"), command);
  const std::pair<Words, const char*> lines[] = {
      {{"act", "--act", "leaky_relu", "3x4"}, "act --arch h200 --act leaky_relu --coef 0.01 3x4"},
      {{"conv", "--act", "leaky_relu", "mb1_ic1iw4_oc1_kw1"},
       "--act leaky_relu --coef 0.01 g1mb1"}};
  for (const auto& [words, line] : lines) {
    Words inspect{"inspect", words[0], "--emit", "spec", "--arch", "sm_90a"};
    inspect.insert(inspect.end(), words.begin() + 1, words.end());
    BOOST_TEST(contains(kiln(inspect).out, line), kiln(inspect).out);
  }
}

BOOST_AUTO_TEST_CASE(problems_that_are_wrong_are_refused_in_a_sentence) {
  const Kiln kiln;
  struct Wrong {
    std::string command;
    Words words;
    const char* reason;
  };
  const Wrong rows[] = {
      {"pool", {"mb1ic1oc2_ih4_kh2"}, "oc is given; pooling has no groups"},
      {"pool", {"g2mb1ic2_ih4_kh2"}, "g is given; pooling has no groups"},
      {"pool", {"mb1_ih4_kh2"}, "no input channels; expected an entry ic"},
      {"pool", {"mb1ic1_ih4_kh9"}, "the filter spans 9 in height"},
      {"pool",
       {"mb1ic1_ih4iw4_kh2kw2ph3000000000pw0"},
       "padBefore[0] is 3000000000; expected -2147483647"},
      {"pool", {"--overhang", "1", "mb1ic1_ih4_kh2"}, "--overhang is 1 (only 1 at character 2)"},
      {"pool",
       {"--layout", "nchw:nhwc:nchw", "mb1ic1_ih4_kh2"},
       "--layout is nchw:nhwc:nchw; expected one value, or 2"},
      {"tensor", {"--op", "add", "--dt", "f32:f16:f16", "1x2"}, "aDesc has data type f32"},
      {"act", {"--act", "elu", "--coef", "-1", "1x2x3"}, "coef is -1; expected a finite value"},
      {"act", {"1x"}, "column 3"},
      {"act", {"1x2x3x4x5x6x7x8x9"}, "expected at most 8 sizes"},
      {"act", {"1x2x-3"}, "column 5"},
      {"act", {"1x0x3"}, "dims[1] is 0; expected at least 1"},
      {"act", {"1x2x3:1x2x4"}, "xDesc has sizes 1x2x3; expected 1x2x4, as yDesc has"},
      {"act", {"1x2x3:1x2x3:1x2x3"}, "expected at most 2 shapes"},
      {"softmax", {"1x2x3y"}, "column 6: there is \"y\""},
      {"softmax", {"1x2x3:1x2x3x4"}, "the shape has 4 sizes; expected 3"},
      {"softmax", {"--x-strides", "1:2", "1x2x3"}, "expected 3 whole numbers"},
      {"softmax", {"--y-strides", "0:0:0", "1x2x3"}, "yDesc: strides are 0:0:0"},
      {"tensor",
       {"--op", "add", "1x2x3:1x2x3"},
       "the line has 2 shapes; expected 1, or 3: a, b, c"},
      {"tensor", {"--op", "add", "1x2x3:1x4x3:1x2x3"}, "bDesc: dims[1] is 4; expected 1 or 2"},
      {"tensor", {"--op", "copy", "1x4x3:1x2x3"}, "xDesc: dims[1] is 4; expected 1 or 2"},
      {"tensor", {"--op", "reduce_mean", "0x2x3:1x2x3"}, "dims[0] is 0; expected at least 1"},
      {"tensor", {"--op", "reduce_sum", "2x2x3:2x4x3"}, "cDesc: dims[1] is 4; expected 1 or 2"},
      {"conv",
       {"--dir", "wgrad", "--bias", "ic1ih4oc1kh3"},
       "--dir is wgrad; expected fwd or dgrad with --bias"},
      {"conv",
       {"--dir", "bgrad", "--act", "relu", "ic1ih4oc1kh3"},
       "--dir is bgrad; expected fwd or dgrad with --bias"},
      {"conv", {"--dir", "bgrad", "--residual", "ic1ih4oc1kh3"}, "--dir is bgrad; expected fwd"},
      {"tensor", {"--op", "fill", "1x2x3:1x2x3"}, "expected at most 1 shape"},
      {"conv",
       {"--dir", "wgrad", "--w-strides", "0:3:3:1", "ic1ih4oc2kh3"},
       "dwDesc: strides are 0:3:3:1"},
  };
  for (const Wrong& row : rows) {
    const Finished finished = kiln(host(row.command, row.words));
    BOOST_TEST_CONTEXT(row.command << " " << row.words.back() << ": " << finished.out
                                   << finished.err) {
      BOOST_TEST(finished.status == 1);
      const auto lines = finished.lines();
      BOOST_REQUIRE(lines.size() == 2u);
      BOOST_TEST(lines[0].starts_with("REFUSED  " + row.words.back() + ": "));
      BOOST_TEST(contains(lines[0], row.reason));
      BOOST_TEST(lines[1] == "0 passed, 0 failed, 1 refused");
    }
  }
}

// Lines of a batch may begin with flags of their own, which override those of the command.
BOOST_AUTO_TEST_CASE(flags_of_a_batch_line) {
  const Kiln kiln;
  const std::string path =
      kiln.directory.write("problems",
                           "# pooling\n"
                           "mb2ic3_ih7_kh3sh2ph1_n\"first\"\n"
                           "--dir bwd --mode avg_include mb2ic3_ih7_kh3\n"
                           "--mode=avg_exclude\n"
                           "--dt f64 --mode max mb2ic3_ih7_kh3\n"
                           "--mode mean mb2ic3_ih7_kh3\n"
                           "--mode avg_include\tmb2ic3_ih7_kh3 mb2ic3_ih7_kh3\n"
                           "--mode max mb2ic3_ih7_kq3\n"
                           "--help mb2ic3_ih7_kh3\n"
                           "--mode avg_include\t\n");
  const Finished finished =
      kiln(host("pool", {"--json", "--dt", "f16", "--mode", "avg_exclude", "--batch", path}));
  BOOST_TEST_INFO(finished.out << finished.err);
  BOOST_TEST(finished.status == 1);
  BOOST_TEST(finished.err == "3 passed, 0 failed, 5 refused\n");
  std::vector<nlohmann::json> results;
  for (const std::string& line : finished.lines()) results.push_back(nlohmann::json::parse(line));
  BOOST_REQUIRE(results.size() == 8u);
  BOOST_TEST(
      results[0]["problem"] ==
      "--arch host --mode avg_exclude --dt f16 mb2ic3_ih7iw7oh4ow4_kh3kw3_sh2sw2_ph1pw1_dh0dw0");
  BOOST_TEST(results[0]["name"] == "first");
  BOOST_TEST(results[0]["command"] == "pool");
  BOOST_TEST(results[0]["place"] == path + ":2");
  BOOST_TEST(results[0]["gbps"].get<double>() > 0);
  BOOST_TEST(!results[0].contains("tflops"));
  BOOST_TEST(results[0]["outputs"] == 2 * 3 * 4 * 4);
  BOOST_TEST(results[1]["problem"] ==
             "--arch host --dir bwd --mode avg_include --dt f16 "
             "mb2ic3_ih7iw7oh5ow5_kh3kw3_sh1sw1_ph0pw0_dh0dw0");
  BOOST_TEST(results[2]["problem"] ==
             "--arch host --dt f64 mb2ic3_ih7iw7oh5ow5_kh3kw3_sh1sw1_ph0pw0_dh0dw0");
  BOOST_TEST(results[3]["status"] == "REFUSED");
  BOOST_TEST(results[3]["place"] == path + ":6");
  BOOST_TEST(contains(results[3]["reason"].get<std::string>(), "the line's flags: "));
  BOOST_TEST(contains(results[3]["reason"].get<std::string>(), "mean"));
  BOOST_TEST(contains(results[4]["reason"].get<std::string>(), "the line's flags: "));
  BOOST_TEST(contains(results[5]["reason"].get<std::string>(), "\"kq\" begins no entry"));
  BOOST_TEST(contains(results[6]["reason"].get<std::string>(),
                      "--help is no word of pool lines; expected --dir, "));
  BOOST_TEST(contains(results[7]["reason"].get<std::string>(), "the line has no problem"));
}

// What --json calls the problem is a line of a batch, and with its command one of prewarm: the
// kernel is there already.
BOOST_AUTO_TEST_CASE(json_tells_problems_that_can_be_run_again) {
  const Kiln kiln;
  const Row rows[] = {
      {"conv", {"--dir", "dgrad", "--dt", "f64", "mb2_ic3ih6_oc4_kh3sh2ph1"}},
      {"conv", {"--residual", "--act", "relu", "--z-strides", "0:36:6:1", "mb2_ic3ih6_oc4_kh3ph1"}},
      {"pool", {"--dir", "bwd", "--layout", "nhwc", "mb2ic3_ih7_kh3sh2ph1"}},
      {"act", {"--act", "elu", "--coef", "0.1", "2x3x5x7"}},
      {"softmax", {"--over", "image", "2x3x5x7"}},
      {"tensor", {"--dt", "f32:f16", "--x-strides", "0:1:0:0", "2x3x5x7"}},
      {"tensor", {"--op", "reduce_max", "2x3x5x7:1x3x1x1"}},
  };
  std::string prewarm;
  for (const Row& row : rows) {
    Words words = row.words;
    words.insert(words.begin(), "--json");
    const Finished first = kiln(host(row.command, words));
    BOOST_TEST_CONTEXT(row.command << ": " << first.out << first.err) {
      BOOST_REQUIRE(first.status == 0);
      const nlohmann::json result = nlohmann::json::parse(first.lines().at(0));
      BOOST_TEST(result["command"] == row.command);
      const std::string problem = result["problem"];
      const std::string path = kiln.directory.write("problem", problem + "\n");
      const Finished again = kiln(host(row.command, {"--json", "--batch", path}));
      BOOST_TEST_CONTEXT(again.out << again.err) {
        BOOST_REQUIRE(again.status == 0);
        const nlohmann::json same = nlohmann::json::parse(again.lines().at(0));
        BOOST_TEST(same["problem"] == problem);
        BOOST_TEST(same["kernel_source"] == "disk");
      }
      prewarm += row.command + " " + problem + "\n";
    }
  }
  const std::string file = kiln.directory.write("prewarm", prewarm);
  const Finished warm = kiln({"prewarm", file, "--arch", "host", "-j", "2"});
  BOOST_TEST_INFO(warm.out << warm.err);
  BOOST_TEST(warm.status == 0);
  BOOST_TEST(warm.lines().back() ==
             "0 compiled, " + std::to_string(std::size(rows)) + " already there, 0 failed");
}

BOOST_AUTO_TEST_CASE(prewarm_takes_lines_of_every_command) {
  const Kiln kiln;
  const std::string file = kiln.directory.write("problems",
                                                "# of a network\n"
                                                "mb2_ic3ih6_oc4_kh3ph1\n"
                                                "conv --dir wgrad mb2_ic3ih6_oc4_kh3ph1\n"
                                                "pool --dir bwd --dt f64 mb2ic3_ih7_kh3\n"
                                                "act 2x3x5x7\n"
                                                "act 4x3x5x7\n"
                                                "softmax --algorithm log 2x10x1x1\n"
                                                "tensor --op add 2x3x5x7:1x3x1x1:2x3x5x7\n"
                                                "pool --mode mean mb2ic3_ih7_kh3\n"
                                                "dense 2x3x5x7\n");
  const Words command{"prewarm", file, "--arch", "host", "-j", "2"};
  const Finished first = kiln(command);
  BOOST_TEST_INFO(first.out << first.err);
  BOOST_TEST(first.status == 1);
  // Batches of 2 and of 4 share their kernel.
  BOOST_TEST(first.lines().back() == "6 compiled, 0 already there, 2 failed");
  BOOST_TEST(
      contains(first.out, "failed         " + file + ":9: pool --mode mean mb2ic3_ih7_kh3: "));
  BOOST_TEST(contains(first.out,
                      "failed         " + file + ":10: dense 2x3x5x7: \"dense\" is no command"));
  BOOST_TEST(
      contains(first.out, "compiled       pool --arch host --dir bwd --dt f64 mb2ic3_ih7iw7"));
  BOOST_TEST(contains(first.out, "compiled       softmax --arch host --algorithm log 2x10x1x1"));
  BOOST_TEST(kiln(command).lines().back() == "0 compiled, 6 already there, 2 failed");

  const Finished softmax = kiln(host("softmax", {"--algorithm", "log", "2x10x1x1"}));
  BOOST_TEST(softmax.status == 0);
  BOOST_TEST(contains(softmax.out, "  disk "));
}

BOOST_AUTO_TEST_CASE(a_value_that_is_none_is_a_wrong_question) {
  const Kiln kiln;
  for (const Words& words :
       {Words{"act", "--act", "smish", "1x2x3"}, {"conv", "--dt", "fp16", "x"}}) {
    const Finished finished = kiln(words);
    BOOST_TEST(finished.status == 2);
    BOOST_TEST(contains(finished.err, words[1]), finished.err);
    BOOST_TEST(contains(finished.err, words[2]), finished.err);
  }
}

BOOST_AUTO_TEST_CASE(inspect_shows_kernels_of_every_command) {
  const Kiln kiln;
  const std::pair<Words, std::pair<const char*, const char*>> cases[] = {
      {{"pool", "--dir", "bwd", "mb2ic3_ih7_kh3"},
       {"problem        pool --arch h200 --dir bwd mb2ic3", "pooling/"}},
      {{"act", "--act", "silu", "2x3x5x7"},
       {"problem        act --arch h200 --act silu 2x3x5x7", "pointwise/"}},
      {{"softmax", "--over", "image", "2x3x5x7"}, {"softmax --arch h200 --over image", "softmax/"}},
      {{"tensor", "--op", "reduce_sum", "2x3x5x7:1x3x1x1"},
       {"tensor --arch h200 --op reduce_sum", "reduction/"}},
      {{"tensor", "--layout", "nchw:nhwc", "2x64x28x28"}, {"--layout nchw:nhwc", "transpose"}},
      {{"conv", "--dir", "wgrad", "ic3ih6oc4kh3"}, {"conv --arch h200 --dir wgrad g1mb2", "conv/"}},
      {{"--dir", "dgrad", "ic3ih6oc4kh3"}, {"conv --arch h200 --dir dgrad g1mb2", "conv/"}}};
  for (const auto& [words, parts] : cases) {
    Words command{"inspect", "--arch", "sm_90a"};
    command.insert(command.end(), words.begin(), words.end());
    const Finished spec = kiln(command);
    BOOST_TEST_CONTEXT(spec.out << spec.err) {
      BOOST_TEST(spec.status == 0);
      BOOST_TEST(contains(spec.out, "architecture   sm_90a\n"));
      BOOST_TEST(contains(spec.out, parts.first));
      BOOST_TEST(contains(spec.out, parts.second));
    }
    // Flags of inspect may follow the operation's, too.
    command.insert(command.end(), {"--emit", "source"});
    const Finished source = kiln(command);
    BOOST_TEST(source.status == 0, source.err);
    BOOST_TEST(contains(source.out, "__global__"));
    BOOST_TEST(!contains(source.out, "#include \""));
  }
  const Finished typo = kiln({"inspect", "act", "1x2y"});
  BOOST_TEST(typo.status == 2);
  BOOST_TEST(contains(typo.err, "column 4"));
  BOOST_TEST(kiln({"inspect", "pool"}).status == 2);
  BOOST_TEST(kiln({"inspect", "dense", "1x2x3"}).status == 2);
}

BOOST_AUTO_TEST_CASE(an_engine_of_another_operation_is_refused) {
  const Kiln kiln;
  const Finished finished = kiln(host("pool", {"--engine", "softmax", "mb2ic3_ih7_kh3"}));
  BOOST_TEST_INFO(finished.out << finished.err);
  BOOST_TEST(finished.status == 1);
  BOOST_TEST(finished.out.starts_with("REFUSED  mb2ic3_ih7_kh3: "));
}

BOOST_AUTO_TEST_SUITE_END()
