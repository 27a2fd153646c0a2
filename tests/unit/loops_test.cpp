// Steps in loops: what is launched, in which order and with which numbers.
#include "codegen/loops.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "device/device.hpp"
#include "plan/parameters.hpp"

using namespace kiln;

namespace {

struct Params {
  std::int64_t address;
  std::uint32_t down, up;  // in one word
};

// A step of the kernel `name`, for image `image` and part `part` of it.
Step step_of(const char* name, std::int64_t image, std::int64_t part) {
  Step step;
  step.kernel.entry = name;
  step.launch.set_parameters(Params{1000 * image - 7 * part,
                                    static_cast<std::uint32_t>(500 - 100 * image - 3 * part),
                                    static_cast<std::uint32_t>(20 * image + 2 * part)});
  step.launch.maps.push_back({{}, 0, 64 * image + part, 0});
  return step;
}

StepList list_of(std::vector<Step> steps) { return {std::move(steps), {}}; }

std::string text_of(const Step& step, const Iterations& iterations) {
  const LaunchSpec launch = launch_in(step.launch, iterations);
  BOOST_TEST(launch.strides.empty());
  Params params{};
  std::memcpy(&params, launch.parameters.data(), sizeof params);
  return cat(step.kernel.entry, " ", params.address, " ", params.down, " ", params.up, " ",
             launch.maps.front().first, "\n");
}

std::string launches_of(const StepList& list) {
  std::string text;
  for_each_launch(list.steps.size(), list.loops,
                  [&](std::size_t step, const Iterations& iterations) {
                    text += text_of(list.steps[step], iterations);
                  });
  return text;
}

// Of an image: two kernels for each of its four first parts, another one for the fifth.
StepList image_in_loops(std::int64_t image) {
  StepList steps = list_of({step_of("copy", image, 0), step_of("product", image, 0)});
  repeat(steps, list_of({step_of("copy", image, 1), step_of("product", image, 1)}), 4);
  append(steps, list_of({step_of("last", image, 4)}));
  return steps;
}

std::string image_without_loops(std::int64_t image) {
  std::string text;
  for (std::int64_t part = 0; part < 4; ++part)
    for (const char* const name : {"copy", "product"})
      text += text_of(step_of(name, image, part), {});
  return text + text_of(step_of("last", image, 4), {});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(loops)

BOOST_AUTO_TEST_CASE(loops_launch_what_a_list_would) {
  StepList all = list_of({step_of("first", 9, 9)});
  StepList images = image_in_loops(0);
  repeat(images, image_in_loops(1), 3);
  append(all, std::move(images));
  append(all, list_of({step_of("finish", 8, 8)}));

  std::string wanted = text_of(step_of("first", 9, 9), {});
  for (std::int64_t image = 0; image < 3; ++image) wanted += image_without_loops(image);
  wanted += text_of(step_of("finish", 8, 8), {});
  BOOST_TEST(launches_of(all) == wanted);
  BOOST_TEST(all.steps.size() == 5u);
  BOOST_TEST(launch_count(all) == 1 + 3 * (2 * 4 + 1) + 1);

  drop_first(all);
  BOOST_TEST(launches_of(all) == wanted.substr(wanted.find('\n') + 1));
}

BOOST_AUTO_TEST_CASE(an_execution_fills_in_the_numbers_of_its_iteration) {
  StepList list = list_of({step_of("copy", 0, 0)});
  list.steps[0].launch.maps.clear();
  list.steps[0].launch.patches.push_back({LaunchSpec::Hole::operand, 0, 0});
  StepList next = list;
  Params params{4096, 490, 22};
  next.steps[0].launch.set_parameters(params);
  list.steps[0].launch.set_parameters(Params{0, 500, 20});
  repeat(list, next, 6);

  const std::shared_ptr<Device> device = open_host_device();
  std::array<std::byte, 1> tensor{};
  const std::array<void*, 1> operands{tensor.data()};
  std::int64_t iteration = 0;
  for_each_launch(1, list.loops, [&](std::size_t, const Iterations& iterations) {
    ParameterBuffer buffer;
    const auto filled =
        fill_parameters(list.steps[0].launch, *device, operands, nullptr, {}, iterations, buffer);
    std::memcpy(&params, filled.data(), sizeof params);
    BOOST_TEST(params.address == reinterpret_cast<std::int64_t>(tensor.data()) + 4096 * iteration);
    BOOST_TEST(params.down == 500 - 10 * iteration);
    BOOST_TEST(params.up == 20 + 2 * iteration);
    ++iteration;
  });
  BOOST_TEST(iteration == 6);
}

BOOST_AUTO_TEST_CASE(steps_that_differ_otherwise_are_no_loop) {
  const auto refused = [](const StepList& second) {
    StepList first = list_of({step_of("copy", 0, 0)});
    try {
      repeat(first, second, 2);
    } catch (const Error& error) {
      return error.status() == KILN_STATUS_INTERNAL_ERROR;
    }
    return false;
  };
  BOOST_TEST(!refused(list_of({step_of("copy", 0, 1)})));
  BOOST_TEST(refused(list_of({step_of("product", 0, 1)})));
  BOOST_TEST(refused(list_of({step_of("copy", 0, 1), step_of("copy", 0, 2)})));
  StepList other = list_of({step_of("copy", 0, 1)});
  other.steps[0].launch.shape.grid = {2, 1, 1};
  BOOST_TEST(refused(other));
}

BOOST_AUTO_TEST_SUITE_END()
