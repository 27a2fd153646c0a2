/* A first convolution: y = conv(x, w), from descriptors to the result.
 * It runs on the host device, whose memory is ordinary memory. On a GPU operands are device memory,
 * filled and read by copies: samples/gpu/gpu_convolution.cpp. */
#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                  \
  do {                                                                               \
    if ((call) != KILN_STATUS_SUCCESS) {                                             \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, kilnGetLastErrorMessage()); \
      return EXIT_FAILURE;                                                           \
    }                                                                                \
  } while (0)

enum { N = 2, C = 8, H = 16, W = 16, K = 4, R = 3, S = 3 };
static float x[N * C * H * W], w[K * C * R * S], y[N * K * H * W];

int main(void) {
  const float alpha = 1.0f, beta = 0.0f;
  int64_t n, k, p, q;
  const char* engine;
  kilnHandle_t handle;
  kilnTensorDescriptor_t x_desc, y_desc;
  kilnFilterDescriptor_t w_desc;
  kilnConvolutionDescriptor_t convolution; /* 3x3 with a border of one zero */
  kilnPlan_t plan;
  CHECK(kilnCheckVersion(KILN_VERSION));
  CHECK(kilnCreate(&handle, KILN_DEVICE_HOST, 0));
  CHECK(kilnCreateTensorDescriptor(&x_desc));
  CHECK(kilnCreateTensorDescriptor(&y_desc));
  CHECK(kilnCreateFilterDescriptor(&w_desc));
  CHECK(kilnCreateConvolutionDescriptor(&convolution));
  CHECK(kilnSetTensor4dDescriptor(x_desc, KILN_TENSOR_NCHW, KILN_DATA_FLOAT, N, C, H, W));
  CHECK(kilnSetFilter4dDescriptor(w_desc, KILN_DATA_FLOAT, KILN_TENSOR_NCHW, K, C, R, S));
  CHECK(kilnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, KILN_CROSS_CORRELATION,
                                       KILN_DATA_FLOAT));
  CHECK(kilnGetConvolution2dForwardOutputDim(convolution, x_desc, w_desc, &n, &k, &p, &q));
  CHECK(kilnSetTensor4dDescriptor(y_desc, KILN_TENSOR_NCHW, KILN_DATA_FLOAT, n, k, p, q));

  CHECK(kilnCreateConvolutionForwardPlan(handle, x_desc, w_desc, convolution, y_desc, &plan));
  CHECK(kilnFinalizePlan(plan)); /* the kernel is made here, or found in the cache */
  for (int i = 0; i < N * C * H * W; ++i) x[i] = 1.0f;
  for (int i = 0; i < K * C * R * S; ++i) w[i] = 1.0f;
  CHECK(
      kilnExecuteConvolutionForward(handle, plan, &alpha, x, w, &beta, y)); /* as often as needed */

  CHECK(kilnGetPlanText(plan, KILN_PLAN_ENGINE, &engine));
  printf("%s: corner %g, centre %g\n", engine, y[0], y[H / 2 * W + W / 2]);
  CHECK(kilnDestroyPlan(plan));
  CHECK(kilnDestroyConvolutionDescriptor(convolution));
  CHECK(kilnDestroyFilterDescriptor(w_desc));
  CHECK(kilnDestroyTensorDescriptor(y_desc));
  CHECK(kilnDestroyTensorDescriptor(x_desc));
  CHECK(kilnDestroy(handle));
  return y[0] == 4 * C && y[H / 2 * W + W / 2] == 9 * C ? EXIT_SUCCESS : EXIT_FAILURE;
}
