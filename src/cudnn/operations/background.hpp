// The policy `background`: a new problem runs by a stand-in, until the kernel that Kiln would
// choose is compiled.
#pragma once

#include "cudnn/operations/convolution_call.hpp"

namespace kiln::cudnn {

// Throws.
void run_in_background(const ConvolutionCall& call);

}  // namespace kiln::cudnn
