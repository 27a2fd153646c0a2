// The kernels of the lists' problems (in the quick tier one of each engine) and a third of all
// engines' tiles (all with KILN_TEST_FULL=1) compile for every architecture, and ptxas reports no
// spill in the main tiles beyond the few listed below.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cctype>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "codegen/source.hpp"
#include "compile/compiler.hpp"
#include "core/error.hpp"
#include "engines/choice.hpp"
#include "engines/engine.hpp"
#include "problem/line/problem_line.hpp"
#include "support/counts.hpp"
#include "support/memory.hpp"

namespace {

using namespace kiln;

struct Case {
  Problem problem;
  std::string arch;
  std::optional<Option> option{};  // else what is chosen
};

// Of every operation something in one type and layout: a convolution's passes at the four widths of
// a tile, padded, so that bounds are checked; and all else.
std::vector<Problem> problems(DataType type, kilnTensorFormat_t layout, bool passes) {
  std::vector<Problem> out;
  for (const char* line :
       {"mb8ic64ih28oc128kh3ph1", "mb8ic64ih28oc96kh3ph1", "mb8ic64ih28oc64kh3ph1",
        "mb8ic64ih28oc32kh3ph1", "g64mb8ic64ih28oc64kh3ph1"}) {
    const ConvolutionOperands o =
        describe_convolution(parse_convolution_line(line), type, layout, KILN_CROSS_CORRELATION);
    out.emplace_back(make_convolution(o.spec, o.x, o.w, o.y));
    if (!passes) continue;
    out.emplace_back(make_convolution_wgrad(o.spec, o.x, o.y, o.w));
    out.emplace_back(make_convolution_dgrad(o.spec, o.w, o.y, o.x));
  }
  const ConvolutionOperands o = describe_convolution(
      parse_convolution_line("mb8ic64ih28oc128kh3ph1sh2"), type, layout, KILN_CROSS_CORRELATION);
  out.emplace_back(make_convolution_dgrad(o.spec, o.w, o.y, o.x));
  out.emplace_back(make_convolution(
      o.spec, o.x, o.w, o.y, bias_activation_epilogue(&o.y, nullptr, {KILN_ACTIVATION_RELU, 0})));
  if (!passes) return out;

  const ConvolutionOperands l = describe_convolution(parse_convolution_line("mb8ic16ih14oc16kh9"),
                                                     type, layout, KILN_CROSS_CORRELATION);
  for (const char* order : {layout == KILN_TENSOR_NCHW ? "pkct" : "pktc", "ptck", "npkct"}) {
    const Tensor weights = local_weights(l.w, l.y, order, "the order");
    out.emplace_back(make_local(l.spec, l.x, weights, nullptr, l.y));
    out.emplace_back(make_local_dgrad(l.spec, weights, l.y, l.x));
    out.emplace_back(make_local_wgrad(l.spec, l.x, l.y, weights));
  }
  PoolingSpec pool;
  pool.spatial = 2;
  pool.window = {3, 3};
  pool.stride = {2, 2};
  const Tensor& x = o.x;
  Tensor y = x, channels = x, other = x;
  y.dims = pooling_output_dims(pool, x);
  y.strides = dense_strides(layout, 4, y.dims);
  channels.dims = {1, x.dims[1], 1, 1};
  channels.strides = dense_strides(layout, 4, channels.dims);
  other.strides =
      dense_strides(layout == KILN_TENSOR_NCHW ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW, 4, x.dims);
  out.emplace_back(make_pooling_forward(pool, x, y));
  out.emplace_back(make_pooling_backward(pool, y, &x, x));
  // A divisor for each window: the last ones reach over the padding.
  pool.mode = KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
  pool.ceil = true;
  Tensor averages = x;
  averages.dims = pooling_output_dims(pool, x);
  averages.strides = dense_strides(layout, 4, averages.dims);
  out.emplace_back(make_pooling_forward(pool, x, averages));
  out.emplace_back(make_pooling_backward(pool, averages, nullptr, x));
  for (kilnSoftmaxMode_t mode : {KILN_SOFTMAX_MODE_CHANNEL, KILN_SOFTMAX_MODE_INSTANCE}) {
    out.emplace_back(make_softmax_forward(KILN_SOFTMAX_ACCURATE, mode, x, x));
    out.emplace_back(make_softmax_backward(KILN_SOFTMAX_LOG, mode, x, x, x));
  }
  out.emplace_back(make_activation_forward({KILN_ACTIVATION_GELU_ERF, 0}, x, x));
  out.emplace_back(make_activation_backward({KILN_ACTIVATION_TANH, 0}, x, "yDesc", x, x));
  out.emplace_back(make_transform(x, other));
  out.emplace_back(make_add(channels, x));
  out.emplace_back(make_bias_gradient(x, channels));
  return out;
}

// Layers that every tile is a candidate for, of many channels and of few: each kernel once, in
// whatever parts.
std::vector<Case> every_tile(DataType type, kilnTensorFormat_t layout, const std::string& arch) {
  std::vector<Case> out;
  const auto add = [&](const Problem& problem, const std::string& only, std::size_t workspace = 0) {
    for (Option& option : all_candidates(problem, known_architecture(arch), workspace))
      if (option.name.parts == 1 && (only.empty() || only == option.name.engine))
        out.push_back({problem, arch, std::move(option)});
  };
  for (kilnMathMode_t math : {KILN_MATH_DEFAULT, KILN_MATH_TF32}) {
    if (math == KILN_MATH_TF32 && type != KILN_DATA_FLOAT) continue;
    const auto operands = [&](const char* line) {
      ConvolutionOperands o =
          describe_convolution(parse_convolution_line(line), type, layout, KILN_CROSS_CORRELATION);
      o.spec.math = math;
      return o;
    };
    const ConvolutionOperands many = operands("mb8ic128ih28oc128kh3ph1");
    add(make_convolution(many.spec, many.x, many.w, many.y), "");
    add(make_convolution_dgrad(many.spec, many.w, many.y, many.x), "");
    add(make_convolution_wgrad(many.spec, many.x, many.y, many.w), "");
    for (const char* line : {"mb8ic3ih128oc96kh11", "mb8ic3ih224oc64kh7ph3sh2"}) {
      const ConvolutionOperands few = operands(line);
      for (const char* engine : {"few_input_channels_mma", "few_input_channels_wgmma_swap"})
        add(make_convolution(few.spec, few.x, few.w, few.y), engine);
    }
    for (const char* line :
         {"mb8ic3ih224oc64kh7ph3sh2", "mb8ic3ih224oc64kh3ph1", "mb1ic128ih512oc3kh3ph1",
          "mb8ic3ih224oc96kh4sh4", "mb8ic3ih224oc768kh16sh16"}) {
      const ConvolutionOperands image = operands(line);
      add(make_convolution_wgrad(image.spec, image.x, image.y, image.w), "wgrad_few_channels_mma");
    }
    for (const char* line :
         {"g64mb8ic64ih56oc64kh3ph1", "g64mb8ic64ih56oc64kh3ph1sh2", "g64mb8ic64ih14oc64kh5ph2",
          "g64mb8ic64ih56oc64kh7ph3", "g64mb8ic64iw1000oc64kw31pw15"}) {
      const ConvolutionOperands channels = operands(line);
      add(make_convolution(channels.spec, channels.x, channels.w, channels.y), "depthwise_fma");
      add(make_convolution_wgrad(channels.spec, channels.x, channels.y, channels.w),
          "wgrad_depthwise_fma");
    }
    if (layout == KILN_TENSOR_NCHW) {
      add(make_convolution(many.spec, many.x, many.w, many.y), "channels_last_copies",
          most_workspace);
      for (const char* line : {"mb8ic128ih28oc128kh1", "mb8ic136ih8oc136kh1"}) {
        const ConvolutionOperands dense = operands(line);
        add(make_convolution(dense.spec, dense.x, dense.w, dense.y), "dense_nchw_wgmma");
        add(make_convolution_dgrad(dense.spec, dense.w, dense.y, dense.x), "dense_nchw_wgmma");
        add(make_convolution_wgrad(dense.spec, dense.x, dense.y, dense.w),
            "wgrad_dense_nchw_wgmma");
      }
    }
    if (layout == KILN_TENSOR_NHWC) {
      for (const char* line :
           {"g32mb8ic64ih28oc64kh3ph1", "g16mb8ic64ih28oc64kh3ph1", "g8mb8ic64ih28oc64kh3ph1",
            "g4mb8ic64ih28oc64kh3ph1", "g16mb8ic64ih28oc64kh7ph3sh2"}) {
        const ConvolutionOperands groups = operands(line);
        add(make_convolution(groups.spec, groups.x, groups.w, groups.y), "grouped_nhwc_mma");
        add(make_convolution_dgrad(groups.spec, groups.w, groups.y, groups.x), "grouped_nhwc_mma");
      }
      for (const char* line : {"g16mb8ic64ih28oc64kh3ph1", "g32mb8ic32ih28oc128kh3ph1"}) {
        const ConvolutionOperands groups = operands(line);
        add(make_convolution(groups.spec, groups.x, groups.w, groups.y), "depthwise_nhwc_fma");
        add(make_convolution_dgrad(groups.spec, groups.w, groups.y, groups.x),
            "depthwise_nhwc_fma");
        add(make_convolution_wgrad(groups.spec, groups.x, groups.y, groups.w),
            "wgrad_depthwise_nhwc_fma");
      }
      for (const char* line :
           {"g64mb8ic64ih28oc64kh5ph2", "g96mb8ic96ih56oc96kh7ph3", "g64mb8ic64ih56oc64kh31ph15"}) {
        const ConvolutionOperands channels = operands(line);
        for (const char* engine : {"depthwise_halo_nhwc_fma", "toeplitz_nhwc_mma"})
          add(make_convolution(channels.spec, channels.x, channels.w, channels.y), engine);
        for (const char* engine : {"wgrad_toeplitz_nhwc_mma", "wgrad_depthwise_nhwc_mma"})
          add(make_convolution_wgrad(channels.spec, channels.x, channels.y, channels.w), engine);
      }
      for (const char* line :
           {"g64mb8ic64ih28oc64kh5ph2", "g16mb8ic64ih28oc64kh3ph1", "g4mb8ic64ih28oc64kh3ph1sh2",
            "g32mb8ic32ih28oc128kh3ph1", "g32mb8ic32ih28oc32kh31ph15"}) {
        const ConvolutionOperands groups = operands(line);
        add(make_convolution_wgrad(groups.spec, groups.x, groups.y, groups.w),
            "wgrad_grouped_nhwc_mma");
      }
      for (const char* line :
           {"g4mb8ic128ih28oc128kh3ph1", "mb8ic128id8ih28iw28oc128kd3kh3kw3pd1ph1pw1"}) {
        const ConvolutionOperands dense = operands(line);
        add(make_convolution(dense.spec, dense.x, dense.w, dense.y), "dense_halo_nhwc_wgmma");
        add(make_convolution_dgrad(dense.spec, dense.w, dense.y, dense.x), "dense_nhwc_wgmma");
        add(make_convolution_wgrad(dense.spec, dense.x, dense.y, dense.w),
            "wgrad_dense_nhwc_wgmma");
      }
      for (const char* line :
           {"mb8ic3ih224oc64kh7ph3sh2", "mb8ic3ih224oc64kh3ph1", "mb1ic128ih512oc3kh3ph1",
            "mb8ic3ih224oc96kh4sh4", "mb8ic3ih224oc768kh16sh16"}) {
        const ConvolutionOperands image = operands(line);
        add(make_convolution(image.spec, image.x, image.w, image.y), "few_input_channels_nhwc_mma");
        add(make_convolution_dgrad(image.spec, image.w, image.y, image.x),
            "few_input_channels_nhwc_mma");
      }
      const ConvolutionOperands few = operands("mb8ic3ih224oc64kh7ph3sh2");
      for (const char* engine : {"wgrad_nchw_mma", "wgrad_nchw_wgmma_swap"})
        add(make_convolution_wgrad(few.spec, few.x, few.y, few.w), engine);
    }
    for (const char* line :
         {"mb8ic3ih128oc96kh11", "mb8ic5ih64oc64kh11ph5", "mb8ic3ih64oc64kh3ph1",
          "mb8ic3ih200oc64kh9ph4", "mb8ic8ih64oc64kh8", "mb8ic3ih224oc64kh7ph3sh2",
          "mb8ic3ih224oc768kh16sh16", "mb8ic3id8ih112iw112oc64kd3kh7kw7pd1ph3pw3sd1sh2sw2"}) {
      const ConvolutionOperands few = operands(line);
      for (const char* engine : {"few_output_channels_mma", "few_output_channels_wgmma"})
        add(make_convolution_dgrad(few.spec, few.w, few.y, few.x), engine);
    }
  }
  return out;
}

std::string engine_of(const Problem& problem, const std::string& arch) {
  std::vector<EngineRefusal> refusals;
  return choose(problem, known_architecture(arch), {}, refusals).kernel.engine;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  kiln_test::ShareOfCases share(3, true);
  int turn = 0;
  for (const char* arch : {"sm_75", "sm_80", "sm_89", "sm_90a", "sm_100", "sm_120"})
    for (DataType type : {KILN_DATA_FLOAT, KILN_DATA_DOUBLE, KILN_DATA_HALF, KILN_DATA_BFLOAT16})
      // Everything on the chip that is measured; elsewhere layouts and types take turns.
      for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
        const bool measured = std::string(arch) == "sm_90a";
        if (!measured && turn++ % 3 != 0) continue;
        for (const Problem& problem : problems(type, layout, measured || turn % 2 == 0))
          if (!kiln_test::quick_tier() || share.takes(engine_of(problem, arch), type, layout, arch))
            out.push_back({problem, arch});
        if (type == KILN_DATA_BFLOAT16) continue;  // its tiles are those of f16
        for (Case& each : every_tile(type, layout, arch)) {
          const auto& [engine, tile] = std::tie(each.option->name.engine, each.option->name.tile);
          if (share.takes(kiln_test::quick_tier() ? engine : cat(engine, " ", tile), type, layout,
                          arch))
            out.push_back(std::move(each));
        }
      }
  return out;
}

// Matrix products and depthwise sums whose registers are bounded, so that two blocks or three
// warpgroups fit on a multiprocessor, spill a few words on some chips, which most main loops read
// again once in hundreds of instructions or not at all; most words, 24, tf32's data gradient by
// halo_nhwc_mma's 128x128, whose loop of 400 instructions reads 13. Nothing else spills.
constexpr int most_spilled = 96;  // bytes

constexpr std::string_view may_spill[] = {
    "implicit_gemm_mma",
    "implicit_gemm_fma",
    "halo_nchw_mma",
    "halo_nchw_wgmma",
    "halo_nchw_wgmma_swap",
    "halo_nhwc_mma",
    "halo_nhwc_wgmma",
    "halo_nhwc_wgmma_swap",
    "few_input_channels_mma",
    "few_input_channels_wgmma_swap",
    "few_output_channels_mma",
    "few_output_channels_wgmma",
    "wgrad_implicit_gemm_mma",
    "wgrad_implicit_gemm_fma",
    "wgrad_nhwc_mma",
    "wgrad_nchw_mma",
    "wgrad_nchw_wgmma_swap",
    "depthwise_nhwc_fma",
    "wgrad_depthwise_nhwc_mma",
    "local_dgrad_fma",
};

int allowed_spill(const KernelSpec& spec) {
  return std::ranges::find(may_spill, spec.engine) == std::end(may_spill) ? 0 : most_spilled;
}

int spilled(const std::string& log) {
  const std::size_t at = log.find(" bytes spill stores");
  if (at == std::string::npos) return -1;
  return std::stoi(log.substr(log.rfind(' ', at - 1) + 1));
}

// The compiler's output, from this run or an earlier one.
std::string log_of(const std::string& source, const std::string& name,
                   const std::vector<std::string>& options, const Compiler& nvrtc) {
  kiln_test::Question question;
  question.add(source).add(name).add(nvrtc.identity());
  for (const std::string& option : options) question.add(option);
  const std::vector<std::byte> log = kiln_test::remembered(question, [&] {
    const std::string text = nvrtc.compile(source, name, options).log;
    const auto bytes = std::as_bytes(std::span(text));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  });
  return {reinterpret_cast<const char*>(log.data()), log.size()};
}

// "", or the fault. `where` begins every message.
std::string compile(const KernelSpec& spec, const std::string& arch, const std::string& where,
                    const Compiler& nvrtc) {
  std::vector<std::string> options = nvrtc_options(arch, spec.quick_assembly);
  options.push_back("--ptxas-options=-v");
  const std::string source = generate_source(spec, KILN_DEVICE_CUDA);
  const std::string log = log_of(source, spec.entry, options, nvrtc);
  const int bytes = spilled(log);
  if (bytes > 0) kiln_test::report(cat(where, spec.engine, " ", spec.tile, " spills ", bytes));
  if (bytes < 0 || bytes > allowed_spill(spec))
    return cat(where, spec.engine, " ", spec.tile, " spills ", bytes, " bytes\n", log);
  return "";
}
std::string compile(const Case& item, const Compiler& nvrtc) {
  const std::string where = cat(text_of(item.problem), " ", item.arch, ": ");
  try {
    std::vector<EngineRefusal> refusals;
    const Proposal proposal = item.option ? item.option->choice.proposal
                                          : choose(item.problem, known_architecture(item.arch),
                                                   {.workspace = most_workspace}, refusals);
    std::string faults = compile(proposal.kernel, item.arch, where, nvrtc);
    for (const Step& step : proposal.then) faults += compile(step.kernel, item.arch, where, nvrtc);
    return faults;
  } catch (const Error& error) {
    return where + std::string(error.what()).substr(0, 2000) + "\n";
  }
}

// The identifiers of a kernel's text but for what is generated of it, which comes first.
std::set<std::string, std::less<>> identifiers(const std::string& source) {
  std::set<std::string, std::less<>> out;
  for (std::size_t at = source.find("// ---- "); at < source.size();) {
    const auto is_part = [&](std::size_t i) {
      return i < source.size() &&
             (std::isalnum(static_cast<unsigned char>(source[i])) || source[i] == '_');
    };
    if (source.compare(at, 2, "//") == 0) {
      at = source.find('\n', at);
    } else if (is_part(at)) {
      std::size_t end = at;
      while (is_part(end)) ++end;
      out.insert(source.substr(at, end - at));
      at = end;
    } else {
      ++at;
    }
  }
  return out;
}

// Names of constants, without what a macro takes.
std::string_view name_of(const Constant& constant) {
  return std::string_view(constant.name).substr(0, constant.name.find('('));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kernel_compile)

// A constant that is generated and that no kernel file names is left from something that is gone.
BOOST_AUTO_TEST_CASE(every_constant_is_read_by_some_kernel) {
  std::set<std::string, std::less<>> generated, read;
  std::map<std::string, int> kernels;  // of a file
  constexpr int most = 2;
  const auto add = [&](const Step& step) {
    if (kernels[step.kernel.file]++ >= most) return;
    for (const Constant& constant : step.kernel.constants) generated.emplace(name_of(constant));
    read.merge(identifiers(generate_source(step.kernel, KILN_DEVICE_CUDA)));
  };
  for (const DataType type : {KILN_DATA_FLOAT, KILN_DATA_DOUBLE, KILN_DATA_HALF})
    for (const kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
      for (const Problem& problem : problems(type, layout, true))
        for (const Option& option :
             all_candidates(problem, known_architecture("sm_90a"), most_workspace)) {
          add(option.choice.proposal);
          for (const Step& step : option.choice.proposal.then) add(step);
        }
      for (const Case& item : every_tile(type, layout, "sm_90a")) add(item.option->choice.proposal);
    }
  const auto is_read = [&](const std::string& name) {
    const std::size_t pasted = name.find("_STRIDE_");  // behind a tensor's name, by a macro
    return read.contains(name) || read.contains(name + "_MUL") ||
           (pasted < name.size() && read.contains(name.substr(pasted)));
  };
  for (const std::string& name : generated) BOOST_TEST(is_read(name), name << " is read nowhere");
}

BOOST_AUTO_TEST_CASE(all_architectures_without_spills) {
  std::string why;
  const auto nvrtc = find_nvrtc(why);
  BOOST_REQUIRE_MESSAGE(nvrtc, why);
  const std::vector<Case> all = cases();
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::string faults;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] {
      for (std::size_t index; (index = next++) < all.size();) {
        const std::string fault = compile(all[index], *nvrtc);
        std::lock_guard lock(mutex);
        faults += fault;
      }
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(faults.empty(), faults);
  BOOST_TEST_MESSAGE(all.size() << " kernels compiled");
}

BOOST_AUTO_TEST_SUITE_END()
