// What every operation checks of its tensors before it makes a problem of them.
#pragma once

#include <initializer_list>

#include "problem/tensor.hpp"

namespace kiln {

// Was set, and is a legal tensor. Throws NOT_INITIALIZED, BAD_PARAM.
void check_given(const Tensor& tensor, const char* name);

// The same type, rank or sizes as `other`. Throw BAD_PARAM.
void check_same_type(const Tensor& tensor, const char* name, const Tensor& other,
                     const char* other_name);
void check_same_sizes(const Tensor& tensor, const char* name, const Tensor& other,
                      const char* other_name);

// Every size equals that of `other`, or is 1. Throws BAD_PARAM.
void check_broadcasts(const Tensor& tensor, const char* name, const Tensor& other,
                      const char* other_name);

// No two elements share an address. Throws BAD_PARAM.
void check_writable(const Tensor& tensor, const char* name);

// "16x64x28x28"
std::string sizes_text(const Tensor& tensor);

}  // namespace kiln
