// A GPU: its primary context, modules loaded from cubins, launches.
#include <array>
#include <string_view>

#include "core/error.hpp"
#include "core/process/per_process.hpp"
#include "device/cuda/clusters.hpp"
#include "device/cuda/current_context.hpp"
#include "device/cuda/driver.hpp"
#include "device/cuda/relaxed_capture.hpp"
#include "device/cuda/tensor_map.hpp"
#include "device/device.hpp"

namespace kiln {
namespace {

using cuda::check;
using cuda::CurrentContext;
using cuda::driver;
using cuda::RelaxedCapture;

// Whether early (programmatic) launches (kernel_sources/cuda/step.cuh) can be captured into CUDA
// graphs: from driver 12.3 on.
bool can_come_early() {
  constexpr int least = 12030;
  int version = 0;
  return driver().cuDriverGetVersion(&version) == CUDA_SUCCESS && version >= least;
}

// Whether a kernel's file has KILN_BEGINS_STEP, which defines a variable of this name. The cubin is
// searched for the name: if the driver were asked, tools that watch it would report its answer that
// there is no such variable as an error.
bool says_that_it_begins_step(std::span<const std::byte> cubin) {
  constexpr std::string_view name = "kiln_begins_step";
  const std::string_view text(reinterpret_cast<const char*>(cubin.data()), cubin.size());
  return text.find(name) != std::string_view::npos;
}

class CudaKernel final : public Kernel {
 public:
  CudaKernel(CUcontext context, std::span<const std::byte> cubin, const std::string& entry,
             std::uint32_t shared_memory, int largest_cluster)
      : context_(context) {
    CurrentContext current(context_);
    const RelaxedCapture relaxed;
    check(driver().cuModuleLoadData(&module_, cubin.data()), "cuModuleLoadData");
    try {
      check(driver().cuModuleGetFunction(&function_, module_, entry.c_str()),
            "cuModuleGetFunction");
      constexpr std::uint32_t without_opt_in = 48 * 1024;
      if (shared_memory > without_opt_in)
        check(
            driver().cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        static_cast<int>(shared_memory)),
            "cuFuncSetAttribute");
      constexpr int portable_cluster = 8;
      if (largest_cluster > portable_cluster)
        check(driver().cuFuncSetAttribute(function_,
                                          CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
              "cuFuncSetAttribute");
      begins_step_ = can_come_early() && says_that_it_begins_step(cubin);
    } catch (...) {
      driver().cuModuleUnload(module_);
      throw;
    }
  }
  CudaKernel(const CudaKernel&) = delete;
  CudaKernel& operator=(const CudaKernel&) = delete;

  // Failures are ignored: at the end of a process, the driver may be gone before its modules. The
  // driver lets launches of the module's kernels end before it frees their code.
  ~CudaKernel() override {
    CUcontext ignored;
    if (driver().cuCtxPushCurrent(context_) != CUDA_SUCCESS) return;
    const RelaxedCapture relaxed;
    driver().cuModuleUnload(module_);
    driver().cuCtxPopCurrent(&ignored);
  }

  void launch(const LaunchShape& shape, std::span<const std::byte> parameters,
              void* stream) const override {
    CurrentContext current(context_);
    // The kernel's one parameter is a struct, so one pointer to it is the whole argument list.
    void* arguments[] = {const_cast<std::byte*>(parameters.data())};
    const auto& [grid, block, cluster, shared_memory] = shape;
    if (cluster == 1 && !begins_step_) {
      check(driver().cuLaunchKernel(function_, grid[0], grid[1], grid[2], block[0], block[1],
                                    block[2], shared_memory, static_cast<CUstream>(stream),
                                    arguments, nullptr),
            "cuLaunchKernel");
      return;
    }
    std::array<CUlaunchAttribute, 2> attributes{};
    unsigned count = 0;
    if (cluster > 1) {
      CUlaunchAttribute& attribute = attributes[count++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attribute.value.clusterDim = {cluster, 1, 1};
    }
    if (begins_step_) {
      CUlaunchAttribute& attribute = attributes[count++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
      attribute.value.programmaticStreamSerializationAllowed = 1;
    }
    CUlaunchConfig config{};
    config.gridDimX = grid[0], config.gridDimY = grid[1], config.gridDimZ = grid[2];
    config.blockDimX = block[0], config.blockDimY = block[1], config.blockDimZ = block[2];
    config.sharedMemBytes = shared_memory;
    config.hStream = static_cast<CUstream>(stream);
    config.attrs = attributes.data();
    config.numAttrs = count;
    check(driver().cuLaunchKernelEx(&config, function_, arguments, nullptr), "cuLaunchKernelEx");
  }

  int registers() const override { return attribute(CU_FUNC_ATTRIBUTE_NUM_REGS); }
  int local_memory() const override { return attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES); }

 private:
  int attribute(CUfunction_attribute which) const {
    CurrentContext current(context_);
    int value = 0;
    check(driver().cuFuncGetAttribute(&value, which, function_), "cuFuncGetAttribute");
    return value;
  }

  CUcontext context_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  bool begins_step_ = false;
};

struct Event {
  CUevent handle = nullptr;
  Event() { check(driver().cuEventCreate(&handle, CU_EVENT_DEFAULT), "cuEventCreate"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { driver().cuEventDestroy(handle); }
};

int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  check(driver().cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

DeviceDescription describe(CUdevice device, int ordinal) {
  DeviceDescription out;
  char name[256] = "";
  check(driver().cuDeviceGetName(name, sizeof name, device), "cuDeviceGetName");
  std::size_t memory = 0;
  check(driver().cuDeviceTotalMem(&memory, device), "cuDeviceTotalMem");
  out.kind = KILN_DEVICE_CUDA;
  out.name = name;
  out.ordinal = ordinal;
  out.compute_capability = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                           attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  out.arch = architecture_name(out.compute_capability);
  out.multiprocessors = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  out.largest_cluster = largest_cluster(out.compute_capability);
  out.clusters_at_once = known_clusters(out.compute_capability, out.multiprocessors);
  out.shared_memory_per_block =
      attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  out.shared_memory_per_multiprocessor =
      attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  out.registers_per_multiprocessor =
      attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  out.l2_bytes = attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  out.memory_bytes = static_cast<std::int64_t>(memory);
  check(driver().cuDriverGetVersion(&out.driver_version), "cuDriverGetVersion");
  return out;
}

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal) {
    CUdevice device;
    check(driver().cuDeviceGet(&device, ordinal), "cuDeviceGet");
    description_ = describe(device, ordinal);
    // It is retained until the process ends, because plans of any thread may hold kernels in it.
    check(driver().cuDevicePrimaryCtxRetain(&context_, device), "cuDevicePrimaryCtxRetain");
    // A chip of the table gets the table's counts, though the processing clusters of two chips of
    // one name may differ: so kernels that another machine made for that name are the ones chosen
    // here.
    if (description_.largest_cluster > 1 && description_.clusters_at_once == ClusterCounts{}) {
      const CurrentContext current(context_);
      cuda::count_clusters(description_);
    }
  }

  const DeviceDescription& description() const override { return description_; }

  std::unique_ptr<Kernel> load(std::span<const std::byte> binary, const std::string& entry,
                               std::uint32_t shared_memory) override {
    return std::make_unique<CudaKernel>(context_, binary, entry, shared_memory,
                                        description_.largest_cluster);
  }

  void encode_map(const TensorMapSpec& map,
                  std::span<std::byte, tensor_map_bytes> to) const override {
    const CurrentContext current(context_);  // without one the driver refuses
    cuda::encode(map, to);
  }
  void set_map_address(std::byte* map, void* address) const override {
    const CurrentContext current(context_);
    cuda::set_address(map, address);
  }

  void make_current() override {
    CUcontext current = nullptr;
    check(driver().cuCtxGetCurrent(&current), "cuCtxGetCurrent");
    if (current != context_) check(driver().cuCtxPushCurrent(context_), "cuCtxPushCurrent");
  }

  void* allocate(std::size_t bytes) override {
    CurrentContext current(context_);
    CUdeviceptr pointer = 0;
    check(driver().cuMemAlloc(&pointer, bytes ? bytes : 1), "cuMemAlloc");
    return reinterpret_cast<void*>(pointer);
  }
  void free(void* pointer) override {
    CurrentContext current(context_);
    check(driver().cuMemFree(address(pointer)), "cuMemFree");
  }
  void copy_in(void* device, const void* host, std::size_t bytes) override {
    CurrentContext current(context_);
    check(driver().cuMemcpyHtoD(address(device), host, bytes), "cuMemcpyHtoD");
  }
  void copy_out(void* host, const void* device, std::size_t bytes) override {
    CurrentContext current(context_);
    check(driver().cuMemcpyDtoH(host, address(device), bytes), "cuMemcpyDtoH");
  }
  void copy(void* to, const void* from, std::size_t bytes, void* stream) override {
    CurrentContext current(context_);
    check(driver().cuMemcpyDtoDAsync(address(to), address(from), bytes,
                                     static_cast<CUstream>(stream)),
          "cuMemcpyDtoDAsync");
  }
  void fill(void* device, unsigned char byte, std::size_t bytes) override {
    CurrentContext current(context_);
    check(driver().cuMemsetD8(address(device), byte, bytes), "cuMemsetD8");
  }
  void synchronize(void* stream) override {
    CurrentContext current(context_);
    check(driver().cuStreamSynchronize(static_cast<CUstream>(stream)), "cuStreamSynchronize");
  }

  double time(void* stream, int count, const std::function<void()>& work) override {
    CurrentContext current(context_);
    const auto queue = static_cast<CUstream>(stream);
    Event start, stop;
    check(driver().cuEventRecord(start.handle, queue), "cuEventRecord");
    for (int i = 0; i < count; ++i) work();
    check(driver().cuEventRecord(stop.handle, queue), "cuEventRecord");
    check(driver().cuEventSynchronize(stop.handle), "cuEventSynchronize");
    float milliseconds = 0;
    check(driver().cuEventElapsedTime(&milliseconds, start.handle, stop.handle),
          "cuEventElapsedTime");
    return milliseconds;
  }

 private:
  DeviceDescription description_;
  CUcontext context_ = nullptr;
};

int device_count() {
  int count = 0;
  check(driver().cuDeviceGetCount(&count), "cuDeviceGetCount");
  return count;
}

}  // namespace

std::shared_ptr<Device> open_cuda_device(int ordinal) {
  const int count = device_count();
  if (count == 0) fail(KILN_STATUS_NO_DEVICE, "no GPU: the CUDA driver reports no device");
  if (ordinal < 0 || ordinal >= count)
    fail(KILN_STATUS_BAD_PARAM, "device ordinal is ", ordinal, "; expected 0 to ", count - 1);
  static constinit PerProcess<std::array<std::shared_ptr<Device>, 64>> devices("CUDA devices");
  const auto opened = devices.lock();
  std::shared_ptr<Device>& slot = opened->at(static_cast<std::size_t>(ordinal));
  if (!slot) slot = std::make_shared<CudaDevice>(ordinal);
  return slot;
}

std::vector<DeviceDescription> list_cuda_devices(std::string& why) {
  std::vector<DeviceDescription> out;
  if (!cuda::find_driver(why)) return out;
  const int count = device_count();
  if (count == 0) why = "no GPU: the CUDA driver reports no device";
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device;
    check(driver().cuDeviceGet(&device, ordinal), "cuDeviceGet");
    out.push_back(describe(device, ordinal));
  }
  return out;
}

}  // namespace kiln
