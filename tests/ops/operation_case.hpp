// Runs one operation of any kind on the device under test (KILN_TEST_DEVICE: host, the default, or
// cuda).
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "plan/kernel_store.hpp"
#include "plan/plan.hpp"
#include "support/counts.hpp"
#include "support/memory.hpp"
#include "support/operation_data.hpp"

namespace test {

inline kilnDeviceKind_t device_kind() {
  const char* wanted = std::getenv("KILN_TEST_DEVICE");
  return wanted && std::string(wanted) == "cuda" ? KILN_DEVICE_CUDA : KILN_DEVICE_HOST;
}

// The share of cases (tiles, splits, edges) that a suite runs: one in `of` on the host device,
// whose kernels take long to compile, and fewer in the quick tier; all on a GPU.
inline kiln_test::ShareOfCases share_of_cases(unsigned of = 2) {
  const bool host = device_kind() == KILN_DEVICE_HOST;
  return kiln_test::ShareOfCases(host ? of : 1, host);
}

// The number of random cases: `quick` on the host device in the quick tier, else `wide`.
inline int turns(int quick, int wide) {
  return device_kind() == KILN_DEVICE_HOST ? kiln_test::turns(quick, wide) : wide;
}

inline std::shared_ptr<Device> device() { return open_device(device_kind(), 0); }

class DeviceBuffer {
 public:
  DeviceBuffer(Device& device, const std::vector<std::byte>& bytes)
      : device_(device), size_(bytes.size()), address_(device.allocate(size_ == 0 ? 1 : size_)) {
    if (size_ > 0) device_.copy_in(address_, bytes.data(), size_);
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { device_.free(address_); }
  void* address() const { return address_; }
  std::vector<std::byte> read() const {
    std::vector<std::byte> bytes(size_);
    device_.synchronize(nullptr);
    if (size_ > 0) device_.copy_out(bytes.data(), address_, size_);
    return bytes;
  }

 private:
  Device& device_;
  std::size_t size_;
  void* address_;
};

struct OperationCase : OperationData {
  using OperationData::OperationData;

  // Executes `launch(operands)` on buffers of the device and reads the result's memory back.
  template <class Launch>
  std::vector<std::byte> run(Device& on, const Launch& launch) const {
    std::vector<std::unique_ptr<DeviceBuffer>> buffers;
    std::vector<void*> operands;
    for (const HostTensor& tensor : tensors) {
      buffers.push_back(std::make_unique<DeviceBuffer>(on, tensor.bytes()));
      operands.push_back(buffers.back()->address());
    }
    launch(std::span<void* const>(operands));
    return buffers.back()->read();
  }

  HostTensor run_plan(const std::string& engine = {}) const {
    return run_plan(FinalizeOptions{.grant = {.only_engine = engine}});
  }
  HostTensor run_plan(const FinalizeOptions& options) const;

 private:
  kiln_test::Question question_of(const Plan& plan) const;
};

// Executes a proposal, whether or not a plan would choose it.
HostTensor run_proposal(const OperationCase& item, const Proposal& proposal);

// Runs the operation and compares the result. Returns the problem's text and the fault, or "".
std::string check(const OperationCase& item, const std::string& engine = {});

// Multiplies all values by 2^power and rounds them to f32; subnormal ones have fewer bits.
void scale_f32(HostTensor& tensor, int power);

// The root mean square of the errors, relative to that of the wanted values, which have the size
// 2^power.
double relative_rms(const std::vector<double>& got, const std::vector<double>& want, int power);

}  // namespace test
