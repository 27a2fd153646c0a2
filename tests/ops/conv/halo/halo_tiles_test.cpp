// The halo engines by mma.sync, NHWC and NCHW: every tile shape and split count.
#include <boost/test/unit_test.hpp>
#include <initializer_list>

#include "ops/conv/halo/halo_case.hpp"

BOOST_AUTO_TEST_SUITE(halo_tiles)

namespace {

using namespace test;

bool has_clusters() {
  const DeviceDescription& description = device()->description();
  return description.kind == KILN_DEVICE_HOST || description.compute_capability >= 90;
}

// Checks the tile with a split count of one and with larger ones.
void check_tile(const RecipeEngine<HaloMmaTile>& halo, const HaloMmaTile& tile,
                const OperationCase& item, const HostTensor& want,
                const ConvolutionProblem& problem, std::initializer_list<int> all_parts,
                kiln_test::ShareOfCases& share) {
  for (const int parts : all_parts) {
    if ((parts > 1 && !has_clusters()) ||
        !share.takes(cat(halo.name(), " ", describe(tile)), parts, problem.pass,
                     text_of(Arithmetic{problem.type(), problem.math})))
      continue;
    const std::string fault = difference(
        run_proposal(item, halo.propose(tile, problem, device()->description(), {parts})), want);
    BOOST_TEST(fault.empty(),
               halo.name() << ", " << describe(tile) << ", " << parts << " parts: " << fault);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_shape_and_every_split) {
  kiln_test::ShareOfCases share = share_of_cases();
  const std::shared_ptr<Device> on = device();
  const DeviceDescription& description = on->description();
  for (const EngineOfLayout& engine : all_engines())
    for (const Arithmetic& arithmetic : engine.all_arithmetics()) {
      if (arithmetic.type == KILN_DATA_BFLOAT16) continue;  // as f16
      const RecipeEngine<HaloMmaTile>& halo = *engine.halo;
      const ConvolutionProblem problem =
          halo_problem("mb2ic24ih9iw10oc72kh3ph1", engine, arithmetic);
      const OperationCase item = integers_of(problem);
      const HostTensor want = item.expected();
      for (const HaloMmaTile& tile : halo.tiles(problem, description))
        check_tile(halo, tile, item, want, problem, {1, 2, 5}, share);
    }
}

// Tiles whose accumulators do not fit into shared memory together, as on chips with less of it.
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
        for (const HaloMmaTile& tile : engine.halo->tiles(problem, small)) {
          if (tile.staged) continue;
          ++checked;
          check_tile(*engine.halo, tile, item, want, problem, {1, 2}, share);
        }
      }
      BOOST_TEST(checked > 0);
    }
}

// Halos so large that only one fits: loading the next one has to wait for the products of this one.
BOOST_AUTO_TEST_CASE(one_halo_at_a_time) {
  kiln_test::ShareOfCases share = share_of_cases();
  const RecipeEngine<HaloMmaTile>& halo = channels_last;
  for (const Arithmetic& arithmetic : arithmetics) {
    const ConvolutionProblem problem =
        problem_in("mb3_ic72_ih25iw25_oc24_kh4kw4_dh2dw2", arithmetic, KILN_TENSOR_NHWC);
    const OperationCase item = integers_of(problem);
    const HostTensor want = item.expected();
    int checked = 0;
    for (const HaloMmaTile& tile : halo.tiles(problem, device()->description())) {
      if (tile.halo_stages > 1 || ++checked > 2) continue;
      check_tile(halo, tile, item, want, problem, {1, 2}, share);
    }
    BOOST_TEST(checked > 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()
