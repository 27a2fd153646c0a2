// Few rows times a layer's weights: as long as memory takes, or the fullest multiprocessor to read
// what its blocks share.
#include <cmath>

#include "engines/cost/common.hpp"
#include "engines/cost/few_rows_cost.hpp"
#include "engines/cost/fitted.hpp"

namespace kiln {

double few_rows_seconds(const FewRowsWork& work, const DeviceDescription& device) {
  // What a multiprocessor's blocks read in a clock, by 8 times on an H200 of 1 to 16 rows of f16;
  // and, chosen, the clocks of a block's first loads, its sums and its stores.
  constexpr double cache_bytes = 18, block_clocks = 3000;
  const double most = std::ceil(work.blocks / device.multiprocessors);
  const double read = most * (work.weight_bytes + work.row_bytes) / cache_bytes;
  return clocks_to_seconds(fitted_of(device).direct.first_clocks + block_clocks + read, work.bytes,
                           device);
}

}  // namespace kiln
