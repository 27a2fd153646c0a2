#include "problem/types.hpp"

namespace kiln {

std::size_t size_of(DataType type) {
  switch (type) {
    case KILN_DATA_FLOAT: return 4;
    case KILN_DATA_DOUBLE: return 8;
    case KILN_DATA_HALF:
    case KILN_DATA_BFLOAT16: return 2;
  }
  return 0;
}

DataType compute_type(DataType type) {
  return type == KILN_DATA_DOUBLE ? KILN_DATA_DOUBLE : KILN_DATA_FLOAT;
}

}  // namespace kiln
