// Lists of steps with loops: launches that are alike are counted, not listed, so that a list does
// not grow with a number in a descriptor, such as the batch. Only executing takes the time of all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "codegen/kernel_spec.hpp"

namespace kiln {

// Appends steps, with their loops.
void append(StepList& to, StepList more);

// Drops the first step, which is in no loop.
void drop_first(StepList& list);

// Makes the steps of a first iteration a loop of `times` iterations, of which `second` has the
// steps of the next one. Every later iteration differs from the one before it as the second differs
// from the first. Throws INTERNAL_ERROR if they differ in more than strides express.
void repeat(StepList& first, const StepList& second, std::int64_t times);

// For each level of loops, the number of the iteration.
inline constexpr std::size_t most_loop_levels = 8;
using Iterations = std::array<std::int64_t, most_loop_levels>;

// Calls visit(step, iterations) for each launch in order; `step` is an index, of `steps` steps.
// Allocates nothing.
template <class Visit>
void for_each_launch(std::size_t steps, std::span<const Loop> loops, const Visit& visit) {
  Iterations iterations{};
  for (std::size_t step = 0; step < steps;) {
    visit(step, iterations);
    const std::size_t end = ++step;
    for (const Loop& loop : loops) {
      if (loop.end != end) continue;
      if (++iterations[loop.level] < loop.times) {
        step = loop.begin;
        break;
      }
      iterations[loop.level] = 0;
    }
  }
}

// How many launches there are.
std::int64_t launch_count(std::size_t steps, std::span<const Loop> loops);
inline std::int64_t launch_count(const StepList& list) {
  return launch_count(list.steps.size(), list.loops);
}

// Adds to a number of a launch's parameters what its stride adds in so many iterations.
inline void advance(std::byte* parameters, const LaunchSpec::Stride& stride,
                    std::int64_t iterations) {
  std::uint64_t number = 0;
  std::memcpy(&number, parameters + stride.place, sizeof number);
  number += static_cast<std::uint64_t>(iterations) * static_cast<std::uint64_t>(stride.each);
  std::memcpy(parameters + stride.place, &number, sizeof number);
}

// The launch of these iterations alone, without strides.
LaunchSpec launch_in(const LaunchSpec& launch, const Iterations& iterations);

}  // namespace kiln
