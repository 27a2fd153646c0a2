// The caller's scaling factors of an execution. double represents both compute types exactly.
#pragma once

namespace kiln {

struct Scalars {
  double alpha = 1;  // scales the result; for kilnSetTensor the value
  double beta = 0;   // scales the output's previous values; with 0 they are not read
  // Scales the second input of a binary operation; of a normalization, the share that a batch has
  // in the running statistics.
  double alpha2 = 1;
};

}  // namespace kiln
