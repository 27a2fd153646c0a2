// KILN_LOADED_KERNELS: kernels of the host device are unloaded when others have taken their place,
// and never while a plan holds them.
#include <link.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/config.hpp"
#include "core/process/per_process.hpp"
#include "plan/plan.hpp"
#include "process/in_child.hpp"

namespace {

using namespace kiln;

// The host device's kernels that the dynamic linker has in this process.
int loaded_objects() {
  int count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* counted) {
        const std::string_view name = info->dlpi_name;
        if (name.find("/fd/") != name.npos || name.find("kiln-host-kernel") != name.npos)
          ++*static_cast<int*>(counted);
        return 0;
      },
      &count);
  return count;
}

// y = w * x for one number, with a batch stride that gives each `number` a kernel of its own.
std::unique_ptr<Plan> plan_of(int number) {
  Tensor one;
  one.rank = 4;
  one.dims = {1, 1, 1, 1};
  one.strides = dense_strides(KILN_TENSOR_NCHW, 4, one.dims);
  ConvolutionSpec spec;
  spec.spatial = 2;
  ConvolutionProblem problem = make_convolution(spec, one, one, one);
  problem.x_strides[0] = 1 + number;
  auto plan = std::make_unique<Plan>(open_host_device(), problem);
  plan->finalize();
  return plan;
}

bool multiplies(const Plan& plan) {
  float x = 3, w = 5, y = 0;
  const std::array<void*, 3> operands{&x, &w, &y};
  plan.execute(operands, {}, nullptr);
  return y == 15;
}

void read_environment_again() {
  for (ProcessState* state = ProcessState::first(); state != nullptr; state = state->next())
    if (std::string_view(state->name()) == "environment") state->forget();
}

// In a forked child, whose table of loaded kernels is empty. 0, or the number of the step that went
// wrong.
int evict() {
  setenv("KILN_LOADED_KERNELS", "2", 1);
  read_environment_again();
  if (config().loaded_kernels != 2) return 1;
  const int before = loaded_objects();
  const auto loaded = [&] { return loaded_objects() - before; };

  std::unique_ptr<Plan> held = plan_of(0);
  if (loaded() != 1) return 2;
  for (int number = 1; number <= 5; ++number)
    if (!multiplies(*plan_of(number))) return 3;
  if (loaded() != 3) return 4;  // the two used last, and the one that a plan holds
  if (!multiplies(*held)) return 5;
  held.reset();
  if (loaded() != 2) return 6;

  if (plan_of(5)->origin() != KILN_KERNEL_MEMORY) return 7;
  const std::unique_ptr<Plan> again = plan_of(0);
  if (again->origin() == KILN_KERNEL_MEMORY || !multiplies(*again)) return 8;
  return loaded() == 2 ? 0 : 9;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(loaded_kernels)

BOOST_AUTO_TEST_CASE(those_used_last_and_those_of_plans_stay_loaded) {
  BOOST_TEST(test::in_child(120, evict) == 0);
}

BOOST_AUTO_TEST_CASE(other_limits_are_refused) {
  for (const char* wrong : {"0", "-1", "1000001", "many", "2 ", "99999999999"})
    BOOST_TEST(test::in_child(60,
                              [&] {
                                setenv("KILN_LOADED_KERNELS", wrong, 1);
                                read_environment_again();
                                const std::string expected =
                                    std::string("KILN_LOADED_KERNELS is ") + wrong +
                                    "; expected a whole number from 1 to 1000000. It is 4096";
                                const std::vector<std::string>& complaints = config().complaints;
                                const bool complained =
                                    std::find(complaints.begin(), complaints.end(), expected) !=
                                    complaints.end();
                                return config().loaded_kernels == 4096 && complained ? 0 : 1;
                              }) == 0,
               wrong);
}

BOOST_AUTO_TEST_SUITE_END()
