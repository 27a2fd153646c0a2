// A thread's accumulators of wgmma.
#pragma once

#include "conv/mma/promoted_sums.cuh"

// Where runs are long and pixels are in shared memory, clearing accumulators costs less than
// testing for a run's first products.
using WarpgroupSums = PromotedSums<COLUMNS_LEFT || SPLIT>;
