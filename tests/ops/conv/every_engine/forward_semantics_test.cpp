// Semantics of forward convolutions: strides of any kind, alpha and beta, NaN and infinities,
// alignment, accuracy, and equal bits in every execution.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <limits>

#include "ops/conv/tensor_core_case.hpp"
#include "ops/placed_case.hpp"

BOOST_AUTO_TEST_SUITE(forward_semantics)

namespace {

using namespace test;

void check_exact(const ForwardCase& item, const std::string& what, const std::string& engine = {}) {
  const std::string fault = difference(item.run_plan(engine), item.expected());
  BOOST_TEST(fault.empty(), what << ": " << fault);
}

// Changes dense strides to those of a window of a larger tensor with the same order of dimensions:
// every stride except the innermost one is `gap` elements more than its dense value.
void widen(Dims& strides, const Dims& sizes, std::int64_t gap) {
  std::array<int, 5> order{0, 1, 2, 3, 4};
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return strides[a] < strides[b]; });
  std::int64_t span = 1;
  for (int i : order) {
    if (sizes[i] == 1) continue;
    strides[i] = span == 1 ? 1 : span + gap;
    span = strides[i] * sizes[i];
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(mixed_layouts_and_gaps) {
  for (const char* line :
       {"mb2ic6ih7iw9oc8kh3ph1", "mb3ic5ih8iw6oc37kh3sh2ph1", "g4mb2ic8ih9oc8kh3ph1"})
    for (kilnTensorFormat_t x_layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC})
      for (kilnTensorFormat_t y_layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
        ConvolutionProblem problem = problem_of(line, KILN_DATA_FLOAT, x_layout);
        problem.y_strides = problem_of(line, KILN_DATA_FLOAT, y_layout).y_strides;
        widen(problem.x_strides, problem.x_dims(), 2);
        widen(problem.y_strides, problem.y_dims(), 4);
        ForwardCase item(problem, 3);
        check_exact(item, to_line(problem));
      }
}

BOOST_AUTO_TEST_CASE(broadcast_inputs) {
  for (const char* engine : {"implicit_gemm_fma", "direct"}) {
    ConvolutionProblem problem = problem_of("mb3ic6ih7iw9oc8kh3ph1");
    problem.x_strides[0] = 0;  // all images are the same memory
    check_exact(ForwardCase(problem), "batch", engine);
    problem = problem_of("mb3ic6ih7iw9oc8kh3ph1");
    problem.x_strides[1] = 0;  // all channels are the same memory
    check_exact(ForwardCase(problem), "channels", engine);
    problem = problem_of("mb3ic6ih7iw9oc8kh3ph1");
    problem.w_strides[1] = problem.w_strides[3] = 0;
    check_exact(ForwardCase(problem), "filter", engine);
  }
}

BOOST_AUTO_TEST_CASE(alpha_and_beta) {
  for (DataType type : all_types)
    for (const char* engine : {"implicit_gemm_fma", "direct"})
      for (const auto& [alpha, beta] : {std::pair{2.0, 0.0}, {1.0, 1.0}, {-0.5, 2.0}, {0.0, 1.0}}) {
        ForwardCase item(problem_of("mb2ic5ih6iw7oc9kh3ph1", type));
        item.scalars = {.alpha = alpha, .beta = beta};
        item.result().fill_integers(7, 4);
        check_exact(item, cat(name_of(type), " alpha ", alpha, " beta ", beta), engine);
      }
}

// y is NaN before the execution: with beta 0 no NaN may remain, with beta 1 all must.
BOOST_AUTO_TEST_CASE(beta_zero_does_not_read_y) {
  for (const char* engine : {"implicit_gemm_fma", "direct"}) {
    ForwardCase item(problem_of("mb2ic5ih6iw7oc9kh3ph1"));
    const HostTensor overwritten = item.run_plan(engine);
    for (double value : overwritten.values) BOOST_REQUIRE(!std::isnan(value));
    item.scalars.beta = 1;
    const HostTensor accumulated = item.run_plan(engine);
    for (double value : accumulated.values) BOOST_REQUIRE(std::isnan(value));
  }
}

BOOST_AUTO_TEST_CASE(nan_and_infinity_go_where_they_are_read) {
  for (const char* engine : {"implicit_gemm_fma", "direct"}) {
    ForwardCase item(problem_of("mb2ic3ih8iw8oc5kh3ph0"));
    item["x"].at(20) = std::nan("");
    item["x"].at(100) = std::numeric_limits<double>::infinity();
    // No weight is zero, because infinity times zero would be NaN, in the reference as well.
    for (double& weight : item["w"].values) weight = weight == 0 ? 1 : weight;
    check_exact(item, "NaN and infinity", engine);
  }
}

BOOST_AUTO_TEST_CASE(an_empty_batch_is_legal) {
  ConvolutionProblem problem = problem_of("mb1ic3ih8iw8oc5kh3ph0");
  problem.batch = 0;
  const std::shared_ptr<Device> on = device();
  Plan plan(on, problem);
  plan.finalize();
  void* const nothing[] = {nullptr, nullptr, nullptr};
  plan.execute(nothing, {}, nullptr);
}

struct TensorCoreEngine {
  const char* name;
  kilnTensorFormat_t layout;
};
constexpr TensorCoreEngine tensor_core_engines[] = {{"implicit_gemm_mma", KILN_TENSOR_NCHW},
                                                    {"halo_nhwc_mma", KILN_TENSOR_NHWC},
                                                    {"halo_nchw_mma", KILN_TENSOR_NCHW}};

// 3xTF32: an infinity is multiplied by the lo parts of numbers whose lo part is zero.
BOOST_AUTO_TEST_CASE(nan_and_infinity_on_tensor_cores) {
  for (const TensorCoreEngine& engine : tensor_core_engines)
    for (DataType type : all_types)
      for (kilnMathMode_t math : {KILN_MATH_DEFAULT, KILN_MATH_TF32}) {
        if (type == KILN_DATA_DOUBLE && engine.name != tensor_core_engines[0].name) continue;
        ConvolutionProblem problem = problem_of("mb2ic16ih8iw8oc20kh3ph0", type, engine.layout);
        problem.math = type == KILN_DATA_FLOAT ? math : KILN_MATH_DEFAULT;
        ForwardCase item(problem);
        put_nan_and_infinities(item);
        check_exact(item, cat(engine.name, " ", name_of(type), " math ", static_cast<int>(math)),
                    engine.name);
      }
}

// A convolution with operands that are only aligned to their elements has another kernel. A plan
// for aligned operands refuses such an operand.
BOOST_AUTO_TEST_CASE(operands_aligned_to_an_element) {
  for (DataType type : {KILN_DATA_FLOAT, KILN_DATA_HALF, KILN_DATA_BFLOAT16}) {
    ConvolutionProblem problem = problem_of("mb2ic32ih8iw8oc32kh3ph1", type, KILN_TENSOR_NHWC);
    const auto refusal = [&] {
      try {
        run_shifted(ForwardCase(problem), 1, "halo_nhwc_mma");
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    BOOST_TEST(refusal().find("expected a multiple of 16") != std::string::npos, refusal());
    BOOST_TEST(refusal().find("kilnSetConvolutionAlignment") != std::string::npos, refusal());
    problem.alignment = static_cast<std::int64_t>(size_of(type));
    const ForwardCase item(problem);
    BOOST_TEST(item.fault(run_shifted(item, 1)) == "");
  }
}

// A bias, an activation and a residual with other strides. Also beta times the previous output with
// odd planes and with phases, whose results are stored one by one.
BOOST_AUTO_TEST_CASE(epilogues_of_matrix_products) {
  constexpr kilnTensorFormat_t layouts[] = {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC};
  const auto check = [](const OperationCase& item, const char* engine) {
    BOOST_TEST(difference(item.run_plan(engine), item.expected()) == "");
  };
  for (const char* engine : {"implicit_gemm_fma", "implicit_gemm_mma"})
    for (const Arithmetic& arithmetic : with_f64)
      for (const kilnTensorFormat_t layout : layouts) {
        for (const kilnTensorFormat_t z_layout : layouts) {
          OperationCase item =
              integers_of(fused_in("mb2ic16ih9iw11oc37kh3ph1", arithmetic, layout, z_layout));
          item.scalars = {.alpha = 2, .beta = -1};
          check(item, engine);
        }
        OperationCase accumulated(
            problem_in("mb2ic37ih9iw11oc40kh3sh2ph1", arithmetic, layout, ConvolutionPass::dgrad));
        accumulated.scalars = {.alpha = -2, .beta = 3};
        accumulated.fill_integers(7, 2);
        check(accumulated, engine);
      }
}

// Phases of a strided data gradient that take turns, with whole turns and a partial one.
BOOST_AUTO_TEST_CASE(phases_in_turns) {
  for (const char* engine : {"implicit_gemm_fma", "implicit_gemm_mma"})
    for (const Arithmetic& arithmetic : {arithmetics[1], arithmetics[2]})
      for (const char* line :
           {"mb8_ic40ih30_oc24oh15_kh1sh2ph0", "mb9_ic36ih29_oc16oh15_kh3sh2ph1"}) {
        const OperationCase item =
            integers_of(problem_in(line, arithmetic, KILN_TENSOR_NCHW, ConvolutionPass::dgrad));
        BOOST_TEST(difference(item.run_plan(engine), item.expected()) == "", engine << " " << line);
      }
}

// Filters of more taps, added over the dimensions, than a mask of taps has bits: bounds are
// compared for each tap. Padding on either side of both dimensions.
BOOST_AUTO_TEST_CASE(long_filters) {
  constexpr const char* line = "mb1_ic16ih14iw15_oc16oh12ow13_kh17kw17_ph7pw7";
  for (const Arithmetic& arithmetic : {arithmetics[1], arithmetics[2]}) {
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad})
      for (const char* engine : {"implicit_gemm_fma", "implicit_gemm_mma"}) {
        const OperationCase item =
            integers_of(problem_in(line, arithmetic, KILN_TENSOR_NCHW, pass));
        BOOST_TEST(difference(item.run_plan(engine), item.expected()) == "", engine);
      }
    for (const char* engine : {"wgrad_implicit_gemm_fma", "wgrad_implicit_gemm_mma"}) {
      const OperationCase item =
          integers_of(problem_in(line, arithmetic, KILN_TENSOR_NCHW, ConvolutionPass::wgrad));
      BOOST_TEST(difference(item.run_plan(engine), item.expected()) == "", engine);
    }
  }
}

// The root mean square error of 3xTF32 against f64 is no larger than that of f32, with a split
// count of one.
BOOST_AUTO_TEST_CASE(tensor_cores_err_no_more_than_f32) {
  const auto error = [](kilnMathMode_t math, const char* line, const char* engine,
                        kilnTensorFormat_t layout, int power) {
    ConvolutionProblem problem = problem_of(line, KILN_DATA_FLOAT, layout);
    problem.math = math;
    OperationCase item(problem);
    item.fill_uniform(11);
    scale_f32(item["x"], power);
    FinalizeOptions whole;
    for (const Option& option : all_candidates(problem, device()->description()))
      if (!whole.choice && option.name.engine == engine && option.name.parts == 1)
        whole.choice = option.choice;
    return relative_rms(item.run_plan(whole).values, item.expected().values, power);
  };
  kiln_test::ShareOfCases share = share_of_cases(1);
  for (const TensorCoreEngine& engine : tensor_core_engines)
    for (const char* line : {"mb1ic16ih6oc16kh3", "mb1ic64ih6oc16kh3", "mb1ic256ih6oc16kh5"}) {
      if (!share.takes(cat(engine.name, " ", engine.layout), line)) continue;
      for (const int power : {0, -122, -136}) {
        const double split = error(KILN_MATH_DEFAULT, line, engine.name, engine.layout, power);
        const double strict =
            error(KILN_MATH_STRICT, line, "implicit_gemm_fma", engine.layout, power);
        BOOST_TEST(split <= 1.1 * strict, engine.name << " " << line << ", x 2^" << power << ": "
                                                      << split << " against " << strict);
      }
      const double cut = error(KILN_MATH_TF32, line, engine.name, engine.layout, 0);
      BOOST_TEST(cut < 1e-3);
      BOOST_TEST(cut > 1e-5, "tf32 is as good as f32: it was not cut");
    }
}

// Every tile has the same sums with a split count of one and with larger ones.
BOOST_AUTO_TEST_CASE(every_tile_and_every_split) {
  kiln_test::ShareOfCases share = share_of_cases(1);
  const std::shared_ptr<Device> on = device();
  const bool clusters =
      on->description().kind == KILN_DEVICE_HOST || on->description().compute_capability >= 90;
  for (DataType type : all_types)
    for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
      const ConvolutionProblem problem = problem_of("mb2ic19ih9iw10oc70kh3ph1", type, layout);
      const ForwardCase item(problem);
      const HostTensor want = item.expected();
      for (const GemmTile& tile : all_tiles(problem))
        for (int parts : {1, 2, 5, 8}) {
          if ((parts > 1 && !clusters) || !share.takes(describe(tile), type, layout, parts))
            continue;
          const HostTensor got =
              run_proposal(item, propose_gemm(problem, tile, on->description(), parts));
          const std::string fault = difference(got, want);
          BOOST_TEST(fault.empty(), describe(tile) << ", " << parts << " parts: " << fault);
        }
    }
}

// Rounding depends on the order of summation, so equal bits show that the order is the same.
BOOST_AUTO_TEST_CASE(the_same_bits_every_time) {
  const std::shared_ptr<Device> on = device();
  for (const char* line :
       {"mb2ic40ih9iw10oc70kh3ph1", "mb1ic64ih6oc64kh3ph1", "g8mb2ic8ih9oc8kh3ph1"}) {
    ForwardCase item(problem_of(line));
    std::mt19937 random(5);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (double& value : item["x"].values) value = uniform(random);
    for (double& value : item["w"].values) value = uniform(random);
    const HostTensor first = item.run_plan();
    for (int again = 0; again < 3; ++again) BOOST_TEST(difference(item.run_plan(), first).empty());
  }
}

BOOST_AUTO_TEST_SUITE_END()
