// Checks of tensors and descriptors that operations share.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "problem/tensor/tensor.hpp"

namespace kiln {

// Checks that a descriptor's field[index] is from `least` to `most`. Throws BAD_PARAM.
inline constexpr std::int64_t most_of_field = std::numeric_limits<std::int32_t>::max();
void check_field(const char* field, int index, std::int64_t value, std::int64_t least,
                 std::int64_t most = most_of_field);

// Checks that the descriptor was set and is a legal tensor (Role::tensor: N may be 0) or filter.
// Throws NOT_INITIALIZED, BAD_PARAM.
enum class Role { tensor, filter };
void check_given(const Tensor& tensor, const char* name, Role role = Role::tensor);

// Checks that the tensor has as many dimensions of space as the operation's descriptor. Throws
// BAD_PARAM.
void check_space(const Tensor& tensor, const char* name, int spatial, const char* descriptor_name);

// Check that the type, or rank and sizes, equal those of `other`. Throw BAD_PARAM.
void check_same_type(const Tensor& tensor, const char* name, const Tensor& other,
                     const char* other_name);
void check_same_sizes(const Tensor& tensor, const char* name, const Tensor& other,
                      const char* other_name);

// Checks for sizes {1, channels of `other`, 1...} and its type. Throws BAD_PARAM.
void check_one_a_channel(const Tensor& tensor, const char* name, const Tensor& other,
                         const char* other_name);

// Checks that every size equals that of `other` or is 1. Throws BAD_PARAM.
void check_broadcasts(const Tensor& tensor, const char* name, const Tensor& other,
                      const char* other_name);

// Checks that no two elements share an address. Throws BAD_PARAM.
void check_writable(const Tensor& tensor, const char* name);

// "16x64x28x28"
std::string sizes_text(const Tensor& tensor);

}  // namespace kiln
