// The engines whose tiles keep the source's halo in shared memory, channels-last and planar: every
// shape and every split, where tiles meet edges, and what f32 in three products owes to f32.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "engines/halo_gemm.hpp"
#include "engines/halo_gemm_planar.hpp"
#include "tensor_core_case.hpp"

namespace {

using namespace test;

struct EngineOfLayout {
  const HaloEngine* halo;
  kilnTensorFormat_t layout;
  enum { ANY, WITH_F64, F32, SPLIT } types = ANY;

  const char* name() const { return halo->name(); }
  bool is_for(const Arithmetic& arithmetic) const {
    const bool f32 = arithmetic.type == KILN_DATA_FLOAT;
    if (types == SPLIT) return f32 && arithmetic.math == KILN_MATH_DEFAULT;
    return types != F32 || f32;
  }
  // Those that it is for.
  std::vector<Arithmetic> all_arithmetics() const {
    std::vector<Arithmetic> all;
    for (const Arithmetic& arithmetic : arithmetics)
      if (is_for(arithmetic)) all.push_back(arithmetic);
    if (types == WITH_F64) all.push_back({KILN_DATA_DOUBLE, KILN_MATH_DEFAULT});
    return all;
  }
};

const HaloGemmEngine channels_last;
const HaloGemmPlanarEngine planar;
const HaloGemmWgmmaEngine channels_last_by_warpgroups;
const HaloGemmPlanarWgmmaEngine planar_by_warpgroups;

// Those that the device has.
std::vector<EngineOfLayout> all_engines() {
  std::vector<EngineOfLayout> all = {{&channels_last, KILN_TENSOR_NHWC},
                                     {&planar, KILN_TENSOR_NCHW, EngineOfLayout::WITH_F64}};
  if (has_warpgroups()) {
    all.push_back({&channels_last_by_warpgroups, KILN_TENSOR_NHWC, EngineOfLayout::SPLIT});
    all.push_back({&planar_by_warpgroups, KILN_TENSOR_NCHW, EngineOfLayout::F32});
  }
  return all;
}

ConvolutionProblem halo_problem(const char* line, const EngineOfLayout& engine,
                                const Arithmetic& arithmetic,
                                ConvolutionPass pass = ConvolutionPass::fprop,
                                kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return problem_in(line, arithmetic, engine.layout, pass, mode);
}

void check_exact(const OperationCase& item, const EngineOfLayout& engine) {
  check_integers(item, engine.name());
}

bool has_clusters() {
  const DeviceDescription& description = device()->description();
  return description.kind == KILN_DEVICE_HOST || description.compute_capability >= 90;
}

// The tile, by one block and by clusters.
void check_tile(const HaloEngine& halo, const HaloTile& tile, const OperationCase& item,
                const HostTensor& want, const ConvolutionProblem& problem, const Gather& gather,
                std::initializer_list<int> all_parts, kiln_test::ShareOfCases& share) {
  for (const int parts : all_parts) {
    if ((parts > 1 && !has_clusters()) || !share.takes()) continue;
    const std::string fault =
        difference(run_proposal(item, halo.propose(tile, problem, gather, parts)), want);
    BOOST_TEST(fault.empty(),
               halo.name() << ", " << describe(tile) << ", " << parts << " parts: " << fault);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(halo_tiles)

BOOST_AUTO_TEST_CASE(every_shape_and_every_split) {
  kiln_test::ShareOfCases share = share_of_cases();
  const std::shared_ptr<Device> on = device();
  const DeviceDescription& description = on->description();
  for (const EngineOfLayout& engine : all_engines())
    for (const Arithmetic& arithmetic : engine.all_arithmetics()) {
      if (arithmetic.type == KILN_DATA_BFLOAT16) continue;  // as f16
      const HaloEngine& halo = *engine.halo;
      const ConvolutionProblem problem =
          halo_problem("mb2ic24ih9iw10oc72kh3ph1", engine, arithmetic);
      const OperationCase item = integers_of(problem);
      const HostTensor want = item.expected();
      const Gather gather = make_gather(problem);
      for (const HaloTile& tile : halo.tiles(problem, gather, description))
        check_tile(halo, tile, item, want, problem, gather, {1, 2, 5}, share);
    }
}

// Tiles whose sums have no room in shared memory together, as on chips that have less of it.
BOOST_AUTO_TEST_CASE(sums_line_by_line) {
  kiln_test::ShareOfCases share = share_of_cases();
  DeviceDescription small = device()->description();
  small.shared_memory_per_block = 99 * 1024;
  small.shared_memory_per_multiprocessor = 100 * 1024;
  for (const EngineOfLayout& engine :
       {EngineOfLayout{&channels_last, KILN_TENSOR_NHWC},
        EngineOfLayout{&planar, KILN_TENSOR_NCHW, EngineOfLayout::WITH_F64}})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      int checked = 0;
      for (const Arithmetic& arithmetic : engine.all_arithmetics()) {
        if (arithmetic.type == KILN_DATA_BFLOAT16) continue;  // as f16
        const ConvolutionProblem problem =
            problem_in("mb2ic40ih11iw13oc72kh3ph1", arithmetic, engine.layout, pass);
        const OperationCase item = integers_of(problem);
        const HostTensor want = item.expected();
        const Gather gather = make_gather(problem);
        for (const HaloTile& tile : engine.halo->tiles(problem, gather, small)) {
          if (tile.staged) continue;
          ++checked;
          check_tile(*engine.halo, tile, item, want, problem, gather, {1, 2}, share);
        }
      }
      BOOST_TEST(checked > 0);
    }
}

// Halos of which no two have room: the next one is waited for.
BOOST_AUTO_TEST_CASE(one_halo_at_a_time) {
  kiln_test::ShareOfCases share = share_of_cases();
  const HaloEngine& halo = channels_last;
  for (const Arithmetic& arithmetic : arithmetics) {
    const ConvolutionProblem problem =
        problem_in("mb3_ic72_ih25iw25_oc24_kh4kw4_dh2dw2", arithmetic, KILN_TENSOR_NHWC);
    const OperationCase item = integers_of(problem);
    const HostTensor want = item.expected();
    const Gather gather = make_gather(problem);
    int checked = 0;
    for (const HaloTile& tile : halo.tiles(problem, gather, device()->description())) {
      if (tile.halo_stages > 1 || ++checked > 2) continue;
      check_tile(halo, tile, item, want, problem, gather, {1, 2}, share);
    }
    BOOST_TEST(checked > 0);
  }
}

// Sizes that are multiples of nothing, padding as large as the filter, strides, dilations, groups,
// rows of taps that no pixel of a tile meets, filters of one row and of one column, tiles over
// several images and images over several strips, and a gradient of a single pixel, which begins at
// the second tap.
BOOST_AUTO_TEST_CASE(edges) {
  int turn = 0, checked = 0;
  for (const char* line :
       {"mb3_ic40ih9iw7_oc24_kh3kw3_ph1pw1", "mb3_ic48ih11iw13_oc40_kh1kw3_ph0pw1",
        "mb2_ic48ih15iw11_oc50_kh3kw1", "g2mb5_ic64ih6iw6_oc64_kh2kw3_ph1pw2_dh1dw1",
        "mb1_ic32ih15iw31_oc48_kh5kw5_ph2pw2", "mb2_ic32ih13iw9_oc72_kh3kw3_ph1pw1_sh2sw2",
        "mb20_ic16ih3iw3_oc40_kh3kw3_ph1pw1", "mb1_ic16ih17iw18_oc24_kh9kw9_ph8pw8",
        "mb1_ic16ih5iw70_oc24_kh4kw3_ph3pw1_dh1dw2", "mb2_ic96ih1iw1_oc96_kh3kw3_sh2sw2_ph1pw1"})
    for (const EngineOfLayout& engine : all_engines()) {
      const std::vector<Arithmetic> all = engine.all_arithmetics();
      for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad})
        for (const kilnConvolutionMode_t mode : {KILN_CROSS_CORRELATION, KILN_CONVOLUTION}) {
          const Arithmetic arithmetic = all[static_cast<std::size_t>(turn++ / 3) % all.size()];
          const ConvolutionProblem problem = halo_problem(line, engine, arithmetic, pass, mode);
          std::vector<EngineRefusal> refusals;
          try {
            choose(problem, device()->description(), engine.name(), refusals);
          } catch (const Error&) {  // a stride's phases, a single tap, channels that are no vectors
            continue;
          }
          check_exact(integers_of(problem), engine);
          ++checked;
        }
    }
  BOOST_TEST(checked >= 55);
}

// Sums so long that they are promoted through local memory.
BOOST_AUTO_TEST_CASE(long_sums) {
  for (const EngineOfLayout& engine : all_engines())
    for (const Arithmetic& arithmetic : engine.all_arithmetics())
      check_exact(integers_of(halo_problem("mb1_ic1040ih4iw4_oc16_kh3kw3", engine, arithmetic)),
                  engine);
}

// In f32 an infinity meets the rests of numbers that have none.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  for (const EngineOfLayout& engine : all_engines())
    for (const Arithmetic& arithmetic : engine.all_arithmetics()) {
      OperationCase item =
          integers_of(halo_problem("mb2ic16ih8iw8oc20kh3ph0", engine, arithmetic), 5);
      item["x"].at(20) = std::nan("");
      item["x"].at(300) = std::numeric_limits<double>::infinity();
      item["x"].at(1100) = -std::numeric_limits<double>::infinity();
      item["w"].at(777) = std::numeric_limits<double>::infinity();
      for (const char* tensor : {"x", "w"})
        for (double& value : item[tensor].values) value = value == 0 ? 1 : value;
      check_exact(item, engine);
    }
}

BOOST_AUTO_TEST_CASE(three_products_err_no_more_than_f32) {
  for (const EngineOfLayout& engine : all_engines())
    check_error_of_three_products(engine.name(),
                                  {.channels = 72, .size = 9, .filters = 24, .taps = 5},
                                  engine.layout, engine.types != EngineOfLayout::SPLIT);
}

BOOST_AUTO_TEST_SUITE_END()
