/* Plans: how each is finalized, what can be asked of it, and what holds for all operations. */
#ifndef KILN_PLAN_H
#define KILN_PLAN_H

#include "kiln/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every operation has three functions: a kilnCreate...Plan, which checks the descriptors against
 * each other and copies them, and makes no kernel yet; a kilnExecute..., for a finalized plan that
 * came from that very function; and an immediate call, in the style of the 2014 paper, which finds
 * the plan in a bounded cache of the handle's, or makes it. */

/* Engines are ways to compute one problem; those for the plan's operation are counted from 0. Each
 * refuses, or has kernels whose times are estimated: the library takes the least estimate, or what
 * `kiln tune` found to be fastest. *count gets their number. They can be asked for at any time.
 * Errors: BAD_PARAM (null). */
KILN_API kilnStatus_t kilnGetPlanEngineCount(kilnPlan_t plan, int* count);

/* The engine's name, such as "implicit_gemm_mma", and why it refuses the plan's problem on the
 * plan's device, a clause; "" if it takes it. Both texts are the plan's; either output may be null.
 * Errors: BAD_PARAM (null plan, index out of range). */
KILN_API kilnStatus_t kilnGetPlanEngine(kilnPlan_t plan, int index, const char** name,
                                        const char** refusal);

/* Which engine alone finalization takes; null: the library's choice again. "direct" takes every
 * forward and data gradient, "wgrad_direct" every filter gradient; each has one short loop, which
 * compiles several times faster than a tiled kernel, and runs many times slower. Two engines add up
 * in different orders, so their results agree within rounding, not to the bit. Names of version 0.1
 * are understood throughout 0.2. Errors: BAD_PARAM (null plan, a name that is none of the
 * operation's engines, a plan that is finalized or has a stand-in), NOT_SUPPORTED (that engine
 * refuses; the message says why), NOT_INITIALIZED (the plan is being finalized). A plan whose
 * engine could not be set keeps the one it had. */
KILN_API kilnStatus_t kilnSetPlanEngine(kilnPlan_t plan, const char* engine);

/* Grants the plan up to `bytes` of the workspace of whichever handle executes it; 0, the default,
 * is none. The library takes it only where kernels are faster with it, 16 MB (2^24 bytes) at most,
 * and kilnGetPlanInfo tells how many bytes the finalized plan needs, with this grant and at best.
 * A plan may add up in another order with a grant than without; the bits of either never change.
 * Errors: BAD_PARAM (null plan, a plan that is finalized or has a stand-in), NOT_INITIALIZED
 * (being finalized). */
KILN_API kilnStatus_t kilnSetPlanWorkspaceLimit(kilnPlan_t plan, size_t bytes);

/* What may execute a plan while its own kernel is being made. */
typedef enum KILN_ENUM_BASE {
  KILN_STAND_IN_NONE = 1500,  /* nothing, the default */
  KILN_STAND_IN_QUICK = 1501, /* a kernel that serves every shape, if it is in a cache already and
                                 an execution is estimated to take at most 3 times as long as by
                                 the plan's own; one that is in no cache is compiled in the
                                 background, for plans to come */
  KILN_STAND_IN_ANY = 1502    /* any, however slow, the "direct" engines at last; it is compiled
                                 first, if need be */
} kilnStandIn_t;

/* Whether kilnStartFinalizePlan makes the plan executable at once. From its return on a plan whose
 * kernel is in a cache is then finalized. Any other is executed by a stand-in, while its own kernel
 * compiles in the background, until kilnPollFinalizePlan says that it is over or
 * kilnWaitFinalizePlan or kilnFinalizePlan returns: these switch to the plan's own kernel. Other
 * threads may execute the plan while they do; each execution is either's, and what was launched
 * before stays what it was: a CUDA graph that captured the stand-in keeps it, so wait before you
 * capture. The kernels of both stay loaded as long as the plan lives.
 * - Kernels add up in different orders, so results of the two agree within rounding, not to the
 *   bit: the bits of a plan may change once, when it switches.
 * - Where there is no stand-in, or it cannot be made, the plan is as without: NOT_INITIALIZED until
 *   it is over. kilnGetPlanInfo tells: `standIn` is 1 while one executes the plan.
 * - What the stand-in accepts, in alignment and workspace, the plan's own kernel accepts as well.
 * - Where the plan's own kernel cannot be made, or was cancelled, the stand-in serves on, and the
 *   plan may be started again. In a child of fork() it serves for good.
 * Errors: BAD_PARAM (null plan, no kilnStandIn_t, a plan that is finalized or has a stand-in),
 * NOT_INITIALIZED (being finalized). */
KILN_API kilnStatus_t kilnSetPlanStandIn(kilnPlan_t plan, kilnStandIn_t allowed);

/* Chooses the engine, generates the kernel, finds or compiles it, loads it. All that is slow
 * happens here. Finalizing twice does nothing the second time.
 * Of several processes of a node that want the same new kernel one compiles, and the others wait
 * for it, up to KILN_COMPILE_WAIT seconds. With KILN_CACHE=strict nothing is compiled.
 * Errors: NOT_SUPPORTED, NOT_CACHED (strict; the message names problem and key), NO_COMPILER,
 * COMPILE_FAILED, EXECUTION_FAILED. */
KILN_API kilnStatus_t kilnFinalizePlan(kilnPlan_t plan);

/* Finalizes the plan with the kernel that is fastest on the caller's own buffers, as
 * cudnn.benchmark is to a framework: the few candidates that are estimated best are compiled, if
 * they are in no cache, and executed back to back, many times each and by turns, on the handle's
 * stream with alpha = 1 and beta = 0, for about `budgetMs` milliseconds in all, each at least four
 * times. The winner is remembered in the user's kernel cache, as `kiln tune` does it, and later
 * plans of the problem take it at once.
 * `operands` are `count` device addresses: those of the plan's kilnExecute... in its order, without
 * the tensors that were left out. The output is overwritten; what it holds afterwards is no result.
 * Waits for the stream.
 * In a step of a network a layer finds little of its tensors in the L2 cache. So that it is timed
 * that way, lend the handle more workspace than the plan was granted (kilnSetWorkspace,
 * kilnSetPlanWorkspaceLimit), twice the L2 cache's size and the operands' more: the rest then holds
 * copies of the operands, as many as exceed the cache or fit, and executions take turns with the
 * buffers. No memory is allocated: without such a loan all executions use the caller's buffers, and
 * operands that together fit the cache are timed with a warm one.
 * Errors: BAD_PARAM (null, count, an operand, budgetMs below 0 or no number, a plan that is
 * finalized, has a stand-in or is of another device), NOT_INITIALIZED (being finalized), those of
 * kilnFinalizePlan. */
KILN_API kilnStatus_t kilnTunePlan(kilnHandle_t handle, kilnPlan_t plan,
                                   const void* const* operands, int count, double budgetMs);

/* kilnFinalizePlan on a thread of the library's, so that many plans are made at once and the caller
 * goes on meanwhile. Plans wait in a row; at most KILN_COMPILE_THREADS are worked on (default: one
 * a CPU). From here until kilnWaitFinalizePlan, kilnFinalizePlan or a poll with *done = 1 the plan
 * can be neither executed nor queried (NOT_INITIALIZED), unless it has a stand-in
 * (kilnSetPlanStandIn); destroying it cancels, or waits for what has begun. Starting a plan that is
 * finalized or started does nothing. Errors: BAD_PARAM, ALLOC_FAILED (no memory, or no thread to be
 * had: the plan is as if never started); those of finalization come from wait and poll. */
KILN_API kilnStatus_t kilnStartFinalizePlan(kilnPlan_t plan);

/* Whether it is over: *done is 0 (the status is then SUCCESS) or 1 (the status is that of the
 * finalization). Never waits. A plan that is already finalized is done; so is, in a child of
 * fork(), one that the parent had started. Errors: BAD_PARAM (null), NOT_INITIALIZED (never
 * started), those of kilnFinalizePlan. */
KILN_API kilnStatus_t kilnPollFinalizePlan(kilnPlan_t plan, int* done);

/* Waits until it is over, and gives the finalization's status. Errors: as kilnPollFinalizePlan. */
KILN_API kilnStatus_t kilnWaitFinalizePlan(kilnPlan_t plan);

/* Withdraws a plan whose turn has not come: *cancelled (may be null) is 1, and the plan is as if
 * never started. One that has begun is let finish, for a compiler cannot be stopped half-way:
 * *cancelled is 0, and so it is of a plan that was never started. Never waits.
 * Errors: BAD_PARAM (null plan). */
KILN_API kilnStatus_t kilnCancelFinalizePlan(kilnPlan_t plan, int* cancelled);

/* Null is allowed and ignored. The caller sees to it that no execution is still under way. A plan
 * that is being finalized in the background is withdrawn or waited for. Errors: BAD_PARAM (no
 * plan). */
KILN_API kilnStatus_t kilnDestroyPlan(kilnPlan_t plan);

/* ---- queries ------------------------------------------------------------------------------ */

typedef enum KILN_ENUM_BASE {
  KILN_KERNEL_COMPILED = 1300, /* by this plan's finalization */
  KILN_KERNEL_MEMORY = 1301,   /* this process had it already */
  KILN_KERNEL_DISK = 1302,     /* from the user's kernel cache */
  KILN_KERNEL_BUNDLE = 1303    /* from a bundle of kernels */
} kilnKernelOrigin_t;

typedef struct {
  size_t structSize;         /* set by the caller to sizeof(kilnPlanInfo_t) */
  kilnKernelOrigin_t origin; /* where the kernel came from */
  double generateMs;         /* engine choice and source text */
  double lookupMs;           /* bundles and the user's cache, and waiting for another process that
                                compiles the kernel */
  double compileMs;          /* 0 unless compiled by this finalization */
  double loadMs;             /* module load; 0 for a kernel already loaded */
  double totalMs;            /* the whole of kilnFinalizePlan */
  size_t workspaceBytes;     /* that an execution needs: 0 without a grant */
  size_t alignment;          /* bytes that operands must be aligned to; less than an element's
                                size means that size */
  int64_t blocks;            /* thread blocks of one execution */
  int threadsPerBlock;
  int sharedMemoryBytes;     /* per block */
  int registersPerThread;    /* as the driver reports it; 0 on the host device */
  int localMemoryBytes;      /* per thread; more than 0 means spills; 0 on the host device */
  int steps;                 /* kernels of one execution; the five fields above are of the first */
  size_t bestWorkspaceBytes; /* that a plan of this problem would need if it were granted 16 MB */
  int standIn; /* 1: a stand-in executes the plan now, and what is told of kernels, here and by
                  kilnGetPlanText and kilnGetPlanBinary, is of its; else 0 */
} kilnPlanInfo_t;

/* A structSize smaller than the library's own, of a program compiled against an older header, gets
 * that many bytes of it.
 * Errors: BAD_PARAM (null, structSize), NOT_INITIALIZED (not finalized). */
KILN_API kilnStatus_t kilnGetPlanInfo(kilnPlan_t plan, kilnPlanInfo_t* info);

typedef enum KILN_ENUM_BASE {
  KILN_PLAN_PROBLEM = 1400,     /* one line: chip, grant, problem, as `kiln` reads it */
  KILN_PLAN_ENGINE = 1401,      /* the engine's name */
  KILN_PLAN_TILE = 1402,        /* such as "128x128x8, 8x8 a thread, 256 threads" */
  KILN_PLAN_CONSTANTS = 1403,   /* one "name = value" a line, magic divisors among them */
  KILN_PLAN_SOURCE = 1404,      /* the generated kernel source, self-contained */
  KILN_PLAN_PTX = 1405,         /* PTX; "" on the host device */
  KILN_PLAN_COMPILE_LOG = 1406, /* what the compiler said; "" if nothing */
  KILN_PLAN_REFUSALS = 1407,    /* one "engine: reason" a line, of those that refused */
  KILN_PLAN_CACHE_KEY = 1408,   /* the kernel's key in the cache, in hex */
  KILN_PLAN_ARCHITECTURE = 1409 /* what the kernel was compiled for, such as "sm_90a" */
} kilnPlanText_t;

/* Null-terminated text, valid as long as the plan. PROBLEM is there before finalization; REFUSALS
 * also after a finalization that found no engine. Errors: BAD_PARAM (null, unknown text),
 * NOT_INITIALIZED (never finalized, or being finalized). */
KILN_API kilnStatus_t kilnGetPlanText(kilnPlan_t plan, kilnPlanText_t which, const char** text);

/* The machine code of the first kernel (a cubin; on the host device, a shared object): *size bytes
 * at *data, valid as long as the plan. Errors: BAD_PARAM (null), NOT_INITIALIZED (never finalized,
 * or being finalized). */
KILN_API kilnStatus_t kilnGetPlanBinary(kilnPlan_t plan, const void** data, size_t* size);

/* ---- execution ---------------------------------------------------------------------------- */

/* What holds for all of them:
 *
 * Executions go to the handle's stream and return without waiting; they may be captured into a CUDA
 * graph. alpha, beta and the like point to host values of the compute type: double if the tensors
 * are f64 (one of them, for a transform), else float. With beta == 0 the output is not read, so
 * that a NaN in it does not survive. alpha == 0 is a factor like any other: what it multiplies is
 * computed, and gives NaN where it is NaN or infinite. The same call gives the same bits.
 *
 * Tensors are device addresses (on the host device, ordinary memory) of at least the size their
 * descriptors span, aligned to their element size (convolutions: kilnSetConvolutionAlignment). All
 * tensors of an operation have one data type, but for kilnTransformTensor. No two elements of an
 * output may share an address; inputs may broadcast (stride 0). The output must not overlap an
 * input, unless "in place" below allows it to be that very tensor, with the same sizes, strides and
 * type. Execution refuses an overlap that is certain from the addresses (equal ones, or where both
 * tensors are without gaps); others, such as those of interleaved tensors, are the caller's to
 * avoid. An empty batch is legal.
 *
 * Errors: BAD_PARAM naming the field (null, a descriptor that does not fit, a pointer without its
 * descriptor, a handle of another device, a plan of another operation), NOT_INITIALIZED (never set,
 * not finalized), EXECUTION_FAILED; immediate calls also those of kilnFinalizePlan. */

#ifdef __cplusplus
}
#endif

#endif /* KILN_PLAN_H */
