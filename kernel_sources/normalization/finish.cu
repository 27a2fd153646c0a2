// The second step of statistics whose first step (statistics.cu, PARTIAL) left the totals of
// `parts` blocks in the workspace: combines them in a fixed order, and stores what they give.
#include "normalization/totals.cuh"

KILN_KERNEL(finish, THREADS, 1, NormalizationParams, params) {
  const Channels channels(block_x());
  const compute_t* const own = static_cast<const compute_t*>(params.partials) +
                               static_cast<u64>(channels.group) * params.parts * (2 * LANES);
  const compute_t share = static_cast<compute_t>(params.share);
  Totals totals;
#pragma unroll 4
  for (u32 part = thread_ty(); part < params.parts; part += TY) {
    const compute_t weight = BACKWARD ? compute_t(1) : elements_of_part(params, part) * share;
#pragma unroll
    for (int i = 0; i < LANES; ++i)
      totals.first[i] = math_fma(own[part * (2 * LANES) + i], weight, totals.first[i]);
  }
  combine_ty(totals.first, 0, add);
#pragma unroll 4
  for (u32 part = thread_ty(); part < params.parts; part += TY) {
    const compute_t n = BACKWARD ? compute_t(0) : elements_of_part(params, part);
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      totals.second[i] += own[part * (2 * LANES) + LANES + i];
      if constexpr (!BACKWARD) {
        const compute_t d = own[part * (2 * LANES) + i] - totals.first[i];
        totals.second[i] = math_fma(d * d, n, totals.second[i]);
      }
    }
  }
  block_barrier();  // all threads have read the exchange, which is overwritten
  combine_ty(totals.second, 0, add);
  if (thread_ty() == 0 && channels.present) store_totals(params, channels, totals);
}
