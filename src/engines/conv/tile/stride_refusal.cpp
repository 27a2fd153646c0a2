#include "engines/conv/tile/stride_refusal.hpp"

#include <array>

#include "core/text.hpp"

namespace kiln {
std::string stride_refusal(const char* tensor, int dimension, std::int64_t stride,
                           std::int64_t expected) {
  constexpr std::array names{"batch", "channel", "depth", "height", "width"};
  return cat("the ", names.at(static_cast<std::size_t>(dimension)), " stride of ", tensor, " is ",
             stride, "; expected ", expected);
}

}  // namespace kiln
