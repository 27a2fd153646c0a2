// A kernel's resources according to its cubin, and how many of its blocks a multiprocessor holds.
#include <boost/test/unit_test.hpp>

#include "compile/compiler.hpp"
#include "compile/cubin.hpp"
#include "core/error.hpp"
#include "device/occupancy.hpp"

namespace {

using namespace kiln;

// One kernel has 400 bytes of shared memory, and one needs more registers than there are.
constexpr const char* source = R"(
extern "C" __global__ void shares(float* p) {
  __shared__ float s[100];
  s[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = s[99 - threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(1024, 2) spills(double* p) {
  double v[64];
  for (int i = 0; i < 64; ++i) v[i] = p[i * 1024 + threadIdx.x];
  __syncthreads();
  for (int i = 0; i < 64; ++i) p[i * 1024 + threadIdx.x] = v[i] * v[63 - i];
}
)";

void check(const BlockNeeds& block, const char* arch, int blocks, const std::string& limit) {
  const Occupancy found = occupancy_of(block, known_architecture(arch));
  BOOST_TEST_CONTEXT(arch << ", " << block.threads << " threads, " << block.registers
                          << " registers, " << block.shared_memory << " bytes") {
    BOOST_TEST(found.blocks == blocks);
    BOOST_TEST(found.limit == limit);
    BOOST_TEST(found.warps == blocks * ((block.threads + 31) / 32));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(resources)

BOOST_AUTO_TEST_CASE(of_a_cubin) {
  std::string why;
  const auto compiler = find_nvrtc(why);
  if (!compiler) {
    BOOST_TEST_MESSAGE("skipped: " << why);
    return;
  }
  for (const char* arch : {"sm_75", "sm_80", "sm_90a", "sm_100", "sm_120"}) {
    BOOST_TEST_CONTEXT(arch) {
      const Compiled compiled = compiler->compile(source, "test.cu", nvrtc_options(arch));
      const KernelResources shares = resources_of(compiled.binary, "shares");
      BOOST_TEST(shares.shared_memory == 400);
      BOOST_TEST(shares.local_memory == 0);
      BOOST_TEST(shares.registers > 4);
      BOOST_TEST(shares.registers < 32);
      BOOST_TEST(shares.code_bytes > 100);
      const KernelResources spills = resources_of(compiled.binary, "spills");
      BOOST_TEST(spills.shared_memory == 0);
      BOOST_TEST(spills.local_memory > 0);
      BOOST_TEST(spills.registers <= 64);
      BOOST_CHECK_THROW(resources_of(compiled.binary, "absent"), Error);
      // A cubin that is truncated anywhere is refused or read without a fault.
      const std::size_t step = compiled.binary.size() / 200 + 1;
      for (std::size_t size = 0; size < compiled.binary.size(); size += step) try {
          resources_of(std::span(compiled.binary).first(size), "shares");
        } catch (const Error&) {
        }
    }
  }
}

// Expected values are computed by hand from the CUDA C++ Programming Guide's table of technical
// specifications.
BOOST_AUTO_TEST_CASE(occupancy) {
  check({256, 32, 0}, "sm_90a", 8, "threads");
  check({256, 33, 0}, "sm_90a", 6, "registers");   // 40 x 32 = 1280: 12 warps a quarter, 48
  check({256, 128, 0}, "sm_90a", 2, "registers");  // 4096: 4 warps a quarter
  check({256, 129, 0}, "sm_90a", 1, "registers");
  check({1024, 64, 0}, "sm_90a", 1, "registers");
  check({32, 16, 0}, "sm_90a", 32, "blocks");
  check({32, 16, 0}, "sm_86", 16, "blocks");
  check({32, 16, 0}, "sm_89", 24, "blocks");
  check({65, 16, 0}, "sm_75", 10, "threads");
  check({128, 32, 48 * 1024}, "sm_90a", 4, "shared memory");   // a block takes 49 KiB of 228
  check({128, 32, 227 * 1024}, "sm_90a", 1, "shared memory");  // a block takes all
  check({128, 32, 48 * 1024}, "sm_86", 2, "shared memory");
  check({128, 32, 32 * 1024}, "sm_75", 2, "shared memory");  // the system reserves nothing there
  check({256, 0, 0}, "sm_80", 8, "threads");
}

BOOST_AUTO_TEST_SUITE_END()
