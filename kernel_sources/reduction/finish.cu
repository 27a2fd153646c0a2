// The second step of a reduction whose first step (reduction.cu, PARTIAL) left `parts` sums of each
// result in the workspace: adds them up in a fixed order, and stores the result.
#include "reduction/operation.cuh"

KILN_KERNEL(finish, THREADS, 1, ReductionParams, params) {
  u64 result = static_cast<u64>(block_x()) * RESULTS + thread_result();
  u64 n = BATCH_KEPT ? DIVIDE(ROWS_DIV_KEPT, result) : 0;
  const bool present = BATCH_KEPT ? n < static_cast<u64>(params.images) : result < KEPT;
  if (!present) result = n = 0;
  const compute_t* const partials = static_cast<const compute_t*>(params.partials);

  compute_t totals[SUMS][LANES];
#pragma unroll
  for (int sum = 0; sum < SUMS; ++sum) {
#pragma unroll
    for (int i = 0; i < LANES; ++i) totals[sum][i] = identity();
    const compute_t* const own = partials + (result * SUMS + sum) * params.parts * LANES;
#pragma unroll 4
    for (u32 part = thread_ty(); part < params.parts; part += TY)
#pragma unroll
      for (int i = 0; i < LANES; ++i)
        totals[sum][i] = combine(totals[sum][i], own[part * LANES + i]);
    if (sum > 0) block_barrier();  // all threads have read the exchange, which is overwritten
    combine_ty<false>(totals[sum], 0, combine);
  }
  if (thread_ty() != 0 || !present) return;
  store_result(params, n, kept_place(static_cast<index_t>(result - n * KEPT)), totals);
}
