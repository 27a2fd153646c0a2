// The process's layers of finished kernels below its memory: read-only bundles, then the user's
// cache; and what became of every lookup.
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
  readonly,  // nothing is written: no entry, no lock, no note of uses
  strict,    // nor is anything compiled
  off        // bundles and the user's cache are not even looked into
};
CacheMode cache_mode();  // KILN_CACHE
const char* name_of(CacheMode mode);

// The user's (KILN_CACHE_DIR), kept below KILN_CACHE_MAX_SIZE.
inline constexpr std::uint64_t default_cache_bytes = std::uint64_t{4} << 30;
cache::DiskStore& kernel_cache();

// Of KILN_BUNDLE_PATH, in its order, then kiln.bundle beside the library. One that cannot be used
// costs a warning. Kernels of a bundle are code that this process runs: it has to belong to the
// effective user, to root, or to the owner of the library itself.
using Bundles = std::vector<std::unique_ptr<const cache::Bundle>>;
const Bundles& kernel_bundles();
std::string bundle_beside_library();  // where it is looked for

struct CachedKernel {
  cache::Lookup lookup;  // its entry, or why there is none
  kilnKernelOrigin_t origin = KILN_KERNEL_DISK;
  bool other_producer = false;  // a bundle has it, of another compiler build
};

enum class Layers {
  all,
  user  // past the bundles
};

// A sound entry without machine code counts as corrupt. In strict mode, where no
// compiler is at hand to make a better one, any compiler build's will do.
CachedKernel find_kernel(const cache::Key& key, Layers layers = Layers::all);

// Relaxed counts of this process; a forked child goes on with its parent's.
struct CacheCounters {
  using Count = std::atomic<std::uint64_t>;
  Count memory{0}, bundle{0}, disk{0}, compiled{0}, compile_microseconds{0};
  // Why kernels were in none of the layers.
  Count absent{0}, corrupt{0}, collision{0}, unreadable{0}, disabled{0}, other_producer{0};
  Count waits{0}, wait_timeouts{0};  // for another process's compiler

  void count(kilnKernelOrigin_t origin);
  void count_miss(const CachedKernel& found);
};
CacheCounters& cache_counters();

// Each counter and its value, those of the user's cache among them: what `kiln info` prints and the
// use log sums up.
struct NamedCount {
  const char* name;
  std::uint64_t value;
};
std::vector<NamedCount> count_values();

}  // namespace kiln
