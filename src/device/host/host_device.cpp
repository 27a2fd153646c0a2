// The host device: kernels compiled by the C++ compiler, run on the CPU block by block.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <mutex>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/process/per_process.hpp"
#include "core/process/thread.hpp"
#include "device/device.hpp"
#include "device/host/cluster_runner.hpp"
#include "device/host/shared_object.hpp"
#include "device/host/tensor_map.hpp"

namespace kiln {
namespace {

// The limits of a large GPU, so that tiles for one are legal here.
constexpr std::uint32_t max_shared_memory = 227 * 1024;
constexpr std::uint32_t shared_memory_without_asking = 48 * 1024;
constexpr std::uint64_t max_block_threads = 1024;
constexpr std::uint32_t max_cluster = 16;

// Each fiber stack costs two entries of the process's memory map, of which Linux allows 65530.
constexpr std::uint64_t max_fibers = 16384;

unsigned hardware_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      if (const auto colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "CPU";
}

DeviceDescription describe() {
  DeviceDescription description;
  description.kind = KILN_DEVICE_HOST;
  description.name = cpu_model();
  description.arch = "host";
  description.multiprocessors = static_cast<int>(hardware_threads());
  description.largest_cluster = 16;
  description.shared_memory_per_block = max_shared_memory;
  description.shared_memory_per_multiprocessor = max_shared_memory + 1024;
  description.l2_bytes = std::max(0l, sysconf(_SC_LEVEL3_CACHE_SIZE));
  description.memory_bytes =
      std::int64_t{sysconf(_SC_PHYS_PAGES)} * std::int64_t{sysconf(_SC_PAGESIZE)};
  return description;
}

constinit host::FiberStackPool stack_pool;

class HostKernel : public Kernel {
 public:
  HostKernel(std::span<const std::byte> binary, std::string name, std::uint32_t shared_memory)
      : object_(binary), name_(std::move(name)), shared_memory_(shared_memory) {
    entry_ = static_cast<const host::KernelEntry*>(object_.symbol(name_));
    if (!entry_)
      fail(KILN_STATUS_EXECUTION_FAILED, "the host kernel has no entry named \"", name_, "\"");
    *entry_->current = host::ClusterRunner::current;
    if (shared_memory > max_shared_memory)
      fail(KILN_STATUS_EXECUTION_FAILED, "kernel ", name_, " asks for ", shared_memory,
           " bytes of shared memory; expected at most ", max_shared_memory);
  }

  void launch(const LaunchShape& shape, std::span<const std::byte> parameters,
              void* stream) const override;

 private:
  void check(const LaunchShape& shape, std::size_t parameter_bytes) const;

  host::SharedObject object_;
  std::string name_;
  std::uint32_t shared_memory_;
  const host::KernelEntry* entry_ = nullptr;
};

std::uint64_t product(const std::array<std::uint32_t, 3>& sizes) {
  return std::uint64_t{sizes[0]} * sizes[1] * sizes[2];
}

// Throws if the driver would refuse the launch.
void HostKernel::check(const LaunchShape& shape, std::size_t parameter_bytes) const {
  const auto refuse = [&](const auto&... parts) {
    fail(KILN_STATUS_EXECUTION_FAILED, "launch of kernel ", name_, ": ", parts...);
  };
  if (parameter_bytes != entry_->parameter_bytes)
    refuse("the parameters have ", parameter_bytes, " bytes; expected ", entry_->parameter_bytes);
  if (std::ranges::count(shape.grid, 0u) > 0 || std::ranges::count(shape.block, 0u) > 0)
    refuse("grid ", join(shape.grid, "x"), " of blocks ", join(shape.block, "x"),
           "; expected no size of 0");
  if (shape.grid[0] > 0x7fffffffu || shape.grid[1] > 0xffffu || shape.grid[2] > 0xffffu)
    refuse("grid ", join(shape.grid, "x"), "; expected at most 2147483647x65535x65535");
  if (product(shape.block) > std::min<std::uint64_t>(entry_->max_threads, max_block_threads))
    refuse("a block has ", join(shape.block, "x"), " threads; the kernel was made for at most ",
           entry_->max_threads);
  if (shape.cluster == 0 || shape.cluster > max_cluster || shape.grid[0] % shape.cluster != 0)
    refuse("clusters of ", shape.cluster, " blocks in a grid of ", join(shape.grid, "x"),
           "; expected 1 to ", max_cluster, " that divide the grid's x");
  if (shape.shared_memory > std::max(shared_memory_, shared_memory_without_asking))
    refuse("shared memory of ", shape.shared_memory, " bytes; the kernel was loaded for ",
           shared_memory_);
}

void HostKernel::launch(const LaunchShape& shape, std::span<const std::byte> parameters,
                        void*) const {
  check(shape, parameters.size());
  // A copy with the alignment that the kernel's struct may need.
  struct alignas(tensor_map_alignment) Aligned {
    std::array<std::byte, tensor_map_alignment> bytes;
  };
  std::vector<Aligned> copy(parameters.size() / sizeof(Aligned) + 1);
  std::memcpy(copy.data(), parameters.data(), parameters.size());

  const host::Launch launch{name_, *entry_, shape, copy.data(),
                            static_cast<unsigned>(product(shape.block))};
  const std::uint64_t clusters = product(shape.grid) / shape.cluster;
  const std::uint64_t fibers = std::uint64_t{launch.block_threads} * shape.cluster;
  const std::uint64_t workers = std::min<std::uint64_t>(
      {hardware_threads(), clusters, std::max<std::uint64_t>(1, max_fibers / fibers)});

  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::uint64_t failed_cluster = clusters;  // the one with the least number, on whichever thread
  std::exception_ptr failure;

  const auto work = [&] {
    std::uint64_t cluster = clusters;
    try {
      auto stacks = stack_pool.take(fibers);
      host::ClusterRunner runner(launch, *stacks);
      while (!stop && (cluster = next++) < clusters) runner.run(cluster);
      stack_pool.give_back(std::move(stacks));
    } catch (...) {
      const std::lock_guard lock(mutex);
      stop = true;
      if (failure && failed_cluster <= cluster) return;
      failed_cluster = cluster;
      failure = std::current_exception();
    }
  };

  std::vector<std::thread> others;
  others.reserve(workers - 1);
  try {
    while (others.size() + 1 < workers) others.push_back(start_thread(work));
  } catch (...) {
    // If no more threads can be made, those that exist do the work.
  }
  work();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

class HostDevice : public Device {
 public:
  const DeviceDescription& description() const override { return description_; }

  std::unique_ptr<Kernel> load(std::span<const std::byte> binary, const std::string& entry,
                               std::uint32_t shared_memory) override {
    return std::make_unique<HostKernel>(binary, entry, shared_memory);
  }

  // Exactly `bytes` long, so that AddressSanitizer sees an access past the end; aligned as the
  // driver's allocations are.
  void* allocate(std::size_t bytes) override {
    void* address = nullptr;
    if (posix_memalign(&address, 256, std::max<std::size_t>(bytes, 1)) != 0)
      fail(KILN_STATUS_ALLOC_FAILED, "no memory for ", bytes, " bytes on the host device");
    return address;
  }
  void free(void* address) override { std::free(address); }

  void copy_in(void* device, const void* host, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(device, host, bytes);
  }
  void copy_out(void* host, const void* device, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(host, device, bytes);
  }
  void encode_map(const TensorMapSpec& map,
                  std::span<std::byte, tensor_map_bytes> to) const override {
    host::encode(map, to);
  }
  void set_map_address(std::byte* map, void* address) const override {
    host::set_address(map, address);
  }

  void make_current() override {}
  void copy(void* to, const void* from, std::size_t bytes, void*) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void fill(void* device, unsigned char byte, std::size_t bytes) override {
    if (bytes > 0) std::memset(device, byte, bytes);
  }

  void synchronize(void*) override {}  // a launch returns when it is done

  double time(void*, int count, const std::function<void()>& work) override {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) work();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - begin;
    return elapsed.count();
  }

 private:
  DeviceDescription description_ = describe();
};

}  // namespace

std::shared_ptr<Device> open_host_device() {
  static constinit Once<std::shared_ptr<Device>> device("host device");
  return device.get([] { return std::make_shared<HostDevice>(); });
}

}  // namespace kiln
