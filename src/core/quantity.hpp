// Quantities as people write them in variables and options.
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln {

// "4096", "512K", "64M", "4G", "1T" (powers of 1024, with or without a B or iB behind, in any
// case). Returns false if the text is no quantity or exceeds 63 bits.
bool parse_bytes(std::string_view text, std::uint64_t& bytes);

}  // namespace kiln
