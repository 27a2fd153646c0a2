// The caller's scaling factors at execution. Exact in double for either compute type.
#pragma once

namespace kiln {

struct Scalars {
  double alpha = 1;   // of the result; the value that kilnSetTensor sets
  double beta = 0;    // of what the output held; with 0 it is not read
  double alpha2 = 1;  // of the second input of a binary operation
};

}  // namespace kiln
