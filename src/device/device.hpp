// Devices that execute kernels: GPUs through the CUDA driver, and the host device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/tensor_map.hpp"
#include "kiln/kiln.h"

namespace kiln {

// Sizes of clusters, in thread blocks, whose number on a device is known.
inline constexpr std::array counted_cluster_sizes{2, 3, 4, 5, 6, 8, 16};
// How many clusters run at once: of each of these sizes, with 1 to 4 blocks on a multiprocessor.
// All zeros where nobody counted them.
using ClusterCounts = std::array<std::array<int, 4>, counted_cluster_sizes.size()>;

// The properties of a device that engines may use. known_architecture() gives those of a chip that
// is not present, from a table, so that a build machine makes the same choices as the target
// machine.
struct DeviceDescription {
  kilnDeviceKind_t kind = KILN_DEVICE_CUDA;
  std::string name;  // "NVIDIA H200"
  std::string arch;  // what to compile for: "sm_90a"; "host"
  int ordinal = 0;
  int compute_capability = 0;  // 90; 0 on the host device
  int multiprocessors = 1;
  int largest_cluster = 1;  // thread blocks
  ClusterCounts clusters_at_once{};
  int shared_memory_per_block = 48 * 1024;  // the opt-in limit, bytes
  int shared_memory_per_multiprocessor = 48 * 1024;
  int registers_per_multiprocessor = 65536;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  int driver_version = 0;  // of the CUDA that the driver brings: 13000 is 13.0; 0 where unknown
};

// The description of a well-known chip of an architecture, "sm_75" ... "sm_120" (sm_90 means
// sm_90a), or of a chip by its name, "h100-pcie"; behind a colon, the number of multiprocessors of
// another chip, "sm_90a:66". Throws BAD_PARAM with a list of the known names.
DeviceDescription known_architecture(const std::string& arch);

// The known chip of device's architecture that has so many multiprocessors; if there is none, the
// device with their number changed.
DeviceDescription known_chip_of_size(const DeviceDescription& device, int multiprocessors);

// The most thread blocks of a cluster for a compute capability; 1 if it has no clusters.
int largest_cluster(int compute_capability);

// The clusters that run at once on the known chips of a compute capability with so many
// multiprocessors.
ClusterCounts known_clusters(int compute_capability, int multiprocessors);

// The architecture to compile for, given a compute capability: "sm_80", and "sm_90a" for Hopper,
// because wgmma and other instructions need the suffix.
std::string architecture_name(int compute_capability);

struct LaunchShape {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint32_t cluster = 1;        // thread blocks of a cluster along x
  std::uint32_t shared_memory = 0;  // dynamic, bytes
  friend bool operator==(const LaunchShape&, const LaunchShape&) = default;
};

// A kernel loaded on a device. A kernel has one parameter: its own struct, passed by value.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Asynchronous on a GPU. No allocation, no lock held across launches. `stream` is a CUstream.
  virtual void launch(const LaunchShape& shape, std::span<const std::byte> parameters,
                      void* stream) const = 0;
  virtual int registers() const { return 0; }     // per thread
  virtual int local_memory() const { return 0; }  // bytes per thread: spills
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceDescription& description() const = 0;

  // `binary` is a cubin, or the host device's shared object; `entry` the extern "C" kernel in it.
  // Throws EXECUTION_FAILED with the driver's own words.
  virtual std::unique_ptr<Kernel> load(std::span<const std::byte> binary, const std::string& entry,
                                       std::uint32_t shared_memory) = 0;

  // Encodes a tensor map for the device's copy engine. Its address is set by set_map_address(): a
  // multiple of 16; `map` points to the encoded map, at a multiple of tensor_map_alignment. Neither
  // takes a lock. Both throw EXECUTION_FAILED; encode_map() also throws NOT_SUPPORTED.
  virtual void encode_map(const TensorMapSpec& map,
                          std::span<std::byte, tensor_map_bytes> to) const = 0;
  virtual void set_map_address(std::byte* map, void* address) const = 0;

  // Functions for the command line, the samples and the tests. No plan calls them.

  // Leaves the device current on the calling thread, as other libraries expect to find it.
  virtual void make_current() = 0;
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* address) = 0;
  virtual void copy_in(void* device, const void* host, std::size_t bytes) = 0;
  virtual void copy_out(void* host, const void* device, std::size_t bytes) = 0;
  // Copies between two places of the device's memory; asynchronous on a GPU.
  virtual void copy(void* to, const void* from, std::size_t bytes, void* stream) = 0;
  virtual void fill(void* device, unsigned char byte, std::size_t bytes) = 0;
  virtual void synchronize(void* stream) = 0;
  // Milliseconds of `count` calls of `work`, measured on the device (events around them).
  virtual double time(void* stream, int count, const std::function<void()>& work) = 0;
};

// There is one instance per device and process. Throw NO_DEVICE, or BAD_PARAM for the ordinal.
std::shared_ptr<Device> open_cuda_device(int ordinal);
std::shared_ptr<Device> open_host_device();
std::shared_ptr<Device> open_device(kilnDeviceKind_t kind, int ordinal);

// Devices that the driver reports; empty, with a reason in `why`, if there is no driver or no GPU.
std::vector<DeviceDescription> list_cuda_devices(std::string& why);

}  // namespace kiln
