// Counters of the process's kernel lookups.
#include <cstddef>
#include <cstring>

#include "api/api.hpp"
#include "plan/kernel_cache.hpp"

using kiln::api::check_pointer;
using kiln::api::guarded;

kilnStatus_t kilnGetCacheStats(kilnCacheStats_t* stats) {
  return guarded([&] {
    check_pointer(stats, "stats", "a kilnCacheStats_t whose structSize is set");
    const std::size_t size = stats->structSize;
    constexpr std::size_t least = offsetof(kilnCacheStats_t, memoryHits);
    if (size < least || size > sizeof(kilnCacheStats_t)) {
      kiln::fail(KILN_STATUS_BAD_PARAM, "structSize is ", size,
                 "; expected sizeof(kilnCacheStats_t), which to this library is ",
                 sizeof(kilnCacheStats_t), ", or that of an older header");
    }
    const kiln::CacheCounters& own = kiln::cache_counters();
    const kiln::cache::Counters store = kiln::kernel_cache().counters();
    kilnCacheStats_t full{};
    full.structSize = size;
    full.memoryHits = own.memory;
    full.bundleHits = own.bundle;
    full.diskHits = own.disk;
    full.compiled = own.compiled;
    full.compileMs = static_cast<double>(own.compile_microseconds) / 1000;
    full.missesAbsent = own.absent;
    full.missesOtherProducer = own.other_producer;
    full.missesCorrupt = own.corrupt;
    full.missesCollision = own.collision;
    full.missesUnreadable = own.unreadable;
    full.missesDisabled = own.disabled;
    full.waits = own.waits;
    full.waitTimeouts = own.wait_timeouts;
    full.published = store.published;
    full.publishFailures = store.publish_failures;
    full.evicted = store.evicted;
    full.evictedBytes = store.evicted_bytes;
    std::memcpy(stats, &full, size);
  });
}
