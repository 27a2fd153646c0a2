/* Version, status and messages: what every call shares. */
#ifndef KILN_STATUS_H
#define KILN_STATUS_H

#if defined(__GNUC__)
#define KILN_API __attribute__((visibility("default")))
#else
#define KILN_API
#endif

/* Each enumeration but kilnStatus_t has a hundred numbers of its own, and none is 0: so a value of
 * another enumeration, as of two arguments that were swapped, and one that was never set, are
 * refused with BAD_PARAM. A C++ compiler refuses the former already; a C compiler warns of it with
 * -Wenum-conversion (in GCC a part of -Wextra).
 *
 * C enumerations can hold any int; saying so to C++ as well lets the library look at a wrong value
 * and refuse it. */
#ifdef __cplusplus
#define KILN_ENUM_BASE : int
#else
#define KILN_ENUM_BASE
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 2
#define KILN_VERSION_PATCH 0
#define KILN_VERSION (KILN_VERSION_MAJOR * 10000 + KILN_VERSION_MINOR * 100 + KILN_VERSION_PATCH)

/* The version of the library that is running: major * 10000 + minor * 100 + patch. */
KILN_API int kilnGetVersion(void);

typedef enum KILN_ENUM_BASE {
  KILN_STATUS_SUCCESS = 0,
  KILN_STATUS_BAD_PARAM = 1,       /* an argument or a descriptor field is wrong */
  KILN_STATUS_NOT_INITIALIZED = 2, /* a descriptor was never set, a plan never finalized */
  KILN_STATUS_NOT_SUPPORTED = 3,  /* legal, but no engine takes it; plan queries tell each reason */
  KILN_STATUS_NO_DEVICE = 4,      /* no driver, no GPU, or no such ordinal */
  KILN_STATUS_NO_COMPILER = 5,    /* the kernel is not cached, NVRTC (or a C++ compiler) missing */
  KILN_STATUS_COMPILE_FAILED = 6, /* the message has the compiler's first errors */
  KILN_STATUS_EXECUTION_FAILED = 7, /* a refused load or launch, a defect the host device found */
  KILN_STATUS_ALLOC_FAILED = 8,     /* no host memory, device memory, thread or descriptor left */
  KILN_STATUS_VERSION_MISMATCH = 9, /* kilnCheckVersion alone */
  KILN_STATUS_INTERNAL_ERROR = 10,  /* a defect of the library: please report the message */
  KILN_STATUS_NOT_CACHED = 11 /* KILN_CACHE=strict, and the kernel is in no bundle and no cache */
} kilnStatus_t;

/* The name of a status, such as "KILN_STATUS_BAD_PARAM". Never null. */
KILN_API const char* kilnGetErrorString(kilnStatus_t status);

/* The sentence that goes with the calling thread's last failed call; "" if there was none. Valid
 * until this thread's next failing call. */
KILN_API const char* kilnGetLastErrorMessage(void);

/* KILN_STATUS_VERSION_MISMATCH if the running library cannot serve a program compiled against
 * headers of `header_version`: another major version, or (while the major version is 0) another
 * minor one. Call it as kilnCheckVersion(KILN_VERSION). */
KILN_API kilnStatus_t kilnCheckVersion(int header_version);

#ifdef __cplusplus
}
#endif

#endif /* KILN_STATUS_H */
