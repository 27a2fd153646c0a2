/* A 2x2 box filter over a 3x3 image on the host device: whole only if the installed library carries
 * its kernels with it. */
#include <kiln/kiln.h>
#include <stdio.h>

#define CHECK(call)                                                  \
  do {                                                               \
    if ((call) != KILN_STATUS_SUCCESS) {                             \
      fprintf(stderr, "%s: %s\n", #call, kilnGetLastErrorMessage()); \
      return 1;                                                      \
    }                                                                \
  } while (0)

int main(void) {
  const float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[4] = {1, 1, 1, 1};
  const float expected[4] = {12, 16, 24, 28}, one = 1, zero = 0;
  float y[4] = {0, 0, 0, 0};
  kilnHandle_t handle;
  kilnTensorDescriptor_t x_desc, y_desc;
  kilnFilterDescriptor_t w_desc;
  kilnConvolutionDescriptor_t conv_desc;
  int i;

  CHECK(kilnCheckVersion(KILN_VERSION));
  CHECK(kilnCreate(&handle, KILN_DEVICE_HOST, 0));
  CHECK(kilnCreateTensorDescriptor(&x_desc));
  CHECK(kilnCreateTensorDescriptor(&y_desc));
  CHECK(kilnCreateFilterDescriptor(&w_desc));
  CHECK(kilnCreateConvolutionDescriptor(&conv_desc));
  CHECK(kilnSetTensor4dDescriptor(x_desc, KILN_TENSOR_NCHW, KILN_DATA_FLOAT, 1, 1, 3, 3));
  CHECK(kilnSetTensor4dDescriptor(y_desc, KILN_TENSOR_NCHW, KILN_DATA_FLOAT, 1, 1, 2, 2));
  CHECK(kilnSetFilter4dDescriptor(w_desc, KILN_DATA_FLOAT, KILN_TENSOR_NCHW, 1, 1, 2, 2));
  CHECK(kilnSetConvolution2dDescriptor(conv_desc, 0, 0, 1, 1, 1, 1, KILN_CROSS_CORRELATION,
                                       KILN_DATA_FLOAT));
  CHECK(kilnConvolutionForward(handle, &one, x_desc, x, w_desc, w, conv_desc, &zero, y_desc, y));
  for (i = 0; i < 4; ++i) {
    if (y[i] != expected[i]) {
      fprintf(stderr, "y[%d] is %g; expected %g\n", i, y[i], expected[i]);
      return 1;
    }
  }
  CHECK(kilnDestroyConvolutionDescriptor(conv_desc));
  CHECK(kilnDestroyFilterDescriptor(w_desc));
  CHECK(kilnDestroyTensorDescriptor(y_desc));
  CHECK(kilnDestroyTensorDescriptor(x_desc));
  CHECK(kilnDestroy(handle));
  printf("C: version %d, y = %g %g %g %g\n", kilnGetVersion(), y[0], y[1], y[2], y[3]);
  return 0;
}
