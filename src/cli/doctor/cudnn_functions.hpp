// The functions of cuDNN's interface, and what Kiln's library of that interface does with each.
#pragma once

#include <string_view>
#include <vector>

namespace kiln::cli {

enum class Service {
  served,     // by Kiln
  forwarded,  // to NVIDIA's library where KILN_CUDNN_FORWARD names one; refused elsewhere
  refused     // by Kiln, and by what cannot be forwarded: removed, or without a public declaration
};

struct CudnnFunction {
  std::string_view name;
  Service service;
  std::string_view why;  // why it is not served; "" if it is
};

// All functions, sorted by name.
const std::vector<CudnnFunction>& cudnn_functions();

// The function of a name; null if cuDNN's interface has none.
const CudnnFunction* cudnn_function(std::string_view name);

}  // namespace kiln::cli
