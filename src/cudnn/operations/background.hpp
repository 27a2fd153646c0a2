// The policy `background`: a stand-in executes a new problem until the chosen kernel is compiled.
#pragma once

#include "cudnn/operations/convolution_call.hpp"

namespace kiln::cudnn {

// Runs the call under that policy. Throws on failure.
void run_in_background(const ConvolutionCall& call);

}  // namespace kiln::cudnn
