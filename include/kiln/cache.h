/* What became of lookups of kernels. */
#ifndef KILN_CACHE_H
#define KILN_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What became of this process's lookups of kernels, since it began; the layers are asked in the
 * order memory, bundles, the user's cache, the compiler. */
typedef struct {
  size_t structSize;            /* set by the caller to sizeof(kilnCacheStats_t) */
  uint64_t memoryHits;          /* kernels that this process had loaded already */
  uint64_t bundleHits;          /* from a bundle (KILN_BUNDLE_PATH, or beside the library) */
  uint64_t diskHits;            /* from the user's cache */
  uint64_t compiled;            /* kernels that this process compiled */
  double compileMs;             /* what all of those took together */
  uint64_t missesAbsent;        /* looked for, and in no layer */
  uint64_t missesOtherProducer; /* a bundle has it, but made by another build of the compiler */
  uint64_t missesCorrupt;       /* an entry was damaged; the user's cache gets a new one */
  uint64_t missesCollision;     /* an entry of another kernel under the same hash */
  uint64_t missesUnreadable;    /* the system refused to read an entry */
  uint64_t missesDisabled;      /* no usable directory, and in no bundle */
  uint64_t waits;               /* times that another process's compiler was waited for */
  uint64_t waitTimeouts;        /* of them, in vain */
  uint64_t published;           /* entries written to the user's cache */
  uint64_t publishFailures;     /* entries that could not be written there */
  uint64_t evicted;             /* entries removed to keep the cache below KILN_CACHE_MAX_SIZE */
  uint64_t evictedBytes;        /* the size of those */
} kilnCacheStats_t;

/* From any thread. A structSize smaller than the library's own, of a program compiled against an
 * older header, gets that many bytes of it. Errors: BAD_PARAM (null, structSize). */
KILN_API kilnStatus_t kilnGetCacheStats(kilnCacheStats_t* stats);

#ifdef __cplusplus
}
#endif

#endif /* KILN_CACHE_H */
