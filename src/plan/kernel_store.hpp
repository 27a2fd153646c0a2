// Gets kernels from this process's memory, bundles, the user's cache or the compiler, in this
// order.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "compile/compiler.hpp"
#include "device/device.hpp"
#include "kiln/kiln.h"
#include "plan/kernel_cache.hpp"

namespace kiln {

// A kernel in all forms that are known of it. Immutable.
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
  use,           // look the kernel up; if it is missing, compile and publish it
  cached,        // look it up; if it is missing, fail with NOT_CACHED
  past_bundles,  // as `use`, but look only into the user's cache
  refresh,       // compile and publish it without looking it up
  bypass         // compile it without looking it up, and do not publish it
};

struct FoundImage {
  std::shared_ptr<const KernelImage> image;
  kilnKernelOrigin_t origin = KILN_KERNEL_COMPILED;
  KernelTimes times;
  std::string account;  // a clause: "hit in the user's cache", "miss (absent), compiled"
};

// Names what a kernel is made for, in a line for people: `kiln cache ls` shows it. Called only
// where the kernel is compiled.
using MadeFor = std::function<std::string()>;

// The machine code of a spec for an architecture, from the layers of the cache or the compiler.
// Needs no GPU. Processes that want the same new kernel share one compilation, unless it takes
// longer than KILN_COMPILE_WAIT. Throws NOT_CACHED with Caching::cached, and in strict mode.
FoundImage make_image(const KernelSpec& spec, kilnDeviceKind_t kind, const std::string& arch,
                      Caching caching = Caching::use, const MadeFor& made_for = {});

// The key of that code in the disk cache: a hash of everything that decides its bytes.
cache::Key key_of(const KernelSpec& spec, kilnDeviceKind_t kind, const std::string& arch);

struct FoundKernel {
  std::shared_ptr<const LoadedKernel> kernel;
  kilnKernelOrigin_t origin = KILN_KERNEL_COMPILED;
  KernelTimes times;
  std::string account;
};

// The same, loaded on a device. Threads that ask at once share one compilation and one load. With
// Caching::cached it waits for no compilation of other threads.
FoundKernel load_kernel(const KernelSpec& spec, Device& device, Caching caching = Caching::use,
                        const MadeFor& made_for = {});

}  // namespace kiln
