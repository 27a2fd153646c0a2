// The engines that take a plan's problem, and the caller's choice among them.
#include <boost/test/unit_test.hpp>
#include <map>
#include <random>
#include <string>

#include "api/operations/convolution_case.hpp"
#include "kiln/kiln.hpp"

using namespace test;

namespace {

// A layer that tiled engines take, whose kernel is in no cache: the distance between images is
// random.
Geometry layer() {
  static std::random_device random;
  Geometry g;
  g.n = 2, g.c = 32, g.h = 10, g.w = 9, g.k = 24, g.r = 3, g.s = 3, g.groups = 1;
  g.stride = {1, 1}, g.dilation = {1, 1};
  g.x_strides = dense(g.x_dims());
  g.x_strides[0] += 1 + random() % 1'000'000;
  return g;
}

std::map<std::string, std::string> engines_of(kilnPlan_t plan) {
  std::map<std::string, std::string> engines;
  int count = 0;
  succeeds(kilnGetPlanEngineCount(plan, &count));
  for (int i = 0; i < count; ++i) {
    const char *name = nullptr, *refusal = nullptr;
    succeeds(kilnGetPlanEngine(plan, i, &name, &refusal));
    engines[name] = refusal;
  }
  return engines;
}

std::string text_of(kilnPlan_t plan, kilnPlanText_t which) {
  const char* text = "";
  succeeds(kilnGetPlanText(plan, which, &text));
  return text;
}

template <class T>
TestPlan plan_of(const TestHandle& handle, const Case<T>& c) {
  return {handle, c.x_desc, c.w_desc, c.convolution, c.y_desc};
}

template <class T>
std::vector<T> executed(const TestHandle& handle, kilnPlan_t plan, const Case<T>& c) {
  const Buffer<T> x(c.x), w(c.w), y(c.y);
  const T one = 1, zero = 0;
  succeeds(kilnExecuteConvolutionForward(handle, plan, &one, x.data(), w.data(), &zero, y.data()));
  return y.read();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plan_engine)

BOOST_AUTO_TEST_CASE(each_engine_takes_the_plan_or_says_why_not) {
  const TestHandle handle;
  const Case<float> c(layer());
  const TestPlan plan = plan_of(handle, c);
  const auto engines = engines_of(plan);
  BOOST_TEST_REQUIRE(engines.count("direct") == 1u);
  BOOST_TEST(engines.at("direct") == "");
  BOOST_TEST(engines.at("implicit_gemm_fma") == "");
  BOOST_TEST(engines.at("depthwise_fma").find("24 output channels") != std::string::npos,
             engines.at("depthwise_fma"));
  BOOST_TEST(engines.count("wgrad_implicit_gemm_fma") == 0u);  // of another pass
  BOOST_TEST(engines.count("pooling") == 0u);
  // Some engines need workspace.
  constexpr std::size_t granted = std::size_t{1} << 24;
  const Buffer<float> lent(std::vector<float>(granted / sizeof(float) + 64));
  succeeds(kilnSetWorkspace(handle, aligned(lent), granted));
  for (const auto& [name, refusal] : engines) {
    const TestPlan own = plan_of(handle, c);
    if (!refusal.empty()) {
      fails(kilnSetPlanEngine(own, name.c_str()), KILN_STATUS_NOT_SUPPORTED,
            {name.c_str(), refusal.c_str()});
      continue;
    }
    succeeds(kilnSetPlanEngine(own, name.c_str()));
    succeeds(kilnSetPlanWorkspaceLimit(own, granted));
    succeeds(kilnFinalizePlan(own));
    BOOST_TEST(text_of(own, KILN_PLAN_ENGINE) == name);
    // Small integers: exact, in whatever order they are added up.
    BOOST_TEST(executed(handle, own, c) == c.expected(1, 0, c.y), boost::test_tools::per_element());
  }
  BOOST_TEST((engines_of(plan) == engines));
}

// Two plans of the same descriptors: one executes while the other one's better kernel is compiled.
BOOST_AUTO_TEST_CASE(direct_serves_while_the_plan_compiles) {
  const TestHandle handle;
  const Case<float> c(layer());
  const TestPlan plan = plan_of(handle, c), meanwhile = plan_of(handle, c);
  succeeds(kilnStartFinalizePlan(plan));
  succeeds(kilnSetPlanEngine(meanwhile, "direct"));
  succeeds(kilnFinalizePlan(meanwhile));
  BOOST_TEST(text_of(meanwhile, KILN_PLAN_ENGINE) == "direct");
  std::vector<float> y;
  int done = 0;
  do {
    y = executed(handle, meanwhile, c);
    succeeds(kilnPollFinalizePlan(plan, &done));
  } while (done == 0);
  BOOST_TEST(text_of(plan, KILN_PLAN_ENGINE) != "direct");
  BOOST_TEST(y == c.expected(1, 0, c.y), boost::test_tools::per_element());
  BOOST_TEST(executed(handle, plan, c) == y, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(set_for_the_background_and_taken_back) {
  const TestHandle handle;
  const Case<double> c(layer());
  const TestPlan plan = plan_of(handle, c), free = plan_of(handle, c);
  succeeds(kilnSetPlanEngine(plan, "direct"));
  succeeds(kilnStartFinalizePlan(plan));
  fails(kilnSetPlanEngine(plan, "direct"), KILN_STATUS_NOT_INITIALIZED, {"being finalized"});
  BOOST_TEST(engines_of(plan).count("direct") == 1u);  // can be asked at any time
  succeeds(kilnWaitFinalizePlan(plan));
  BOOST_TEST(text_of(plan, KILN_PLAN_ENGINE) == "direct");
  succeeds(kilnSetPlanEngine(free, "direct"));
  succeeds(kilnSetPlanEngine(free, nullptr));
  succeeds(kilnFinalizePlan(free));
  BOOST_TEST(text_of(free, KILN_PLAN_ENGINE) != "direct");
}

BOOST_AUTO_TEST_CASE(wrong_arguments) {
  const TestHandle handle;
  const Case<float> c(layer());
  const TestPlan plan = plan_of(handle, c);
  int count = 0;
  const char* name = nullptr;
  bad_param(kilnGetPlanEngineCount(nullptr, &count), {"plan is null"});
  bad_param(kilnGetPlanEngineCount(plan, nullptr), {"count is null"});
  succeeds(kilnGetPlanEngineCount(plan, &count));
  bad_param(kilnGetPlanEngine(nullptr, 0, &name, nullptr), {"plan is null"});
  bad_param(kilnGetPlanEngine(plan, -1, &name, nullptr), {"index is -1", "expected 0 to"});
  bad_param(kilnGetPlanEngine(plan, count, &name, nullptr), {"index is", "expected 0 to"});
  succeeds(kilnGetPlanEngine(plan, 0, nullptr, nullptr));
  bad_param(kilnSetPlanEngine(nullptr, "direct"), {"plan is null"});
  bad_param(kilnSetPlanEngine(plan, "magic"), {"engine is magic", "implicit_gemm_mma", "direct"});
  bad_param(kilnSetPlanEngine(plan, ""), {"engine is ;", "direct"});
  bad_param(kilnSetPlanEngine(plan, "pooling"), {"engine is pooling", "direct"});
  succeeds(kilnSetPlanEngine(plan, "direct"));
  fails(kilnSetPlanEngine(plan, "depthwise_fma"), KILN_STATUS_NOT_SUPPORTED, {"depthwise_fma"});
  succeeds(kilnFinalizePlan(plan));
  BOOST_TEST(text_of(plan, KILN_PLAN_ENGINE) == "direct");  // the failed calls changed nothing
  bad_param(kilnSetPlanEngine(plan, "direct"), {"plan is finalized", "before kilnFinalizePlan"});
}

BOOST_AUTO_TEST_CASE(names_of_version_0_1) {
  const TestHandle handle;
  const Case<float> c(layer());
  const TestPlan plan = plan_of(handle, c);
  fails(kilnSetPlanEngine(plan, "sliding_window"), KILN_STATUS_NOT_SUPPORTED, {"depthwise_fma"});
  bad_param(kilnSetPlanEngine(plan, "wgrad_planar"), {"engine is wgrad_nchw_mma", "direct"});
}

// Sizes that no engine can count: each engine's refusal says so.
BOOST_AUTO_TEST_CASE(too_large_for_every_engine) {
  const TestHandle handle;
  const TensorDesc x(KILN_DATA_FLOAT, {std::int64_t{1} << 40, 16, 8, 8});
  const FilterDesc w(KILN_DATA_FLOAT, {16, 16, 1, 1});
  const TensorDesc y(KILN_DATA_FLOAT, {std::int64_t{1} << 40, 16, 8, 8});
  const ConvolutionDesc convolution({0, 0}, {0, 0}, {1, 1}, {1, 1});
  const TestPlan plan(handle, x, w, convolution, y);
  for (const auto& [name, refusal] : engines_of(plan))
    BOOST_TEST(refusal.find("2^48") != std::string::npos, name << ": " << refusal);
}

BOOST_AUTO_TEST_CASE(in_cpp) {
  const kiln::Handle handle(device_kind());
  const kiln::TensorDescriptor x(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {2, 3, 6, 6}),
      y(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {2, 4, 6, 6});
  const kiln::FilterDescriptor w(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {4, 3, 3, 3});
  const kiln::ConvolutionDescriptor convolution({.pad_before = {1, 1}});
  kiln::ConvolutionForward plan(handle, {.x = x, .w = w, .convolution = convolution, .y = y});
  bool direct = false;
  for (const auto& engine : plan.engines())
    direct |= engine.name == "direct" && engine.refusal == "";
  BOOST_TEST(direct);
  plan.set_engine("direct");
  plan.finalize();
  BOOST_TEST(plan.text(KILN_PLAN_ENGINE) == "direct");
  BOOST_CHECK_EXCEPTION(plan.set_engine(nullptr), kiln::Exception,
                        [](const auto& error) { return error.status() == KILN_STATUS_BAD_PARAM; });
}

BOOST_AUTO_TEST_SUITE_END()
