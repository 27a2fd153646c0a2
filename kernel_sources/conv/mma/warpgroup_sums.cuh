// A thread's accumulators of wgmma.
#pragma once

#include "conv/mma/promoted_sums.cuh"

// If pixels are operand B and nothing is split, runs are long, and clearing the accumulators costs
// less than testing for a run's first products.
using WarpgroupSums = PromotedSums<COLUMNS_LEFT || SPLIT>;
