// The estimate of few rows times the weights of a layer.
#pragma once

#include "device/device.hpp"

namespace kiln {

struct FewRowsWork {
  double blocks = 0;
  double weight_bytes = 0, row_bytes = 0;  // that a block reads: of its filters, and of all rows
  double bytes = 0;                        // of operands and result, once each
};
double few_rows_seconds(const FewRowsWork& work, const DeviceDescription& device);

}  // namespace kiln
