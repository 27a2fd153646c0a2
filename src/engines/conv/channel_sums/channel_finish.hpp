// The step that joins what the blocks of a convolution have left of each channel in the workspace:
// what the steps of moments and of a normalization's gradient share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "problem/problem.hpp"

namespace kiln {

// A step without parameters: 8 channels a block, 32 threads each. parts: the most parts of a
// channel, at any batch size.
Step channel_finish(const std::string& engine, std::string file, std::string entry,
                    std::int64_t channels, std::int64_t parts);

// Has the address of the operand of this name put at `offset` of the launch's parameters; nothing
// if there is none.
void patch_operand(LaunchSpec& launch, const std::vector<Operand>& operands, std::string_view name,
                   std::size_t offset);

}  // namespace kiln
