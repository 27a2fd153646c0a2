// A convolution on a GPU, in a program that uses the CUDA runtime: a stream of its own, device
// memory, and copies in that stream. Ends with 77 where there is no GPU.
//   c++ -std=c++20 gpu_convolution.cpp -lkiln -lcudart
#include <cuda_runtime_api.h>

#include <cstdio>
#include <exception>
#include <kiln/kiln.hpp>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace {

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

struct Free {
  void operator()(float* address) const { cudaFree(address); }
};
using DeviceFloats = std::unique_ptr<float[], Free>;

DeviceFloats allocate(std::size_t count) {
  void* address = nullptr;
  check(cudaMalloc(&address, count * sizeof(float)));
  return DeviceFloats(static_cast<float*>(address));
}

void run() {
  // The runtime's context of device 0 is the one that Kiln's handle is of, so its memory, streams
  // and events serve.
  check(cudaSetDevice(0));
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  kiln::Handle handle(KILN_DEVICE_CUDA, 0);
  handle.set_stream(stream);

  // 3x3 with a border of one zero, on 2 images of 8 channels; 4 output channels.
  const kiln::TensorDescriptor x_desc(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {2, 8, 16, 16});
  const kiln::FilterDescriptor w_desc(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {4, 8, 3, 3});
  const kiln::ConvolutionDescriptor convolution({.pad_before = {1, 1}});
  const kiln::TensorDescriptor y_desc(KILN_TENSOR_NCHW, KILN_DATA_FLOAT,
                                      convolution.output_dims(x_desc, w_desc));
  kiln::ConvolutionForward plan(
      handle, {.x = x_desc, .w = w_desc, .convolution = convolution, .y = y_desc});
  plan.finalize();  // the kernel is made here, or found in the cache

  const std::vector<float> x_host(x_desc.extent().elements, 1.0f),
      w_host(w_desc.extent().elements, 1.0f);
  std::vector<float> y_host(y_desc.extent().elements);
  const DeviceFloats x = allocate(x_host.size()), w = allocate(w_host.size()),
                     y = allocate(y_host.size());

  // Copies and the execution go to one stream, so each waits for the one before.
  check(cudaMemcpyAsync(x.get(), x_host.data(), x_host.size() * sizeof(float),
                        cudaMemcpyHostToDevice, stream));
  check(cudaMemcpyAsync(w.get(), w_host.data(), w_host.size() * sizeof(float),
                        cudaMemcpyHostToDevice, stream));
  plan.execute(handle, {.x = std::span(x.get(), x_host.size()),
                        .w = std::span(w.get(), w_host.size()),
                        .y = std::span(y.get(), y_host.size())});
  check(cudaMemcpyAsync(y_host.data(), y.get(), y_host.size() * sizeof(float),
                        cudaMemcpyDeviceToHost, stream));
  check(cudaStreamSynchronize(stream));  // until here the host has waited for nothing
  check(cudaStreamDestroy(stream));

  const float corner = y_host[0], centre = y_host[8 * 16 + 8];
  std::printf("%s: corner %g, centre %g\n", plan.text(KILN_PLAN_ENGINE).data(), corner, centre);
  if (corner != 4 * 8 || centre != 9 * 8) throw std::runtime_error("expected 32 and 72");
}

}  // namespace

int main() try {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::puts("no GPU");
    return 77;
  }
  run();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "gpu_convolution: %s\n", error.what());
  return 1;
}
