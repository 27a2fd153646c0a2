// What the tests here have a process do, with the public C API alone, and without a word: it runs
// in forked children, on threads, and where memory is short.
#pragma once

#include <vector>

#include "kiln/kiln.h"

namespace test {

// A small convolution on the host device whose sums are exact. Each `number` below 1000 is a kernel
// of its own.
class Work {
 public:
  explicit Work(int number);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // What making the descriptors ended with; nothing else may be called unless it is SUCCESS.
  kilnStatus_t status() const { return status_; }

  kilnStatus_t run(kilnHandle_t handle);                       // immediately
  kilnStatus_t plan(kilnHandle_t handle, kilnPlan_t* out);     // not yet finalized
  kilnStatus_t execute(kilnHandle_t handle, kilnPlan_t plan);  // finalized
  bool right() const;                                          // the result of the last of them

 private:
  kilnStatus_t make();
  void clear();

  int number_;
  kilnStatus_t status_ = KILN_STATUS_SUCCESS;
  kilnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  kilnFilterDescriptor_t w_ = nullptr;
  kilnConvolutionDescriptor_t convolution_ = nullptr;
  static constexpr int images = 2, channels = 2, side = 6, filters = 3;
  float x_data_[images * (channels * side * side + 1000)], w_data_[filters * channels * 9],
      y_data_[images * filters * side * side];
};

// A plan, from its making to its end. 0, or the number of the step that went wrong.
int load_and_unload(kilnHandle_t handle, int number);

// Everything, from a handle of its own on: an immediate call, a plan, one finalized in the
// background. 0, or the number of the step that went wrong.
int do_everything(int number);

// KILN_TEST_FULL=1: the long run.
int times(int brief, int full);

}  // namespace test
