// Every tile of every engine compiles for every architecture, and the main tiles keep everything in
// registers: ptxas reports no spill and no stack.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "codegen/source.hpp"
#include "compile/compiler.hpp"
#include "core/error.hpp"
#include "engines/engine.hpp"
#include "problem/problem_line.hpp"

namespace {

using namespace kiln;

struct Case {
  const char* line;
  DataType type;
  kilnTensorFormat_t layout;
  std::string arch;
};

std::vector<Case> cases() {
  // The four widths of a tile, by the filters of the problem; padded, so that bounds are checked.
  constexpr const char* lines[] = {"mb8ic64ih28oc128kh3ph1", "mb8ic64ih28oc96kh3ph1",
                                   "mb8ic64ih28oc64kh3ph1", "mb8ic64ih28oc32kh3ph1",
                                   "g64mb8ic64ih28oc64kh3ph1"};
  std::vector<Case> out;
  int turn = 0;
  for (const char* arch : {"sm_75", "sm_80", "sm_89", "sm_90a", "sm_100", "sm_120"})
    for (const char* line : lines)
      for (DataType type : {KILN_DATA_FLOAT, KILN_DATA_DOUBLE, KILN_DATA_HALF, KILN_DATA_BFLOAT16})
        // Both layouts on the chip that is measured; elsewhere they take turns.
        for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC})
          if (std::string(arch) == "sm_90a" || turn++ % 2 == 0)
            out.push_back({line, type, layout, arch});
  return out;
}

// "" or what is wrong.
std::string compile(const Case& item, const Compiler& nvrtc) {
  const DeviceDescription device = known_architecture(item.arch);
  const ConvolutionProblem problem = make_convolution(parse_convolution_line(item.line), item.type,
                                                      item.layout, KILN_CROSS_CORRELATION);
  std::string faults;
  for (const Engine* engine : engines()) {
    auto answer = engine->propose(problem, device);
    if (!std::holds_alternative<Proposal>(answer)) continue;
    const KernelSpec& spec = std::get<Proposal>(answer).kernel;
    std::vector<std::string> options = nvrtc.options(item.arch);
    options.push_back("--ptxas-options=-v");
    const std::string where = cat(engine->name(), " ", spec.tile, ", ", name_of(item.type), " ",
                                  item.arch, " ", item.line, ": ");
    try {
      const Compiled compiled =
          nvrtc.compile(generate_source(spec, KILN_DEVICE_CUDA), spec.entry, options);
      if (compiled.log.find("spill stores") == std::string::npos)
        faults += where + "ptxas reported no resource use\n" + compiled.log;
      else if (compiled.log.find(
                   "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") ==
               std::string::npos)
        faults += where + "spills\n" + compiled.log;
    } catch (const Error& error) {
      faults += where + std::string(error.what()).substr(0, 2000) + "\n";
    }
    break;
  }
  return faults;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kernel_compile)

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
