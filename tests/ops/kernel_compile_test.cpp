// Compiles, for every architecture, the kernels of the lists' problems (in the quick tier one of
// each engine) and a third of all engines' tiles (all with KILN_TEST_FULL=1). Checks that ptxas
// reports no spills except for the kernels in may_spill.
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
#include "ops/kernel_cases.hpp"
#include "support/counts.hpp"
#include "support/memory.hpp"

BOOST_AUTO_TEST_SUITE(kernel_compile)

namespace {

using namespace test;

std::string engine_of(const Problem& problem, const std::string& arch) {
  std::vector<EngineRefusal> refusals;
  return choose(problem, known_architecture(arch), {}, refusals).first().kernel.engine;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  kiln_test::ShareOfCases share(3, true);
  int turn = 0;
  for (const char* arch : {"sm_75", "sm_80", "sm_89", "sm_90a", "sm_100", "sm_120"})
    for (DataType type : {KILN_DATA_FLOAT, KILN_DATA_DOUBLE, KILN_DATA_HALF, KILN_DATA_BFLOAT16})
      // sm_90a, which is measured, gets all combinations; on others, layouts and types take turns.
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

// Some matrix products and depthwise sums have limited registers, so that two blocks or three
// warpgroups fit on a multiprocessor. They spill a few words on some chips; most main loops read
// these once in hundreds of instructions or not at all. The most words, 24, are those of the data
// gradient in TF32 by halo_nhwc_mma's 128x128, whose loop of 400 instructions reads 13. No other
// kernel may spill.
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
    "wgrad_few_channels_mma",
    "wgrad_nhwc_mma",
    "wgrad_nchw_mma",
    "wgrad_nchw_wgmma_swap",
    "depthwise_nhwc_fma",
    "depthwise_halo_nhwc_fma",
    "depthwise_rows_nhwc_fma",
    "wgrad_depthwise_rows_nhwc_fma",
    "wgrad_depthwise_nhwc_mma",
    "local_dgrad_fma",
};

// Dense kernels with sums in their epilogue: a tile of 64x256 in TF32 has a word more than there
// are registers, with one store and one load of it in all its code. So have normalizations whose
// threads hold the statistics of eight channels, on some chips.
constexpr std::string_view sums_may_spill[] = {"dense_moments_wgmma", "dense_gradient_wgmma",
                                               "rows"};
constexpr int most_spilled_by_sums = 16;  // bytes

int allowed_spill(const KernelSpec& spec) {
  if (std::ranges::find(sums_may_spill, spec.entry) != std::end(sums_may_spill))
    return most_spilled_by_sums;
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

// What was asked for so far. Cases that differ in what their kernel is chosen for, not in its code,
// such as copies into another layout, ask for it once.
class Asked {
 public:
  bool is_new(const KernelSpec& spec, const std::vector<std::string>& options,
              const std::string& source) {
    kiln_test::Question question;
    question.add(spec.engine).add(source.substr(source.find('\n')));  // behind the tile's name
    for (const std::string& option : options) question.add(option);
    const std::lock_guard lock(mutex_);
    return questions_.insert(question.name()).second;
  }

 private:
  std::mutex mutex_;
  std::set<std::string> questions_;
};

// Compiles a kernel. Returns "", or the fault, which begins with `where`.
std::string compile(const KernelSpec& spec, const std::string& arch, const std::string& where,
                    const Compiler& nvrtc, Asked& asked) {
  std::vector<std::string> options = nvrtc_options(arch, spec.quick_assembly);
  options.push_back("--ptxas-options=-v");
  const std::string source = generate_source(spec, KILN_DEVICE_CUDA);
  if (!asked.is_new(spec, options, source)) return "";
  const std::string log = log_of(source, spec.entry, options, nvrtc);
  const int bytes = spilled(log);
  if (bytes > 0) kiln_test::report(cat(where, spec.engine, " ", spec.tile, " spills ", bytes));
  if (bytes < 0 || bytes > allowed_spill(spec))
    return cat(where, spec.engine, " ", spec.tile, " spills ", bytes, " bytes\n", log);
  return "";
}
std::string compile(const Case& item, const Compiler& nvrtc, Asked& asked) {
  const std::string where = cat(text_of(item.problem), " ", item.arch, ": ");
  try {
    std::vector<EngineRefusal> refusals;
    const Proposal proposal = item.option ? item.option->choice.proposal
                                          : choose(item.problem, known_architecture(item.arch),
                                                   {.workspace = most_workspace}, refusals);
    std::string faults;
    for (const Step& step : proposal.steps)
      faults += compile(step.kernel, item.arch, where, nvrtc, asked);
    return faults;
  } catch (const Error& error) {
    return where + std::string(error.what()).substr(0, 2000) + "\n";
  }
}

// The identifiers of a kernel's text, without its generated part, which comes first.
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

// The name of a constant, without a macro's parameters.
std::string_view name_of(const Constant& constant) {
  return std::string_view(constant.name).substr(0, constant.name.find('('));
}

}  // namespace

// A generated constant that none of its kernels names is a remnant of removed code. (Constants come
// in lists that engines share, such as a gather's geometry, and a kernel may leave some unread.)
BOOST_AUTO_TEST_CASE(every_constant_is_read_by_some_kernel) {
  std::set<std::string, std::less<>> generated, read;
  std::map<std::string, int> kernels;  // the number of kernels that were read, by file
  constexpr int most = 2;
  const auto add = [&](const Step& step) {
    if (kernels[step.kernel.file]++ >= most) return;
    const auto named = identifiers(generate_source(step.kernel, KILN_DEVICE_CUDA));
    const auto is_read = [&](const std::string& name) {
      const std::size_t pasted = name.find("_STRIDE_");  // a macro puts the tensor's name before it
      return named.contains(name) || named.contains(name + "_MUL") ||
             (pasted < name.size() && named.contains(name.substr(pasted)));
    };
    for (const Constant& constant : step.kernel.constants) {
      const std::string name(name_of(constant));
      generated.insert(name);
      if (is_read(name)) read.insert(name);
    }
  };
  for (const DataType type : {KILN_DATA_FLOAT, KILN_DATA_DOUBLE, KILN_DATA_HALF})
    for (const kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
      for (const Problem& problem : problems(type, layout, true))
        for (const Option& option :
             all_candidates(problem, known_architecture("sm_90a"), most_workspace)) {
          for (const Step& step : option.choice.proposal.steps) add(step);
        }
      for (const Case& item : every_tile(type, layout, "sm_90a"))
        add(item.option->choice.proposal.first());
    }
  for (const std::string& name : generated)
    BOOST_TEST(read.contains(name), name << " is read nowhere");
}

BOOST_AUTO_TEST_CASE(all_architectures_without_spills) {
  std::string why;
  const auto nvrtc = find_nvrtc(why);
  BOOST_REQUIRE_MESSAGE(nvrtc, why);
  const std::vector<Case> all = cases();
  Asked asked;
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::string faults;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] {
      for (std::size_t index; (index = next++) < all.size();) {
        const std::string fault = compile(all[index], *nvrtc, asked);
        std::lock_guard lock(mutex);
        faults += fault;
      }
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(faults.empty(), faults);
  BOOST_TEST_MESSAGE(all.size() << " kernels compiled");
}

BOOST_AUTO_TEST_SUITE_END()
