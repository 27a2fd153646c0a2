// Sizes and strides between the caller's arrays and the library's values.
#include <algorithm>

#include "api/api.hpp"

namespace kiln::api {

namespace {

// Filters have the dimensions that convolutions have.
Tensor read_sizes(Role role, kilnDataType_t type, int rank, const std::int64_t* dims) {
  if (role == Role::filter && (rank < 3 || rank > 5))
    fail(KILN_STATUS_BAD_PARAM, "nbDims is ", rank, "; expected 3, 4 or 5");
  if (rank < 1 || rank > KILN_DIM_MAX)
    fail(KILN_STATUS_BAD_PARAM, "nbDims is ", rank, "; expected 1 to ", KILN_DIM_MAX);
  check_pointer(dims, "dims", "an array of nbDims sizes");
  Tensor tensor;
  tensor.type = type;
  tensor.rank = rank;
  std::copy_n(dims, rank, tensor.dims.begin());
  return tensor;
}

// The checks that check_tensor makes of the sizes, with the caller's names in the messages.
void check_named_sizes(Role role, const Tensor& tensor, std::span<const char* const> names) {
  auto product = static_cast<std::int64_t>(size_of(tensor.type));
  for (std::size_t i = 0; i < names.size(); ++i) {
    check_at_least(role == Role::tensor && i == 0 ? 0 : 1, tensor.dims[i], names[i]);
    if (__builtin_mul_overflow(product, std::max<std::int64_t>(tensor.dims[i], 1), &product))
      fail(KILN_STATUS_BAD_PARAM, names[i], " is ", tensor.dims[i],
           "; expected sizes whose product in bytes is below 2^63");
  }
}

}  // namespace

Tensor read_strided(Role role, kilnDataType_t type, int rank, const std::int64_t* dims,
                    const std::int64_t* strides) {
  Tensor tensor = read_sizes(role, type, rank, dims);
  check_pointer(strides, "strides", "an array of nbDims strides");
  std::copy_n(strides, rank, tensor.strides.begin());
  check_tensor(tensor, "descriptor", role == Role::tensor);
  return tensor;
}

Tensor read_dense(Role role, kilnDataType_t type, int rank, const std::int64_t* dims,
                  kilnTensorFormat_t format, std::span<const char* const> names) {
  Tensor tensor = read_sizes(role, type, rank, dims);
  check_enumerator("format", format);
  check_named_sizes(role, tensor, names);
  check_tensor(tensor, "descriptor", role == Role::tensor);  // so that the products below fit
  tensor.strides = dense_strides(format, rank, tensor.dims);
  return tensor;
}

void write_tensor(const Tensor& tensor, int requested, kilnDataType_t* type, int* rank,
                  std::int64_t* dims, std::int64_t* strides) {
  check_at_least(0, requested, "nbDimsRequested");
  if (tensor.rank == 0) {
    fail(KILN_STATUS_NOT_INITIALIZED,
         "descriptor was created but never set; expected sizes and type");
  }
  const int count = std::min(requested, tensor.rank);
  if (type != nullptr) *type = tensor.type;
  if (rank != nullptr) *rank = tensor.rank;
  if (dims != nullptr) std::copy_n(tensor.dims.begin(), count, dims);
  if (strides != nullptr) std::copy_n(tensor.strides.begin(), count, strides);
}

}  // namespace kiln::api
