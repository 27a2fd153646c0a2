// What makes each operation; each has a file of its own, or shares operation_shapes.cpp.
#pragma once

#include <memory>

#include "cli/operation/operation.hpp"

namespace kiln::cli {

std::unique_ptr<Operation> make_conv_operation();
std::unique_ptr<Operation> make_local_operation();
std::unique_ptr<Operation> make_pool_operation();
std::unique_ptr<Operation> make_act_operation();
std::unique_ptr<Operation> make_softmax_operation();
std::unique_ptr<Operation> make_norm_operation();
std::unique_ptr<Operation> make_matmul_operation();
std::unique_ptr<Operation> make_tensor_operation();

}  // namespace kiln::cli
