// Shared by the engines of locally connected layers: the constants for the offsets of elements, and
// the launch.
#pragma once

#include <cstdint>
#include <string>

#include "engines/engine.hpp"

namespace kiln {

// The kernel of the engine `name`: file "local/NAME.cu", entry NAME, and the constants of
// geometry.cuh.
KernelSpec local_kernel(const std::string& name, const LocalProblem& problem);

LaunchSpec local_launch(const LocalProblem& problem, std::int64_t blocks, std::int64_t threads,
                        std::uint32_t shared_memory);

// Bytes that a launch moves relative to the necessary ones, where it reads whole lines.
inline constexpr double whole_lines_waste = 1.05;

// The estimated seconds of a launch, from its threads' instructions and from the bytes that it
// moves: `waste` times the necessary ones.
double local_seconds(const Problem& problem, double instructions, double waste,
                     const DeviceDescription& device);

// How many images share a weight in a thread's register: the smallest power of two that covers the
// batch, at most `most`; 1 where each image has weights of its own.
std::int64_t images_at_once(const LocalProblem& problem, std::int64_t most);

}  // namespace kiln
