// Kiln for C++20: the C API's objects with owners, exceptions in place of statuses, arguments with
// names. Nothing else: shapes, units, threads and errors are as kiln.h has them.
//
//   kiln::Handle handle(KILN_DEVICE_CUDA);
//   kiln::TensorDescriptor x(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {32, 256, 13, 13});
//   kiln::FilterDescriptor w(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {384, 256, 3, 3});
//   kiln::ConvolutionDescriptor convolution({.pad_before = {1, 1}});
//   kiln::TensorDescriptor y(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, convolution.output_dims(x, w));
//
//   kiln::ConvolutionForward plan(handle, {.x = x, .w = w, .convolution = convolution, .y = y});
//   plan.finalize();
//   plan.execute(handle, {.x = x_data, .w = w_data, .y = y_data});
//   plan.execute(handle, {.x = x_data, .w = w_data, .y = y_data}, {.alpha = 2, .beta = 1});
//
// Each operation of kiln.h is a class named like its C functions, made from descriptors, executed
// with operands and scalars. Its static function run() is the immediate call:
//   kiln::PoolingDescriptor pooling({.window = {2, 2}});
//   kiln::PoolingForward::run(handle, {.pooling = pooling, .x = x, .y = y},
//                             {.x = x_data, .y = y_data});
//
// An operand is a pointer, or a std::span, whose size and type are checked against the descriptor.
// Scalars are numbers: the plan knows its compute type.
#ifndef KILN_KILN_HPP
#define KILN_KILN_HPP

#if __cplusplus < 202002L
#error "kiln.hpp needs C++20: compile with -std=c++20, or use kiln.h, which is C99"
#else  // without it a compiler would go on with hundreds of lines of faults in what C++20 has

#include "kiln/activation.hpp"
#include "kiln/convolution.hpp"
#include "kiln/local.hpp"
#include "kiln/matmul.hpp"
#include "kiln/normalization.hpp"
#include "kiln/pooling.hpp"
#include "kiln/softmax.hpp"
#include "kiln/tensor_operations.hpp"

namespace kiln {
inline namespace cxx {

inline kilnCacheStats_t cache_stats() {
  kilnCacheStats_t stats{};
  stats.structSize = sizeof stats;
  check(kilnGetCacheStats(&stats));
  return stats;
}

}  // namespace cxx
}  // namespace kiln

#endif  // C++20

#endif  // KILN_KILN_HPP
