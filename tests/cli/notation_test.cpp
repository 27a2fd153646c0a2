// One notation: what any place prints of a plan is read by every command, as the same plan
// (src/problem/line/README.md lists both).
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "cli/operation/read_line.hpp"
#include "cli/run_kiln.hpp"
#include "core/error.hpp"
#include "device/chip_name.hpp"
#include "plan/plan_line.hpp"
#include "problem/line/problem_line.hpp"
#include "support/problem_lists.hpp"

using namespace kiln;       // NOLINT(google-build-using-namespace)
using namespace kiln::cli;  // NOLINT(google-build-using-namespace)
using kiln_test::Finished;
using kiln_test::Kiln;

namespace {

// Every operation, and every word that decides a kernel.
const std::vector<std::string> written{
    "conv mb2_ic3ih6_oc4_kh3ph1",
    "conv --workspace 65536 --engine channels_last_copies mb1ic8ih3oc8kh1",
    "conv --dir dgrad --dt f16 --layout nhwc --engine direct mb2_ic4ih6_oc4_kh3ph1",
    "conv --dir wgrad --math strict --align 4 --workspace 4096 mb2_ic3ih6_oc4_kh3ph1",
    "conv --dt f16:f16:f32 --mode conv --x-strides 240:80:10:1 mb2_ic3ih6_oc4_kh3ph1",
    "conv --bias --residual --act clip --coef -inf --coef2 6 mb2_ic3ih6_oc4_kh3ph1",
    "local --bias channel --weights ptck mb2_ic3ih6_oc4_kh3ph1",
    "pool --dir bwd --mode avg_include --overhang 1:1 mb2ic4_ih7oh4_kh2_sh2_ph0",
    "act --dir bwd --act leaky_relu --coef 0.2 2x3x4x5",
    "softmax --algorithm log --over image 2x3x4x5",
    "norm --dir bwd --residual --act relu --workspace 4096 4x3x4x5",
    "tensor --op copy --dt f16:f32 --layout nhwc:nchw 2x3x4x5",
};

std::string canonical(const std::string& line, const DeviceDescription& device) {
  const cli::ReadLine read = cli::read_one(line, {});
  return plan_line(read.problem, device, read.grant);
}

std::string lines_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// What follows the last `before` in each line that has it, up to `after`.
std::set<std::string> cut(const std::string& text, const std::string& before,
                          const std::string& after) {
  std::set<std::string> found;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t at = before.empty() ? 0 : line.rfind(before);
    if (at == std::string::npos) continue;
    const std::string rest = line.substr(at + before.size());
    found.insert(after.empty() ? rest : rest.substr(0, rest.find(after)));
  }
  return found;
}

std::vector<nlohmann::json> objects_of(const std::string& text) {
  std::vector<nlohmann::json> objects;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with('{')) objects.push_back(nlohmann::json::parse(line));
  return objects;
}

std::string line_in(const nlohmann::json& object) {
  const std::string problem = object.at("problem");
  return object.contains("command") ? cat(object["command"].get<std::string>(), " ", problem)
                                    : problem;
}

Problem read_back(const std::string& text) { return read_one(text, {}).problem; }

void check(const Problem& problem) {
  const std::string text = text_of(problem);
  BOOST_TEST_CONTEXT(text) {
    try {
      const Problem again = read_back(text);
      BOOST_TEST((again == problem), "it is read as " << text_of(again));
      BOOST_TEST(text_of(again) == text);
    } catch (const Error& error) {
      BOOST_TEST(false, error.what());
    }
  }
}

Tensor tensor(DataType type, const std::vector<std::int64_t>& dims,
              const std::vector<std::int64_t>& strides = {}) {
  Tensor out;
  out.type = type;
  out.rank = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), out.dims.begin());
  out.strides = dense_strides(KILN_TENSOR_NCHW, out.rank, out.dims);
  if (!strides.empty()) std::copy(strides.begin(), strides.end(), out.strides.begin());
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(notation)

// A problem's text is the problem: it is read back as it was, whatever the operation.
BOOST_AUTO_TEST_CASE(every_line_of_the_problem_lists) {
  const std::pair<const char*, const char*> lists[] = {
      {"conv", "small"},      {"conv", "paper"},         {"conv", "alexnet"},
      {"conv", "resnet50"},   {"conv", "backward"},      {"local", "local"},
      {"matmul", "matmul"},   {"pool", "pooling"},       {"act", "activation"},
      {"softmax", "softmax"}, {"norm", "normalization"}, {"tensor", "tensor"},
      {"tensor", "reduction"}};
  for (const auto& [command, list] : lists) {
    std::ostringstream text;
    text << std::ifstream(problem_list_path(std::string(list) + ".txt")).rdbuf();
    const auto lines = problem_lines(text.str());
    BOOST_TEST(lines.size() >= 5u);
    for (const auto& [number, line] : lines) {
      BOOST_TEST_CONTEXT(list << ".txt:" << number) { check(read_back(cat(command, " ", line))); }
    }
  }
}

BOOST_AUTO_TEST_CASE(types_and_layouts_of_the_command_line) {
  const std::pair<const char*, const char*> lines[] = {
      {"conv", "--dir dgrad g2mb3_ic4ih9iw7_oc6_kh3kw2_sh2ph1"},
      {"conv", "--bias --residual --act elu --coef 0.1 mb3_ic4ih9_oc6_kh3"},
      {"conv", "--act silu --residual-last mb3_ic4ih9_oc6_kh3"},
      {"conv", "--dt f16:f16:f32 --bias --act relu --moments mb3_ic4ih9_oc6_kh3"},
      {"conv",
       "--dir dgrad --residual --norm-gradient --no-affine --norm-residual --act silu "
       "--norm-x-strides 500:1:40:5 mb3_ic4ih9_oc6_kh3"},
      {"conv", "--bias --bias-stride 3 mb3_ic4ih9_oc6_kh3"},
      {"conv", "--bias --bias-stride 0 --dir dgrad mb3_ic4ih9_oc6_kh3"},
      {"conv", "--dir dgrad --bias --residual --act relu mb3_ic4ih9_oc6_kh3sh2"},
      {"conv", "--dt f16:f16:f32 mb3_ic4ih9_oc6_kh3"},
      {"conv", "--dt bf16:f32:bf16 --dir wgrad mb3_ic4ih9_oc6_kh3"},
      {"conv", "--dir bgrad mb3_ic4ih9_oc6_kh3"},
      {"local", "--bias element mb3_ic4ih9_oc6_kh3"},
      {"local", "--bias 1x6x1x7 --weights nctkp mb3_ic4ih9_oc6_kh3"},
      {"local", "--dir wgrad --weights ptck g2mb3_ic4ih9iw7_oc6_kh3kw2_sh2ph1"},
      {"local", "--dir dgrad --weights npkct mb1_ic4iw9_oc6_kw3"},
      {"matmul", "--bias --act gelu_tanh --b-layout column 5x7:7x9"},
      {"matmul", "--residual --residual-last --act relu --z-strides 20:2 5x7:7x9"},
      {"matmul", "--a-strides 0:1:5 --d-layout column --bias --bias-stride 2 3x5x7:3x7x9"},
      {"pool", "--dir bwd --nan ignore mb3ic5_id9_kd2"},
      {"act", "--dir bwd --act softplus 2x3x4"},
      {"softmax", "--over image --algorithm fast 2x3x4x5x6"},
      {"norm", "--residual --act clip --coef -1 --coef2 2 --epsilon 1e-3 2x3x4x5"},
      {"norm", "--dir bwd --residual --frozen --no-affine 2x3x4"},
      {"norm", "--over group --groups 3 --rms --no-bias --act silu 2x6x4x5"},
      {"norm", "--dir bwd --over instance 2x6x4x5"},
      {"norm", "--dir bwd --over pixel --no-affine 20x6"},
      {"tensor", "--op reduce_norm2 2x3x4x5:1x3x4x1"},
      {"tensor", "--op mul 2x3x4x5:1x3x1x1:2x3x4x5"}};
  for (const auto& [command, line] : lines) {
    for (const std::string& type : type_names) {
      for (const std::string& layout : layout_names) {
        LineDefaults defaults;
        defaults.types = {type};
        defaults.layouts = {layout};
        check(read_one(cat(command, " ", line), defaults).problem);
      }
    }
  }
}

// Problems that come from the C API alone: strides that no layout has.
BOOST_AUTO_TEST_CASE(problems_of_any_strides) {
  constexpr auto f32 = KILN_DATA_FLOAT, f16 = KILN_DATA_HALF;
  const Tensor y = tensor(f32, {2, 3, 4, 5}), channel = tensor(f32, {1, 3, 1, 1});
  check(make_fill(tensor(f16, {0, 3, 4}, {1, 2, 3})));
  check(make_fill(tensor(f16, {1, 3, 4}, {0, 4, 1})));
  check(make_transform(tensor(f16, {2, 3, 4, 5}, {1, 2, 40, 7}), y));
  check(make_add(channel, y));
  check(make_add(tensor(f32, {2, 3, 4, 5}, {0, 1, 0, 0}), y));
  // Another type, and broadcast by strides of 0.
  check(make_transform(tensor(f16, {2, 3, 4, 5}, {0, 1, 0, 0}), y));
  check(make_transform(tensor(f16, {2, 3, 4, 5}, {0, 0, 0, 0}), y));
  check(make_binary(KILN_OP_TENSOR_MIN, tensor(f32, {2, 3, 4, 5}, {0, 20, 5, 1}), channel, y));
  check(make_activation_forward({KILN_ACTIVATION_ELU, 1e-3},
                                tensor(f32, {2, 3, 4, 5}, {0, 0, 0, 1}), y));
  check(make_activation_forward({KILN_ACTIVATION_CLIP, -HUGE_VAL, 6}, y, y));
  check(make_activation_forward({KILN_ACTIVATION_POW, -0.1, 1e-3}, y, y));
  check(make_activation_backward({KILN_ACTIVATION_HARD_SIGMOID, 0.2, 0.5}, y, "xDesc", y, y));
  for (const kilnOpTensorOp_t op : all_of<kilnOpTensorOp_t>())
    check(make_binary(op, y, channel, y));
  for (const kilnReduceTensorOp_t op : all_of<kilnReduceTensorOp_t>())
    check(make_reduction(op, y, channel));
  check(make_activation_backward({KILN_ACTIVATION_SILU, 0}, y, "xDesc",
                                 tensor(f32, {2, 3, 4, 5}, {0, 1, 3, 0}), y));
  check(make_softmax_backward(KILN_SOFTMAX_LOG, KILN_SOFTMAX_MODE_INSTANCE, y,
                              tensor(f32, {2, 3, 4, 5}, {100, 1, 30, 4}), y));
  check(make_reduction(KILN_REDUCE_MEAN, tensor(f32, {2, 3, 4, 5}, {0, 1, 0, 3}), channel));
  check(make_reduction(KILN_REDUCE_MAX, y, y));
  check(make_bias_gradient(y, channel));
  const Tensor spaced = tensor(f32, {2, 3, 4, 5}, {120, 1, 30, 4});
  check(make_normalization_training({}, y, &spaced, spaced));
  check(make_normalization_backward({}, spaced, nullptr, y, nullptr, y));
  check(make_normalization_moments(spaced));
  check(make_normalization_combine({}, KILN_DATA_BFLOAT16, 4, 3));
  // Weights of each pixel's own: padded, of each image, broadcast along the filters, of one image.
  ConvolutionSpec spec;
  spec.spatial = 2;
  const Tensor x = tensor(f32, {2, 3, 5, 5}), out = tensor(f32, {2, 4, 3, 3});
  const Tensor bias = tensor(f32, {1, 4, 1, 3}, {0, 7, 0, 2});
  check(make_local(spec, x, tensor(f32, {3, 3, 4, 3, 3, 3}, {400, 120, 30, 9, 3, 1}), &bias, out));
  check(make_local(spec, x, tensor(f32, {2, 3, 3, 4, 3, 3, 3}, {900, 300, 90, 0, 27, 9, 3}),
                   nullptr, out));
  check(make_local_wgrad(spec, tensor(f32, {1, 3, 5, 5}), tensor(f32, {1, 4, 3, 3}),
                         tensor(f32, {1, 3, 3, 4, 3, 3, 3})));
  check(make_local_dgrad(spec, tensor(f32, {1, 3, 3, 4, 3, 3, 3}), out, x));
}

BOOST_AUTO_TEST_CASE(a_printed_line_is_canonical_and_says_all) {
  for (const char* chip : {"host", "h100", "h100-pcie", "gh200", "sm_80", "sm_90a:66", "t4"}) {
    DeviceDescription device;
    device.kind = KILN_DEVICE_HOST;
    device.arch = "host";
    if (std::string_view(chip) != "host") device = known_architecture(chip);
    for (const std::string& line : written) {
      const std::string printed = canonical(line, device);
      const cli::ReadLine asked = cli::read_one(line, {}), again = cli::read_one(printed, {});
      BOOST_TEST_CONTEXT(printed) {
        BOOST_TEST((again.problem == asked.problem));
        BOOST_TEST((again.grant == asked.grant));
        BOOST_TEST_REQUIRE(again.chips.size() == 1u);
        if (device.kind == KILN_DEVICE_HOST) continue;
        const DeviceDescription read = known_architecture(again.chips[0]);
        BOOST_TEST(chip_name(read) == chip_name(device));
        BOOST_TEST(read.arch == device.arch);
        BOOST_TEST(read.multiprocessors == device.multiprocessors);
        BOOST_TEST(read.l2_bytes == device.l2_bytes);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(words_that_are_unknown_or_wrong_are_named) {
  const std::pair<const char*, const char*> wrong[] = {
      {"conv --scale 2 mb1ic3ih6oc4kh3", "--scale is no word of conv lines; expected --dir"},
      {"pool --math strict mb1ic3ih6kh3", "--math is no word of pool lines"},
      {"conv --dt f16", "the line has no problem"},
      {"conv mb1ic3ih6oc4kh3 mb2", "\"mb2\" is one word too many for conv lines"},
      {"conv --engine magic mb1ic3ih6oc4kh3", "the engine is magic; expected one of"},
      {"conv --workspace much mb1ic3ih6oc4kh3", "--workspace"},
      {"{\"problem\":\"conv mb1ic3ih6oc4kh3\",\"workspace\":-1}", "workspace is -1"},
      {"{\"problem\":[]}", "problem is []; expected a problem line"},
  };
  for (const auto& [line, sentence] : wrong) try {
      cli::read_one(line, {});
      BOOST_ERROR("no fault is found in " << line);
    } catch (const Error& error) {
      BOOST_TEST(std::string(error.what()).find(sentence) != std::string::npos, error.what());
    }
  for (const char* chip : {"sm_90a:", "sm_90a:0", "h100:1x", "sm_1:4"})
    BOOST_CHECK_THROW(known_architecture(chip), Error);
}

// An object's fields count where the words are silent.
BOOST_AUTO_TEST_CASE(words_win_over_an_objects_fields) {
  const cli::ReadLine line = cli::read_one(
      R"({"command":"conv","problem":"--arch h100 --workspace 64 --dt f16 mb1ic3ih6oc4kh3",)"
      R"("architecture":"sm_90a","multiprocessors":132,"workspace":128,"only_engine":"direct",)"
      R"("dt":"f32","time_ms":{"median":1}})",
      {});
  BOOST_TEST(line.chips == std::vector<std::string>{"h100"});
  BOOST_TEST(line.grant.workspace == 64u);
  BOOST_TEST(line.grant.only_engine == "direct");
  BOOST_TEST((operands_of(line.problem)[0].type == KILN_DATA_HALF));
}

// On the host device, whose kernels are compiled once here and found by all others.
BOOST_AUTO_TEST_CASE(every_printed_line_through_every_reader) {
  Kiln kiln;
  DeviceDescription host;
  host.kind = KILN_DEVICE_HOST;
  host.arch = "host";
  std::set<std::string> expected;
  for (const std::string& line : written) expected.insert(canonical(line, host));

  // The places that print, each given what was written by hand.
  const std::string file = kiln.directory.write("written", lines_of(written));
  std::map<std::string, std::set<std::string>> printed;
  const std::string bundle = kiln.directory / "bundle";
  const Finished made = kiln({"prewarm", file, "--arch", "host", "--bundle", bundle});
  BOOST_TEST_REQUIRE(made.status == 0, made.out + made.err);
  printed["cache ls"] = cut(kiln({"cache", "ls"}).out, "  ", "");
  kiln.environment["KILN_RECORD"] = kiln.directory / "record";
  kiln.environment["KILN_LOG"] = "info";
  const Finished ran = kiln({"conv", "--device", "host", "--json", "--batch", file});
  BOOST_TEST_REQUIRE(ran.status == 0, ran.out + ran.err);
  kiln.environment.erase("KILN_RECORD");
  kiln.environment.erase("KILN_LOG");
  printed["log"] = cut(ran.err, "[info] kiln ", " -> ");
  for (const nlohmann::json& object : objects_of(ran.out))
    printed["--json"].insert(line_in(object));
  printed["record"] = cut(kiln_test::read(kiln.directory / "record"), "", "");
  for (const std::string& line : written) {
    printed["inspect"].merge(
        cut(kiln({"inspect", "--arch", "host", line}).out, "problem        ", ""));
    for (const nlohmann::json& object :
         objects_of(kiln({"inspect", "--json", "--arch", "host", line}).out))
      printed["inspect --json"].insert(line_in(object));
    printed["cache why"].merge(
        cut(kiln({"cache", "why", "--arch", "host", line}).out, "problem        ", ""));
  }
  kiln.environment["KILN_CACHE"] = "strict";
  const std::string cache =
      std::exchange(kiln.environment["KILN_CACHE_DIR"], kiln.directory / "nothing");
  const Finished missing = kiln({"conv", "--device", "host", "--batch", file});
  printed["not cached"] = cut(missing.out, ": conv ", ": kernel");
  BOOST_TEST(missing.status == 1);
  kiln.environment.erase("KILN_CACHE");
  kiln.environment["KILN_CACHE_DIR"] = cache;
  std::set<std::string> convolutions;  // as "not cached" is cut
  for (const std::string& line : expected)
    if (line.starts_with("conv ")) convolutions.insert(line.substr(5));
  std::set<std::string> of_convolutions;
  for (const std::string& line : printed["not cached"])
    if (convolutions.contains(line)) of_convolutions.insert(line);
  BOOST_TEST((of_convolutions == convolutions), missing.out);
  printed.erase("not cached");
  for (const auto& [place, lines] : printed) {
    if (place == "cache ls") continue;  // one line for each kernel, and a plan may have several
    BOOST_TEST((lines == expected), place << " prints " << lines_of({lines.begin(), lines.end()}));
  }
  for (const std::string& line : printed["cache ls"])
    BOOST_TEST(expected.contains(line), "cache ls prints " << line);

  // Every reader, given what was printed: nothing is compiled, for the kernels are those.
  const std::vector<std::string> all(expected.begin(), expected.end());
  const std::string lines = kiln.directory.write("lines", lines_of(all));
  const std::string objects = kiln.directory.write("objects", ran.out);
  for (const std::string& each : {lines, objects}) {
    const Finished again = kiln({"prewarm", each});
    BOOST_TEST_REQUIRE(again.status == 0, again.out + again.err);
    BOOST_TEST(again.lines().back().starts_with("0 compiled, "), again.out);
    for (const char* command : {"conv", "tensor"}) {
      const Finished read = kiln({command, "--json", "--batch", each});
      BOOST_TEST(read.status == 0, read.out + read.err);
      std::set<std::string> told;
      for (const nlohmann::json& object : objects_of(read.out)) {
        told.insert(line_in(object));
        BOOST_TEST(object["kernel_source"] != "compiled");
      }
      BOOST_TEST((told == expected), read.out);
    }
    const Finished listed = kiln({"bench", "--list", "--batch", each});
    BOOST_TEST(listed.lines().size() == all.size() + 1, listed.out + listed.err);
  }
  for (const std::string& line : all) {
    const Finished why = kiln({"cache", "why", line});
    BOOST_TEST(why.out.find("\nhit ") != std::string::npos, why.out);
    BOOST_TEST(why.out.find("problem        " + line + "\n") == 0u, why.out);
    const Finished shown = kiln({"inspect", line});
    BOOST_TEST(shown.out.find("problem        " + line + "\n") == 0u, shown.out + shown.err);
  }
  const Finished diff = kiln({"inspect", "--diff", all[0], all[1]});
  BOOST_TEST(diff.status == 0, diff.err);
  const std::string one = kiln.directory.write(
      "one", canonical("conv --engine direct mb2_ic3ih6_oc4_kh3ph1", host) + "\n");
  const Finished tuned = kiln({"tune", "--batch", one, "--samples", "1", "--warm-up", "0"});
  BOOST_TEST(tuned.status == 0, tuned.out + tuned.err);
  BOOST_TEST(tuned.out.find("conv --arch host --engine direct g1mb2_ic3") == 0u, tuned.out);
}

BOOST_AUTO_TEST_SUITE_END()
