#include "problem/tensor/checks.hpp"

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

void check_field(const char* field, int index, std::int64_t value, std::int64_t least,
                 std::int64_t most) {
  if (value < least || value > most)
    fail(KILN_STATUS_BAD_PARAM, field, "[", index, "] is ", value, "; expected ", least, " to ",
         most);
}

void check_given(const Tensor& tensor, const char* name, Role role) {
  if (tensor.rank == 0)
    fail(KILN_STATUS_NOT_INITIALIZED, name, " was created but never set; expected sizes and type");
  check_tensor(tensor, name, role == Role::tensor);
}

void check_space(const Tensor& tensor, const char* name, int spatial, const char* descriptor_name) {
  if (tensor.rank != spatial + 2)
    fail(KILN_STATUS_BAD_PARAM, name, " has ", tensor.rank, " dimensions; expected ", spatial + 2,
         ", for ", descriptor_name, " has ", spatial, " of space");
}

void check_one_a_channel(const Tensor& tensor, const char* name, const Tensor& other,
                         const char* other_name) {
  check_same_type(tensor, name, other, other_name);
  Tensor expected = other;
  for (int i = 0; i < other.rank; ++i) expected.dims[i] = i == 1 ? other.dims[1] : 1;
  if (tensor.rank != other.rank || sizes_text(tensor) != sizes_text(expected))
    fail(KILN_STATUS_BAD_PARAM, name, " has sizes ", sizes_text(tensor), "; expected ",
         sizes_text(expected), ", one element a channel of ", other_name);
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
      fail(KILN_STATUS_BAD_PARAM, name, ": dims[", i, "] is ", tensor.dims[i], "; expected ",
           other.dims[i] == 1 ? "" : "1 or ", other.dims[i], ", as ", other_name, " has");
}

void check_writable(const Tensor& tensor, const char* name) {
  if (overlaps_itself(tensor))
    fail(KILN_STATUS_BAD_PARAM, name, ": strides are ",
         join(std::span(tensor.strides).first(static_cast<std::size_t>(tensor.rank)), ":"),
         " for sizes ", sizes_text(tensor),
         "; expected strides by which no two elements of the output share an address");
}

}  // namespace kiln
