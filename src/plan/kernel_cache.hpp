// The layers of compiled kernels on disk: read-only bundles, then the user's cache. Counts the
// outcome of every lookup.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/bundle/bundle.hpp"
#include "cache/store/disk_store.hpp"
#include "kiln/kiln.h"

namespace kiln {

enum class CacheMode {
  on,
  readonly,  // writes nothing: no entries, no locks, no times of use
  strict,    // as readonly, and compiles nothing
  off        // reads neither bundles nor the user's cache
};
CacheMode cache_mode();  // KILN_CACHE
const char* name_of(CacheMode mode);

// The user's cache (KILN_CACHE_DIR), kept below KILN_CACHE_MAX_SIZE bytes.
inline constexpr std::uint64_t default_cache_bytes = std::uint64_t{4} << 30;
cache::DiskStore& kernel_cache();

// The bundles of KILN_BUNDLE_PATH, in its order, then kiln.bundle beside the library. A bundle that
// cannot be used gives a warning. Kernels of a bundle are code that this process runs, so its file
// has to belong to the effective user, to root, or to the owner of the library.
using Bundles = std::vector<std::unique_ptr<const cache::Bundle>>;
const Bundles& kernel_bundles();
// Which bundles another release of the library made: "b.bundle is of Kiln 0.1.0, and this is Kiln
// 0.2.0"; "" if none.
std::string bundles_of_other_releases();
std::string bundle_beside_library();  // the path of kiln.bundle, whether or not it exists

struct CachedKernel {
  cache::Lookup lookup;  // the entry, or the reason for the miss
  kilnKernelOrigin_t origin = KILN_KERNEL_DISK;
  bool other_producer = false;  // a bundle has the kernel, but from another compiler build
};

enum class Layers {
  all,
  user  // only the user's cache
};

// Looks the key up in the layers. A sound entry without machine code counts as corrupt. Strict mode
// accepts entries of any compiler build, because there is no compiler to make a better one.
CachedKernel find_kernel(const cache::Key& key, Layers layers = Layers::all);

// Relaxed counters of this process. A forked child continues with its parent's values.
struct CacheCounters {
  using Count = std::atomic<std::uint64_t>;
  Count memory{0}, bundle{0}, disk{0}, compiled{0}, compile_microseconds{0};
  // Misses in all layers, by reason.
  Count absent{0}, corrupt{0}, collision{0}, unreadable{0}, disabled{0}, other_producer{0};
  Count waits{0}, wait_timeouts{0};  // waits for another process that compiles the same kernel

  void count(kilnKernelOrigin_t origin);
  void count_miss(const CachedKernel& found);
};
CacheCounters& cache_counters();

// All counters, including those of the user's cache, as `kiln info` prints them and the use log
// adds them up.
struct NamedCount {
  const char* name;
  std::uint64_t value;
};
std::vector<NamedCount> count_values();

}  // namespace kiln
