/* Kiln: deep-learning primitives whose GPU kernels are generated for exactly the problem at hand.
 *
 * C99. Every function returns a status unless it cannot fail; kilnGetLastErrorMessage() then holds
 * a sentence naming the function, field, its value and what was expected. No function throws, and
 * none keeps a pointer to the caller's arrays. Sizes and strides are counted in elements.
 *
 * The road: descriptors say what is to be computed; a plan is created from them and finalized once
 * (this is where a kernel is generated, and compiled or found in the cache); it is then executed
 * many times, on buffers the caller owns. No function allocates auxiliary device memory, and no
 * kernel uses any, unless the caller grants a plan some (kilnSetPlanWorkspaceLimit).
 *
 * Threads: descriptors may be read, and finalized plans executed, from any number of threads at
 * once. Changing a descriptor, finalizing or destroying a plan, and changing a handle's stream need
 * the caller's own exclusion against other uses of that object; only a plan that has a stand-in
 * (kilnSetPlanStandIn) may be executed while it is polled or waited for. The immediate calls of one
 * handle may be issued from several threads. On the library's own threads no signal is handled.
 *
 * The end of the process: exit() and the return from main withdraw the plans whose turn has not
 * come and wait for those that are being finalized; a plan started later, by an exit handler, is
 * finalized before kilnStartFinalizePlan returns. quick_exit, _exit and abort wait for nothing;
 * only the kernels in the making are lost. The library is never unmapped: its threads outlive a
 * dlclose, after which it may be opened again and is the same one.
 *
 * fork: a child may call everything at any moment, whatever the parent's other threads are doing.
 * It can use the handles, descriptors and finalized plans of the host device that it inherits;
 * those of a GPU it cannot, for CUDA does not survive a fork, nor can it compile with NVRTC if the
 * parent was doing so when it forked (NO_COMPILER). A plan that another thread of the
 * parent was finalizing is NOT_INITIALIZED in the child, where it can only be destroyed, or
 * executed by its stand-in; one whose turn had not come can be cancelled there, and is then as if
 * never started. What another thread of the parent was changing without being a finalization (a
 * descriptor being set) is as that thread left it.
 *
 * A set-user-ID program, or one with more than its caller's privileges in another way, reads no
 * environment variable, and keeps no kernels on disk.
 *
 * Memory: where host memory is exhausted a call gives ALLOC_FAILED, or succeeds without what it
 * could do without (a note in the log, an entry of the cache).
 */
#ifndef KILN_KILN_H
#define KILN_KILN_H

#include "kiln/activation.h"
#include "kiln/cache.h"
#include "kiln/convolution.h"
#include "kiln/epilogue.h"
#include "kiln/handle.h"
#include "kiln/local.h"
#include "kiln/matmul.h"
#include "kiln/normalization.h"
#include "kiln/plan.h"
#include "kiln/pooling.h"
#include "kiln/softmax.h"
#include "kiln/status.h"
#include "kiln/tensor.h"
#include "kiln/tensor_operations.h"
#include "kiln/types.h"

/* ---- whose kernels are run ----------------------------------------------------------------
 *
 * Kernels are machine code, and those of the host device are loaded into the process as a plug-in
 * is. So treat a bundle like a shared library: take it only from somebody whose library you would
 * link with. Bundles are the files that KILN_BUNDLE_PATH names and, without any variable, the file
 * kiln.bundle in the folder of this library: whoever may put a file there gives kernels to every
 * program that uses the library.
 *
 * A bundle has to belong to the effective user, to root or to the library's owner; the user's cache
 * to the effective user alone. What others can have written costs one warning and is not used.
 * cache/README.md has the rules. */

#endif /* KILN_KILN_H */
