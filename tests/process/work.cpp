#include "work.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace test {

Work::Work(int number) : number_(number) {
  status_ = make();
  if (status_ != KILN_STATUS_SUCCESS) clear();
  int seed = number;
  const auto fill = [&](float* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>((seed += 7) % 5 - 2);
  };
  fill(x_data_, std::size(x_data_));
  fill(w_data_, std::size(w_data_));
  std::fill(std::begin(y_data_), std::end(y_data_), -12345.f);
}

Work::~Work() { clear(); }

void Work::clear() {
  kilnDestroyTensorDescriptor(x_);
  kilnDestroyTensorDescriptor(y_);
  kilnDestroyFilterDescriptor(w_);
  kilnDestroyConvolutionDescriptor(convolution_);
  x_ = y_ = nullptr, w_ = nullptr, convolution_ = nullptr;
}

kilnStatus_t Work::make() {
  kilnStatus_t status = KILN_STATUS_SUCCESS;
  const auto ok = [&](kilnStatus_t now) { return (status = now) == KILN_STATUS_SUCCESS; };
  const std::int64_t x_dims[] = {images, channels, side, side},
                     w_dims[] = {filters, channels, 3, 3}, y_dims[] = {images, filters, side, side};
  const std::int64_t x_strides[] = {channels * side * side + number_, side * side, side, 1},
                     y_strides[] = {filters * side * side, side * side, side, 1};
  const std::int64_t one[] = {1, 1};
  static_cast<void>(
      ok(kilnCreateTensorDescriptor(&x_)) && ok(kilnCreateTensorDescriptor(&y_)) &&
      ok(kilnCreateFilterDescriptor(&w_)) && ok(kilnCreateConvolutionDescriptor(&convolution_)) &&
      ok(kilnSetTensorNdDescriptor(x_, KILN_DATA_FLOAT, 4, x_dims, x_strides)) &&
      ok(kilnSetTensorNdDescriptor(y_, KILN_DATA_FLOAT, 4, y_dims, y_strides)) &&
      ok(kilnSetFilterNdDescriptor(w_, KILN_DATA_FLOAT, KILN_TENSOR_NCHW, 4, w_dims)) &&
      ok(kilnSetConvolutionNdDescriptor(convolution_, 2, one, one, one, one, KILN_CROSS_CORRELATION,
                                        KILN_DATA_FLOAT)));
  return status;
}

kilnStatus_t Work::run(kilnHandle_t handle) {
  const float one = 1, zero = 0;
  return kilnConvolutionForward(handle, &one, x_, x_data_, w_, w_data_, convolution_, &zero, y_,
                                y_data_);
}

kilnStatus_t Work::plan(kilnHandle_t handle, kilnPlan_t* out) {
  return kilnCreateConvolutionForwardPlan(handle, x_, w_, convolution_, y_, out);
}

kilnStatus_t Work::execute(kilnHandle_t handle, kilnPlan_t plan) {
  const float one = 1, zero = 0;
  return kilnExecuteConvolutionForward(handle, plan, &one, x_data_, w_data_, &zero, y_data_);
}

bool Work::right() const {
  const int image = channels * side * side + number_;
  for (int i = 0; i < images * filters * side * side; ++i) {
    const int q = i % side, p = i / side % side, k = i / (side * side) % filters,
              n = i / (side * side * filters);
    float sum = 0;
    for (int c = 0; c < channels; ++c)
      for (int r = 0; r < 3; ++r)
        for (int s = 0; s < 3; ++s) {
          const int row = p - 1 + r, column = q - 1 + s;
          if (row < 0 || row >= side || column < 0 || column >= side) continue;
          sum += x_data_[n * image + (c * side + row) * side + column] *
                 w_data_[((k * channels + c) * 3 + r) * 3 + s];
        }
    if (y_data_[i] != sum) return false;
  }
  return true;
}

int load_and_unload(kilnHandle_t handle, int number) {
  Work work(number);
  kilnPlan_t plan = nullptr;
  if (work.plan(handle, &plan) != KILN_STATUS_SUCCESS) return 1;
  if (kilnFinalizePlan(plan) != KILN_STATUS_SUCCESS) return 2;
  if (work.execute(handle, plan) != KILN_STATUS_SUCCESS || !work.right()) return 3;
  return kilnDestroyPlan(plan) == KILN_STATUS_SUCCESS ? 0 : 4;
}

int do_everything(int number) {
  int step = 0;
  const auto ok = [&](bool good) { return ++step, good; };
  const auto succeeds = [&](kilnStatus_t status) { return ok(status == KILN_STATUS_SUCCESS); };
  kilnHandle_t handle = nullptr;
  kilnPlan_t plan = nullptr, background = nullptr;
  Work work(number), other(number);
  const bool good =
      succeeds(work.status()) && succeeds(kilnCreate(&handle, KILN_DEVICE_HOST, 0)) &&
      succeeds(work.run(handle)) && ok(work.right()) &&                           // 4
      succeeds(other.plan(handle, &plan)) && succeeds(kilnFinalizePlan(plan)) &&  // 6
      succeeds(other.execute(handle, plan)) && ok(other.right()) &&               // 8
      succeeds(work.plan(handle, &background)) && succeeds(kilnStartFinalizePlan(background)) &&
      succeeds(kilnWaitFinalizePlan(background)) && succeeds(work.execute(handle, background)) &&
      succeeds(kilnDestroyPlan(background)) && succeeds(kilnDestroyPlan(plan)) &&  // 14
      succeeds(kilnDestroy(handle));
  if (!good) std::fprintf(stderr, "step %d: %s\n", step, kilnGetLastErrorMessage());
  return good ? 0 : step;
}

int times(int brief, int full) {
  const char* const wanted = std::getenv("KILN_TEST_FULL");
  return wanted != nullptr && std::string(wanted) == "1" ? full : brief;
}

}  // namespace test
