// The halo engines: tiles at edges, long sums, and the accuracy of 3xTF32.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "ops/conv/halo/halo_case.hpp"

BOOST_AUTO_TEST_SUITE(halo_edges)

namespace {

using namespace test;

void check_exact(const OperationCase& item, const EngineOfLayout& tested) {
  check_integers(item, tested.name());
}

}  // namespace

// Sizes that no tile divides, padding as large as the filter, strides, dilations, groups, rows of
// taps that are outside the source for all pixels of a tile, filters of one row and of one column,
// tiles of several images and images of several strips, and a gradient of a single pixel, whose
// first tap inside the source is the second one.
BOOST_AUTO_TEST_CASE(edges) {
  kiln_test::ShareOfCases share = share_of_cases(1);
  int turn = 0, checked = 0;
  for (const char* line :
       {"mb3_ic40ih9iw7_oc24_kh3kw3_ph1pw1", "mb3_ic48ih11iw13_oc40_kh1kw3_ph0pw1",
        "mb2_ic48ih15iw11_oc50_kh3kw1", "g2mb5_ic64ih6iw6_oc64_kh2kw3_ph1pw2_dh1dw1",
        "mb1_ic32ih15iw31_oc48_kh5kw5_ph2pw2", "mb2_ic32ih13iw9_oc72_kh3kw3_ph1pw1_sh2sw2",
        "mb20_ic16ih3iw3_oc40_kh3kw3_ph1pw1", "mb1_ic16ih17iw18_oc24_kh9kw9_ph8pw8",
        "mb1_ic16ih5iw70_oc24_kh4kw3_ph3pw1_dh1dw2", "mb2_ic96ih1iw1_oc96_kh3kw3_sh2sw2_ph1pw1"})
    for (const EngineOfLayout& tested : all_engines()) {
      const std::vector<Arithmetic> all = tested.all_arithmetics();
      for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad})
        for (const kilnConvolutionMode_t mode : {KILN_CROSS_CORRELATION, KILN_CONVOLUTION}) {
          const Arithmetic arithmetic = all[static_cast<std::size_t>(turn++ / 3) % all.size()];
          const ConvolutionProblem problem = halo_problem(line, tested, arithmetic, pass, mode);
          std::vector<EngineRefusal> refusals;
          try {
            choose(problem, device()->description(), {.only_engine = tested.name()}, refusals);
          } catch (const Error&) {  // refused: several phases, one tap, channels not in vectors
            continue;
          }
          ++checked;
          if (share.takes(line, cat(tested.halo->name(), " ", tested.layout), pass, mode,
                          text_of(arithmetic)))
            check_exact(integers_of(problem), tested);
        }
    }
  BOOST_TEST(checked >= 55);
}

// Sums so long that they are promoted, through local memory.
BOOST_AUTO_TEST_CASE(long_sums) {
  for (const EngineOfLayout& tested : all_engines())
    for (const Arithmetic& arithmetic : tested.all_arithmetics())
      check_exact(integers_of(halo_problem("mb1_ic1040ih4iw4_oc16_kh3kw3", tested, arithmetic)),
                  tested);
}

// 3xTF32: an infinity is multiplied by the lo parts of numbers whose lo part is zero.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  for (const EngineOfLayout& tested : all_engines())
    for (const Arithmetic& arithmetic : tested.all_arithmetics()) {
      OperationCase item =
          integers_of(halo_problem("mb2ic16ih8iw8oc20kh3ph0", tested, arithmetic), 5);
      put_nan_and_infinities(item);
      check_exact(item, tested);
    }
}

BOOST_AUTO_TEST_CASE(three_products_err_no_more_than_f32) {
  for (const EngineOfLayout& tested : all_engines())
    check_error_of_three_products(tested.name(),
                                  {.channels = 72, .size = 9, .filters = 24, .taps = 5},
                                  tested.layout, tested.types != EngineOfLayout::SPLIT);
}

BOOST_AUTO_TEST_SUITE_END()
