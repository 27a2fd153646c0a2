// Parses quantities in environment variables and options.
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln {

// "4096", "512K", "64M", "4G", "1T": powers of 1024, with or without a final B or iB, in upper or
// lower case. Returns false if the text is no quantity or exceeds 63 bits.
bool parse_bytes(std::string_view text, std::uint64_t& bytes);

}  // namespace kiln
