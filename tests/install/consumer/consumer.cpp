// The same through kiln.hpp: a 2x2 box filter over a 3x3 image on the host device.
#include <array>
#include <cstdio>
#include <exception>
#include <kiln/kiln.hpp>
#include <span>

int main() try {
  const kiln::Handle handle(KILN_DEVICE_HOST);
  const kiln::TensorDescriptor x_desc(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {1, 1, 3, 3});
  const kiln::FilterDescriptor w_desc(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {1, 1, 2, 2});
  const kiln::ConvolutionDescriptor convolution({});
  const kiln::TensorDescriptor y_desc(KILN_TENSOR_NCHW, KILN_DATA_FLOAT,
                                      convolution.output_dims(x_desc, w_desc));
  kiln::ConvolutionForward plan(
      handle, {.x = x_desc, .w = w_desc, .convolution = convolution, .y = y_desc});
  plan.finalize();

  const std::array<float, 9> x{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::array<float, 4> w{1, 1, 1, 1}, expected{12, 16, 24, 28};
  std::array<float, 4> y{};
  plan.execute(handle, {.x = std::span(x), .w = std::span(w), .y = std::span(y)});
  if (y != expected) {
    std::fprintf(stderr, "y is %g %g %g %g; expected 12 16 24 28\n", y[0], y[1], y[2], y[3]);
    return 1;
  }
  std::printf("C++: engine %s, y = %g %g %g %g\n", plan.text(KILN_PLAN_ENGINE).data(), y[0], y[1],
              y[2], y[3]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "consumer: %s\n", error.what());
  return 1;
}
