// Runs kernels whose text is in a test on the host device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/source.hpp"
#include "compile/compiler.hpp"
#include "core/error.hpp"
#include "device/device.hpp"

namespace kiln::test {

#ifdef KILN_SANITIZE
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

inline Compiled compile_for_host(std::string_view text) {
  std::string why;
  const auto compiler = find_host_compiler(why);
  if (!compiler) fail(KILN_STATUS_NO_COMPILER, why);
  return compiler->compile(expand_includes(text, KILN_DEVICE_HOST), "test.cu",
                           host_compiler_options());
}

// The beginning of each kernel's text: includes, and the parameters that all these kernels have.
inline constexpr std::string_view kernel_prelude = R"(
constexpr bool CLUSTERED = true;
#include "target/kernel.cuh"
#include "target/shared_memory.cuh"
#include "target/async_copy.cuh"
#include "common/compute_type.cuh"
#include "target/cluster.cuh"
struct Params {
  const void* in;
  void* out;
  long long count;
};
)";

struct Params {
  const void* in = nullptr;
  void* out = nullptr;
  std::int64_t count = 0;
};

// Compiles a kernel named `test`. Its text is `constants` and then `body`, which has its
// KILN_KERNEL line.
inline std::unique_ptr<Kernel> load_kernel(std::string_view constants, std::string_view body,
                                           std::uint32_t shared_memory = 0) {
  const Compiled compiled = compile_for_host(cat(kernel_prelude, constants, "\n", body));
  return open_host_device()->load(compiled.binary, "test", shared_memory);
}

inline void launch(const Kernel& kernel, const LaunchShape& shape, const Params& params) {
  kernel.launch(shape, std::as_bytes(std::span(&params, 1)), nullptr);
}

// Device memory of exactly the size of its elements.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t count) : device_(open_host_device()), count_(count) {
    address_ = static_cast<T*>(device_->allocate(count * sizeof(T)));
    device_->fill(address_, 0xee, count * sizeof(T));
  }
  explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) {
    device_->copy_in(address_, values.data(), count_ * sizeof(T));
  }
  ~Buffer() { device_->free(address_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* get() const { return address_; }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    device_->copy_out(values.data(), address_, count_ * sizeof(T));
    return values;
  }

 private:
  std::shared_ptr<Device> device_;
  T* address_;
  std::size_t count_;
};

// The `outputs` elements that `kernel` writes when it reads `in`.
template <class Out, class In>
std::vector<Out> run_kernel(const Kernel& kernel, const LaunchShape& shape,
                            const std::vector<In>& in, std::size_t outputs) {
  const Buffer<In> input(in);
  const Buffer<Out> output(outputs);
  launch(kernel, shape, {input.get(), output.get(), static_cast<std::int64_t>(in.size())});
  return output.read();
}

// The message of a failed launch; "" if it does not fail.
inline std::string failure_of(const Kernel& kernel, const LaunchShape& shape,
                              const Params& params = {}) {
  try {
    launch(kernel, shape, params);
  } catch (const Error& error) {
    return error.status() == KILN_STATUS_EXECUTION_FAILED
               ? error.what()
               : cat("unexpected status ", static_cast<int>(error.status()), ": ", error.what());
  }
  return "";
}

}  // namespace kiln::test
