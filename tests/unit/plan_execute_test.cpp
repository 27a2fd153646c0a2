// Plan::execute with a test device: the parameters that it passes to the kernel, and that it
// allocates nothing.
#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "core/error.hpp"
#include "plan/background.hpp"
#include "plan/plan.hpp"
#include "support/allocation_count.hpp"

using namespace kiln;

namespace {

struct Launch {
  int count = 0;
  LaunchShape shape;
  std::array<std::byte, 1024> parameters{};
  std::size_t size = 0;
  void* stream = nullptr;
};

class RecordingKernel : public Kernel {
 public:
  explicit RecordingKernel(Launch& last) : last_(last) {}
  void launch(const LaunchShape& shape, std::span<const std::byte> parameters,
              void* stream) const override {
    ++last_.count;
    last_.shape = shape;
    last_.size = parameters.size();
    std::copy(parameters.begin(), parameters.end(), last_.parameters.begin());
    last_.stream = stream;
  }

 private:
  Launch& last_;
};

// Has kernels of the host device, but records launches instead of executing them.
class RecordingDevice : public Device {
 public:
  Launch last;

  explicit RecordingDevice(int multiprocessors = 1)
      : description_(open_host_device()->description()) {
    description_.multiprocessors = multiprocessors;
  }
  const DeviceDescription& description() const override { return description_; }
  std::unique_ptr<Kernel> load(std::span<const std::byte>, const std::string&,
                               std::uint32_t) override {
    return std::make_unique<RecordingKernel>(last);
  }
  void encode_map(const TensorMapSpec&, std::span<std::byte, tensor_map_bytes>) const override {}
  void set_map_address(std::byte*, void*) const override {}
  void make_current() override {}
  void* allocate(std::size_t) override { return nullptr; }
  void free(void*) override {}
  void copy_in(void*, const void*, std::size_t) override {}
  void copy_out(void*, const void*, std::size_t) override {}
  void copy(void*, const void*, std::size_t, void*) override {}
  void fill(void*, unsigned char, std::size_t) override {}
  void synchronize(void*) override {}
  double time(void*, int, const std::function<void()>&) override { return 0; }

 private:
  DeviceDescription description_;
};

Tensor dense(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  Tensor tensor;
  tensor.rank = 4;
  tensor.dims = {a, b, c, d};
  tensor.strides = dense_strides(KILN_TENSOR_NCHW, 4, tensor.dims);
  return tensor;
}

ConvolutionProblem pointwise(std::int64_t batch) {
  ConvolutionSpec spec;
  spec.spatial = 2;
  return make_convolution(spec, dense(batch, 3, 4, 4), dense(2, 3, 1, 1), dense(batch, 2, 4, 4));
}

struct Fixture {
  std::shared_ptr<RecordingDevice> device = std::make_shared<RecordingDevice>();
  alignas(64) std::array<float, 64> x{}, w{}, y{};
  std::array<void*, 3> operands{x.data(), w.data(), y.data()};

  Plan finalized(std::int64_t batch) {
    Plan plan(device, pointwise(batch));
    FinalizeOptions options;
    options.caching = Caching::bypass;
    plan.finalize(options);
    return plan;
  }
};

bool is_bad_param(const Error& error) { return error.status() == KILN_STATUS_BAD_PARAM; }
bool is_not_cached(const Error& error) { return error.status() == KILN_STATUS_NOT_CACHED; }

const FinalizeOptions cached{.caching = Caching::cached};

// A problem whose kernel is in no cache, because the stride of its batch is random.
ConvolutionProblem new_kernel() {
  static std::random_device random;
  ConvolutionProblem problem = pointwise(2);
  problem.x_strides[0] += 1 + random() % 1'000'000;
  return problem;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(plan_execute, Fixture)

BOOST_AUTO_TEST_CASE(every_hole_is_filled_and_all_else_is_as_the_engine_left_it) {
  const Plan plan = finalized(2);
  int stream = 0;
  plan.execute(operands, {.alpha = 1.5, .beta = -0.25}, &stream);
  const Launch& last = device->last;
  BOOST_TEST(last.count == 1);
  BOOST_TEST(last.stream == &stream);
  BOOST_TEST(last.shape.grid == plan.launch().shape.grid);
  BOOST_TEST(last.shape.block == plan.launch().shape.block);
  BOOST_TEST(last.shape.shared_memory == plan.launch().shape.shared_memory);

  auto expected = plan.launch().parameters;
  std::array<int, 3> uses{};
  int alphas = 0, betas = 0;
  for (const LaunchSpec::Patch& patch : plan.launch().patches) {
    const double alpha = 1.5, beta = -0.25;
    switch (patch.hole) {
      case LaunchSpec::Hole::operand:
        std::memcpy(expected.data() + patch.offset, &operands[patch.operand], sizeof(void*));
        ++uses[patch.operand];
        break;
      case LaunchSpec::Hole::alpha:
        std::memcpy(expected.data() + patch.offset, &alpha, sizeof alpha);
        ++alphas;
        break;
      case LaunchSpec::Hole::beta:
        std::memcpy(expected.data() + patch.offset, &beta, sizeof beta);
        ++betas;
        break;
      case LaunchSpec::Hole::alpha2:
        BOOST_ERROR("a convolution has no second input to scale");
        break;
      case LaunchSpec::Hole::workspace: BOOST_ERROR("no workspace was granted");
    }
  }
  // y is passed twice: beta scales one, and the other is written.
  BOOST_TEST(uses == (std::array<int, 3>{1, 1, 2}), boost::test_tools::per_element());
  BOOST_TEST(alphas == 1);
  BOOST_TEST(betas == 1);
  BOOST_TEST_REQUIRE(last.size == expected.size());
  BOOST_TEST(std::memcmp(last.parameters.data(), expected.data(), expected.size()) == 0);
}

BOOST_AUTO_TEST_CASE(execution_allocates_nothing) {
  const Plan plan = finalized(2);
  const long before = test::allocation_count();
  for (int i = 0; i < 1000; ++i) plan.execute(operands, {}, nullptr);
  const long after = test::allocation_count();
  BOOST_TEST(after - before == 0);
  BOOST_TEST(device->last.count == 1000);

  // The counter works: it sees the allocations of an error's message.
  const long before_error = test::allocation_count();
  BOOST_CHECK_THROW(plan.execute(std::array<void*, 3>{}, {}, nullptr), Error);
  BOOST_TEST((!test::counts_allocations || test::allocation_count() > before_error));
}

// Two kernels, the second of which adds up the first one's sums in the caller's workspace.
BOOST_AUTO_TEST_CASE(steps_and_workspace) {
  const auto large = std::make_shared<RecordingDevice>(132);
  const Problem sum = make_reduction(KILN_REDUCE_SUM, dense(64, 64, 64, 64), dense(1, 1, 1, 1));
  FinalizeOptions options;
  options.caching = Caching::bypass;
  Plan alone(large, sum);
  alone.finalize(options);
  BOOST_TEST(alone.steps().size() == 1u);
  BOOST_TEST(alone.workspace_bytes() == 0u);
  options.grant.workspace = 64;  // too little
  Plan tight(large, sum);
  tight.finalize(options);
  BOOST_TEST(tight.workspace_bytes() == 0u);

  options.grant.workspace = most_workspace;
  Plan plan(large, sum);
  plan.finalize(options);
  BOOST_TEST_REQUIRE(plan.steps().size() == 2u);
  const std::size_t needed = plan.workspace_bytes();
  BOOST_TEST(needed > 64u);
  BOOST_TEST(needed <= most_workspace);
  std::vector<float> from(64 * 64 * 64 * 64), lent(needed / sizeof(float) + 1);
  float to = 0;
  const std::array<void*, 2> tensors{from.data(), &to};
  plan.execute(tensors, {}, nullptr, {}, {lent.data(), needed});
  BOOST_TEST(large->last.count == 2);
  const LaunchSpec& second = plan.steps().back().launch;
  const auto hole = std::find_if(
      second.patches.begin(), second.patches.end(),
      [](const LaunchSpec::Patch& each) { return each.hole == LaunchSpec::Hole::workspace; });
  BOOST_TEST_REQUIRE((hole != second.patches.end()));
  void* handed = nullptr;
  std::memcpy(&handed, large->last.parameters.data() + hole->offset, sizeof handed);
  BOOST_TEST(handed == lent.data());

  const long before = test::allocation_count();
  plan.execute(tensors, {}, nullptr, {}, {lent.data(), needed});
  BOOST_TEST(test::allocation_count() - before == 0);
  BOOST_CHECK_EXCEPTION(plan.execute(tensors, {}, nullptr), Error, is_bad_param);
  BOOST_CHECK_EXCEPTION(plan.execute(tensors, {}, nullptr, {}, {lent.data(), needed - 1}), Error,
                        is_bad_param);
  BOOST_CHECK_EXCEPTION(plan.execute(tensors, {}, nullptr, {}, {from.data(), needed}), Error,
                        is_bad_param);
  BOOST_TEST(large->last.count == 4);
}

BOOST_AUTO_TEST_CASE(an_empty_batch_launches_nothing_and_needs_no_memory) {
  const Plan plan = finalized(0);
  plan.execute(std::array<void*, 3>{}, {}, nullptr);
  BOOST_TEST(device->last.count == 0);
}

BOOST_AUTO_TEST_CASE(wrong_operands_are_refused_before_the_launch) {
  const Plan plan = finalized(2);
  for (std::size_t i = 0; i < 3; ++i) {
    auto wrong = operands;
    wrong[i] = nullptr;
    BOOST_CHECK_EXCEPTION(plan.execute(wrong, {}, nullptr), Error, is_bad_param);
    wrong[i] = reinterpret_cast<char*>(operands[i]) + 2;
    BOOST_CHECK_EXCEPTION(plan.execute(wrong, {}, nullptr), Error, is_bad_param);
  }
  const Plan raw(device, pointwise(2));
  BOOST_CHECK_EXCEPTION(raw.execute(operands, {}, nullptr), Error, [](const Error& error) {
    return error.status() == KILN_STATUS_NOT_INITIALIZED;
  });
  BOOST_TEST(device->last.count == 0);
}

// A stand-in's plan also requires what the kernel that will replace it requires, so that both
// accept the same operands and workspace.
BOOST_AUTO_TEST_CASE(a_plan_can_ask_for_what_another_one_asks_for) {
  Plan plan = finalized(2);
  Proposal other;
  other.first().kernel.alignment = 16;
  other.workspace = 32;
  plan.ask_also(other);
  BOOST_TEST(plan.alignment() == 16u);
  BOOST_TEST(plan.workspace_bytes() == 32u);
  alignas(64) std::array<float, 8> lent{};
  BOOST_CHECK_EXCEPTION(plan.execute(operands, {}, nullptr), Error, is_bad_param);
  auto unaligned = operands;
  unaligned[0] = x.data() + 1;
  BOOST_CHECK_EXCEPTION(plan.execute(unaligned, {}, nullptr, {}, {lent.data(), 32}), Error,
                        is_bad_param);
  BOOST_TEST(device->last.count == 0);
  plan.execute(operands, {}, nullptr, {}, {lent.data(), 32});
  BOOST_TEST(device->last.count == 1);
  plan.ask_also(Proposal());  // a proposal that requires less has no effect
  BOOST_TEST(plan.alignment() == 16u);
  BOOST_TEST(plan.workspace_bytes() == 32u);
}

BOOST_AUTO_TEST_CASE(from_caches_alone) {
  const ConvolutionProblem problem = new_kernel();
  Plan plan(device, problem);
  BOOST_CHECK_EXCEPTION(plan.finalize(cached), Error, is_not_cached);
  BOOST_TEST(!plan.finalized());
  Plan compiled(device, problem);
  compiled.finalize();
  BOOST_TEST((compiled.origin() == KILN_KERNEL_COMPILED));
  plan.finalize(cached);
  BOOST_TEST((plan.origin() == KILN_KERNEL_MEMORY));
  if (cache_mode() != CacheMode::on) return;
  const auto other = std::make_shared<RecordingDevice>();  // has loaded no kernel yet
  for (const kilnKernelOrigin_t origin : {KILN_KERNEL_DISK, KILN_KERNEL_MEMORY}) {
    Plan again(other, problem);
    again.finalize(cached);
    BOOST_TEST((again.origin() == origin));
  }
}

BOOST_AUTO_TEST_CASE(kernels_that_nobody_waits_for_are_there_later) {
  const ConvolutionProblem problem = new_kernel();
  BackgroundFinalization::start_unattended(std::make_unique<Plan>(device, problem), {});
  Plan plan(device, problem);
  for (int i = 0; i < 6000 && !plan.finalized(); ++i) try {
      plan.finalize(cached);
    } catch (const Error& error) {
      BOOST_TEST_REQUIRE(is_not_cached(error), error.what());
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  BOOST_TEST_REQUIRE(plan.finalized());
  BOOST_TEST((plan.origin() != KILN_KERNEL_COMPILED));
}

BOOST_AUTO_TEST_SUITE_END()
