#include "problem/fit.hpp"

#include <algorithm>
#include <span>

#include "core/error.hpp"

namespace kiln {
namespace {

void check_rank(const Tensor& tensor, const char* name, const Tensor& other,
                const char* other_name) {
  if (tensor.rank != other.rank)
    fail(KILN_STATUS_BAD_PARAM, name, " has ", tensor.rank, " dimensions; expected ", other.rank,
         ", as ", other_name, " has");
}

}  // namespace

std::string sizes_text(const Tensor& tensor) {
  return join(std::span(tensor.dims).first(static_cast<std::size_t>(tensor.rank)), "x");
}

void check_given(const Tensor& tensor, const char* name) {
  if (tensor.rank == 0)
    fail(KILN_STATUS_NOT_INITIALIZED, name, " was created but never set; expected sizes and type");
  check_tensor(tensor, name, true);
}

void check_same_type(const Tensor& tensor, const char* name, const Tensor& other,
                     const char* other_name) {
  if (tensor.type != other.type)
    fail(KILN_STATUS_BAD_PARAM, name, " has data type ", name_of(tensor.type), "; expected ",
         name_of(other.type), ", as ", other_name, " has");
}

void check_same_sizes(const Tensor& tensor, const char* name, const Tensor& other,
                      const char* other_name) {
  check_rank(tensor, name, other, other_name);
  if (!std::equal(tensor.dims.begin(), tensor.dims.begin() + tensor.rank, other.dims.begin()))
    fail(KILN_STATUS_BAD_PARAM, name, " has sizes ", sizes_text(tensor), "; expected ",
         sizes_text(other), ", as ", other_name, " has");
}

void check_broadcasts(const Tensor& tensor, const char* name, const Tensor& other,
                      const char* other_name) {
  check_rank(tensor, name, other, other_name);
  for (int i = 0; i < tensor.rank; ++i)
    if (tensor.dims[i] != other.dims[i] && tensor.dims[i] != 1)
      fail(KILN_STATUS_BAD_PARAM, name, ": dims[", i, "] is ", tensor.dims[i], "; expected 1 or ",
           other.dims[i], ", as ", other_name, " has");
}

void check_writable(const Tensor& tensor, const char* name) {
  if (overlaps_itself(tensor))
    fail(KILN_STATUS_BAD_PARAM, name, ": strides are ",
         join(std::span(tensor.strides).first(static_cast<std::size_t>(tensor.rank)), ":"),
         " for sizes ", sizes_text(tensor),
         "; expected strides by which no two elements of the output share an address");
}

}  // namespace kiln
