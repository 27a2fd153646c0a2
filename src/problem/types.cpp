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

std::string_view name_of(DataType type) {
  switch (type) {
    case KILN_DATA_FLOAT: return "f32";
    case KILN_DATA_DOUBLE: return "f64";
    case KILN_DATA_HALF: return "f16";
    case KILN_DATA_BFLOAT16: return "bf16";
  }
  return "?";
}

DataType compute_type(DataType type) {
  return type == KILN_DATA_DOUBLE ? KILN_DATA_DOUBLE : KILN_DATA_FLOAT;
}

bool parse_type(std::string_view text, DataType& type) {
  for (DataType candidate :
       {KILN_DATA_FLOAT, KILN_DATA_DOUBLE, KILN_DATA_HALF, KILN_DATA_BFLOAT16}) {
    if (name_of(candidate) == text) {
      type = candidate;
      return true;
    }
  }
  return false;
}

}  // namespace kiln
