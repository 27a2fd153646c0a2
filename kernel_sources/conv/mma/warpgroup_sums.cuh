// A thread's sums of products by warpgroups.
#pragma once

#include "conv/mma/promoted_sums.cuh"

// Where runs are long and pixels lie in shared memory, zeros cost less than the question whether
// products are a run's first.
using WarpgroupSums = PromotedSums<COLUMNS_LEFT || SPLIT>;
