#include <kiln/kiln.hpp>
#include <vector>

int main() {
  const kiln::Handle handle(KILN_DEVICE_HOST);  // KILN_DEVICE_CUDA: operands in GPU memory
  const kiln::TensorDescriptor x(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {2, 8, 16, 16});
  const kiln::FilterDescriptor w(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {4, 8, 3, 3});
  const kiln::ConvolutionDescriptor conv({.pad_before = {1, 1}});
  const kiln::TensorDescriptor y(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, conv.output_dims(x, w));
  kiln::ConvolutionForward plan(handle, {.x = x, .w = w, .convolution = conv, .y = y});
  plan.finalize();  // compiles the kernel, or finds it in the cache
  std::vector<float> xs(2 * 8 * 16 * 16, 1.0f), ws(4 * 8 * 3 * 3, 1.0f), ys(2 * 4 * 16 * 16);
  plan.execute(handle, {.x = xs.data(), .w = ws.data(), .y = ys.data()});  // any number of times
  return ys[0] == 32 ? 0 : 1;  // at a corner 4 of the 9 taps lie inside, in 8 channels
}
