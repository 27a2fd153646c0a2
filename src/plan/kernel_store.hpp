// Where kernels come from: this process's memory, bundles, the user's cache, the compiler.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "compile/compiler.hpp"
#include "device/device.hpp"
#include "kiln/kiln.h"
#include "plan/kernel_cache.hpp"

namespace kiln {

// A kernel and all that was kept about it. Immutable.
struct KernelImage {
  KernelSpec spec;
  std::string source, ptx, log, key, arch;
  std::vector<std::byte> binary;
};

struct LoadedKernel {
  std::shared_ptr<const KernelImage> image;
  std::unique_ptr<Kernel> kernel;  // on its device
};

struct KernelTimes {  // milliseconds
  double generate = 0, lookup = 0, compile = 0, load = 0;
  KernelTimes& operator+=(const KernelTimes& other) {
    generate += other.generate;
    lookup += other.lookup;
    compile += other.compile;
    load += other.load;
    return *this;
  }
};

enum class Caching {
  use,           // look the kernel up, publish what had to be compiled
  cached,        // look it up, and compile nothing: NOT_CACHED where that would be needed
  past_bundles,  // as `use`, but in the user's cache alone
  refresh,       // compile and publish, whatever is there
  bypass         // compile; look nothing up, publish nothing
};

struct FoundImage {
  std::shared_ptr<const KernelImage> image;
  kilnKernelOrigin_t origin = KILN_KERNEL_COMPILED;
  KernelTimes times;
  std::string account;  // a clause: "hit in the user's cache", "miss (absent), compiled"
};

// The machine code of a spec for an architecture, from the layers of the cache or the compiler:
// needs no GPU. Several processes that want the same new kernel share one compilation, unless its
// maker takes longer than KILN_COMPILE_WAIT. Throws NOT_CACHED in strict mode, where nothing is
// compiled, too.
FoundImage make_image(const KernelSpec& spec, kilnDeviceKind_t kind, const std::string& arch,
                      Caching caching = Caching::use);

// What the disk cache knows that code by: hashed from everything that decides its bytes.
cache::Key key_of(const KernelSpec& spec, kilnDeviceKind_t kind, const std::string& arch);

struct FoundKernel {
  std::shared_ptr<const LoadedKernel> kernel;
  kilnKernelOrigin_t origin = KILN_KERNEL_COMPILED;
  KernelTimes times;
  std::string account;
};

// The same, loaded on a device; one compilation and one load however many threads ask at once. With
// Caching::cached nobody's compilation is waited for.
FoundKernel load_kernel(const KernelSpec& spec, Device& device, Caching caching = Caching::use);

}  // namespace kiln
