#include "codegen/loops.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace kiln {
namespace {

// Parameters count in 32 and 64 bits. Two counts of 32 bits that change are one number here, which
// grows evenly if they do.
constexpr std::size_t word = sizeof(std::uint64_t);

std::uint64_t word_at(const LaunchSpec& launch, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, launch.parameters.data() + at, word);
  return value;
}

// Adds what a stride adds in so many iterations.
void advance(LaunchSpec& launch, const LaunchSpec::Stride& stride, std::int64_t iterations) {
  if (stride.of_map)
    launch.maps[stride.place].first += iterations * stride.each;
  else
    kiln::advance(launch.parameters.data(), stride, iterations);
}

std::vector<LaunchSpec::Stride> strides_between(const LaunchSpec& first, const LaunchSpec& second,
                                                std::uint8_t level) {
  std::vector<LaunchSpec::Stride> strides;
  const auto add = [&](std::int64_t each, std::size_t place, bool of_map) {
    if (each != 0) strides.push_back({each, static_cast<std::uint16_t>(place), of_map, level});
  };
  const std::size_t bytes = std::min(first.parameters.size(), second.parameters.size());
  for (std::size_t at = 0; at + word <= bytes; at += word)
    add(static_cast<std::int64_t>(word_at(second, at) - word_at(first, at)), at, false);
  for (std::size_t i = 0; i < std::min(first.maps.size(), second.maps.size()); ++i)
    add(second.maps[i].first - first.maps[i].first, i, true);
  return strides;
}

// Adds the strides of a loop to a step of its first iteration. Returns whether they make it the
// step of the second iteration.
bool add_strides(Step& first, const Step& second, std::uint8_t level) {
  LaunchSpec next = first.launch;
  const auto strides = strides_between(first.launch, second.launch, level);
  for (const LaunchSpec::Stride& stride : strides) advance(next, stride, 1);
  if (first.kernel != second.kernel || next != second.launch) return false;
  first.launch.strides.insert(first.launch.strides.end(), strides.begin(), strides.end());
  return true;
}

}  // namespace

void append(StepList& to, StepList more) {
  const std::size_t before = to.steps.size();
  std::move(more.steps.begin(), more.steps.end(), std::back_inserter(to.steps));
  for (const Loop& loop : more.loops)
    to.loops.push_back({loop.begin + before, loop.end + before, loop.times, loop.level});
}

void drop_first(StepList& list) {
  list.steps.erase(list.steps.begin());
  for (Loop& loop : list.loops) --loop.begin, --loop.end;
}

void repeat(StepList& first, const StepList& second, std::int64_t times) {
  std::uint8_t level = 0;
  for (const Loop& loop : first.loops)
    level = std::max(level, static_cast<std::uint8_t>(loop.level + 1));
  bool alike = level < most_loop_levels && first.loops == second.loops &&
               first.steps.size() == second.steps.size();
  for (std::size_t i = 0; alike && i < first.steps.size(); ++i)
    alike = add_strides(first.steps[i], second.steps[i], level);
  if (!alike) fail(KILN_STATUS_INTERNAL_ERROR, "launches are not as alike as a loop's have to be");
  first.loops.push_back({0, first.steps.size(), times, level});
}

std::int64_t launch_count(std::size_t steps, std::span<const Loop> loops) {
  std::int64_t count = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    std::int64_t times = 1;
    for (const Loop& loop : loops)
      if (loop.begin <= step && step < loop.end) times *= loop.times;
    count += times;
  }
  return count;
}

LaunchSpec launch_in(const LaunchSpec& launch, const Iterations& iterations) {
  LaunchSpec one = launch;
  for (const LaunchSpec::Stride& stride : launch.strides)
    advance(one, stride, iterations[stride.level]);
  one.strides.clear();
  return one;
}

}  // namespace kiln
