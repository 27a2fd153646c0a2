// Softmax and its gradient over rows of any length, in two passes. The TY threads of a row, in all
// blocks of the cluster, take vectors in turn, BATCH at a time. The first pass finds the row's
// maximum and sum together (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax",
// 2018) and keeps the first SAVED batches in shared memory, each read again only by its own thread.
// The second pass writes the results. It goes backwards, because the elements that were read last
// are most likely still cached.
//
// With long rows, a single block has the multiprocessor, so it has to keep memory busy by itself:
// it starts the loads of all saved batches at once at the beginning.
//
// IN_TURN, a cluster takes several rows, one after the other. As soon as a saved batch's results
// are written, its slot is filled with that batch of the next row, so that memory reads one row
// while it writes the other.
#include "softmax/softmax_row.cuh"
#include "target/async_copy.cuh"

constexpr int INPUTS = BACKWARD ? 2 : 1;
using Vector = Pack<element_t, VECTOR>;
constexpr bool ASYNC = sizeof(Vector) >= 4;  // asynchronous copies have at least 4 bytes

// Shared memory holds two exchanges between a block's threads, one between blocks, and the saved
// batches.
constexpr int TOTALS = 2 * RESULTS * LANES;  // a block's maximum and sum of every row
constexpr u32 OWN_OFFSET = 2 * COMBINE_BYTES;
constexpr u32 OWN_BYTES = (TOTALS * sizeof(compute_t) + 15) / 16 * 16;
// IN_TURN, rows alternate between two places for what other blocks read: they have read the one
// when they arrive at the cluster's barrier for the other.
constexpr u32 ALL_OFFSET = OWN_OFFSET + (IN_TURN ? 2 : 1) * OWN_BYTES;
constexpr u32 SAVED_OFFSET =
    ALL_OFFSET + (LARGEST_CLUSTER * TOTALS * sizeof(compute_t) + 15) / 16 * 16;
constexpr int SAVED_VECTORS = SAVED * BATCH * INPUTS * THREADS;
static_assert(SAVED_OFFSET + SAVED_VECTORS * sizeof(Vector) == SHARED_BYTES,
              "host and device must agree");

// The value to subtract instead of the maximum, so that -infinity minus a maximum of -infinity is
// not NaN.
device_inline compute_t reference_of(compute_t maximum) {
  return maximum == lowest() ? compute_t(0) : maximum;
}

// The totals of each of a thread's rows. Forward: the maximum so far and the sum of exp(x -
// maximum), which is 0 while the maximum is -infinity. Backward: only the sum.
struct Totals {
  compute_t maximum[LANES], sum[LANES];

  device_inline Totals() {
#pragma unroll
    for (int i = 0; i < LANES; ++i) maximum[i] = lowest(), sum[i] = 0;
  }

  device_inline void raise(int lane, compute_t to) {
    sum[lane] *= exponential(maximum[lane] - reference_of(to));
    maximum[lane] = to;
  }

  // Combines the totals of the TY threads of this block.
  device_inline void combine() {
    if constexpr (!BACKWARD) {
      compute_t most[LANES];
#pragma unroll
      for (int i = 0; i < LANES; ++i) most[i] = maximum[i];
      combine_ty(most, 0, larger);
#pragma unroll
      for (int i = 0; i < LANES; ++i) raise(i, most[i]);
    }
    combine_ty(sum, COMBINE_BYTES, add);
  }

  // Combines the totals of the cluster's blocks in rank order. `turn`: rows that they have combined
  // before.
  device_inline void combine_cluster(u32 blocks, u32 turn) {
    compute_t* const own = shared_array<compute_t, TOTALS>(OWN_OFFSET + turn % 2 * OWN_BYTES);
    compute_t* const all = shared_array<compute_t, LARGEST_CLUSTER * TOTALS>(ALL_OFFSET);
    const int first = thread_result() * LANES * 2;
    if (thread_ty() == 0) {
#pragma unroll
      for (int i = 0; i < LANES; ++i)
        own[first + 2 * i] = maximum[i], own[first + 2 * i + 1] = sum[i];
    }
    cluster_barrier();
    gather_from_cluster<TOTALS>(own, all, blocks);
    block_barrier();
    *this = Totals();
    if constexpr (!BACKWARD) {
#pragma unroll 4
      for (u32 rank = 0; rank < blocks; ++rank)
#pragma unroll
        for (int i = 0; i < LANES; ++i)
          maximum[i] = larger(maximum[i], all[rank * TOTALS + first + 2 * i]);
    }
#pragma unroll 4
    for (u32 rank = 0; rank < blocks; ++rank) {
      const compute_t* const theirs = all + rank * TOTALS + first;
#pragma unroll
      for (int i = 0; i < LANES; ++i) {
        compute_t share = theirs[2 * i + 1];
        if constexpr (!BACKWARD) share *= exponential(theirs[2 * i] - reference_of(maximum[i]));
        sum[i] += share;
      }
    }
  }
};

// BATCH vectors of each input, `stride` vectors apart.
struct Batch {
  Vector in[INPUTS][BATCH];

  device_inline void load(const Rows& rows, index_t at, index_t stride) {
    if (rows.aligned) {
      load_as<In0>(rows.in0, true, at, stride, in[0]);
      if constexpr (BACKWARD) load_as<In1>(rows.in1, true, at, stride, in[INPUTS - 1]);
    } else {
      load_as<In0>(rows.in0, false, at, stride, in[0]);
      if constexpr (BACKWARD) load_as<In1>(rows.in1, false, at, stride, in[INPUTS - 1]);
    }
  }
  template <class In>
  device_inline static void load_as(const element_t* row, bool aligned, index_t at, index_t stride,
                                    Vector (&to)[BATCH]) {
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      const index_t place = at + i * stride;
      if (place < COMBINED) {
        to[i] = load_pack<VECTOR>(In::at(row, place, 0), aligned);
      } else {
#pragma unroll
        for (int j = 0; j < VECTOR; ++j) to[i].element[j] = from_compute<element_t>(neutral());
      }
    }
  }

  // Starts copying them to their slots, as one group of asynchronous copies.
  device_inline static void start(const Rows& rows, u32 number, index_t at, index_t stride) {
    start_as<In0>(rows.in0, number, 0, at, stride);
    if constexpr (BACKWARD) start_as<In1>(rows.in1, number, INPUTS - 1, at, stride);
    async_commit();
  }
  template <class In>
  device_inline static void start_as(const element_t* row, u32 number, int input, index_t at,
                                     index_t stride) {
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      const index_t place = at + i * stride;
      Vector* const to = slot(number, input, i);
      if (place < COMBINED) {
        async_copy<ASYNC ? sizeof(Vector) : 16>(to, In::at(row, place, 0), true);
      } else {
#pragma unroll
        for (int j = 0; j < VECTOR; ++j) to->element[j] = from_compute<element_t>(neutral());
      }
    }
  }

  device_inline static Vector* slot(u32 number, int input, int i) {
    return shared_array<Vector, SAVED_VECTORS>(SAVED_OFFSET) +
           ((number * INPUTS + input) * BATCH + i) * THREADS + thread_x();
  }
  device_inline void save(u32 number) const {
#pragma unroll
    for (int input = 0; input < INPUTS; ++input)
#pragma unroll
      for (int i = 0; i < BATCH; ++i) *slot(number, input, i) = in[input][i];
  }
  device_inline void restore(u32 number) {
#pragma unroll
    for (int input = 0; input < INPUTS; ++input)
#pragma unroll
      for (int i = 0; i < BATCH; ++i) in[input][i] = *slot(number, input, i);
  }

  device_inline compute_t value(int input, int i, int j) const {
    return to_compute(in[input][i].element[j]);
  }

  // Updates the totals by JOINT vectors at a time with one maximum: enough to make the rescaling of
  // the sum cheap, few enough for registers.
  device_inline void add_to(Totals& totals) const {
    constexpr int JOINT = INNER && VECTOR > 4 && BATCH > 2 ? 2 : BATCH;
#pragma unroll
    for (int first = 0; first < BATCH; first += JOINT) {
      if constexpr (!BACKWARD) {
        compute_t most[LANES];
#pragma unroll
        for (int lane = 0; lane < LANES; ++lane) most[lane] = totals.maximum[lane];
#pragma unroll
        for (int i = first; i < first + JOINT; ++i)
#pragma unroll
          for (int j = 0; j < VECTOR; ++j)
            most[j % LANES] = larger(most[j % LANES], value(0, i, j));
#pragma unroll
        for (int lane = 0; lane < LANES; ++lane) totals.raise(lane, most[lane]);
      }
#pragma unroll
      for (int i = first; i < first + JOINT; ++i)
#pragma unroll
        for (int j = 0; j < VECTOR; ++j) {
          const compute_t x = value(0, i, j);
          if constexpr (BACKWARD)
            totals.sum[j % LANES] += gradient_term(x, value(INPUTS - 1, i, j));
          else
            totals.sum[j % LANES] += exponential(x - reference_of(totals.maximum[j % LANES]));
        }
    }
  }

  // Writes the results. Forward, totals.sum has been replaced by its logarithm or by alpha / sum.
  device_inline void write(const Rows& rows, index_t at, index_t stride, const Totals& totals,
                           compute_t alpha, compute_t beta) const {
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      if (at + i * stride >= COMBINED) return;
      compute_t out[VECTOR];
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        const compute_t x = value(0, i, j), sum = totals.sum[j % LANES];
        if constexpr (BACKWARD) {
          out[j] = gradient(x, value(INPUTS - 1, i, j), sum);
        } else {
          const compute_t shifted = x - totals.maximum[j % LANES];
          out[j] = ALGORITHM == LOG ? shifted - sum : exponential(shifted) * sum;
        }
        if constexpr (BACKWARD || ALGORITHM == LOG) out[j] *= alpha;
      }
      element_t* const to = Out::at(rows.out, at + i * stride, 0);
      if (beta != compute_t(0)) {
        compute_t before[VECTOR];
        load_vector(to, rows.aligned, before);
#pragma unroll
        for (int j = 0; j < VECTOR; ++j) out[j] += beta * before[j];
      }
      store_vector(to, rows.aligned, out);
    }
  }
};

// Waits until all but the newest `left` groups of copies have landed. For a large `left` it may
// wait for more groups.
device_inline void wait_for_all_but(u32 left) {
  if (left == 0)
    async_wait<0>();
  else if (left == 1)
    async_wait<1>();
  else if (left == 2)
    async_wait<2>();
  else if (left == 3 || !IN_TURN)
    async_wait<3>();
  else if (left == 4)
    async_wait<4>();
  else
    async_wait<5>();
}

KILN_KERNEL(softmax_online, THREADS, MIN_BLOCKS, SoftmaxParams, params) {
  const u32 parts = cluster_size();
  const index_t stride = static_cast<index_t>(parts) * TY;
  const index_t first = static_cast<index_t>(cluster_rank()) * TY + thread_ty();
  const compute_t alpha = static_cast<compute_t>(params.alpha);
  const compute_t beta = static_cast<compute_t>(params.beta);
  // Groups of RESULTS rows; a cluster takes every clusters-th one.
  const u32 clusters = grid_x() / parts;
  const u64 groups = (static_cast<u64>(params.images) * KEPT + RESULTS - 1) / RESULTS;

  u32 group = cluster_number();
  Rows rows(params, group);
  const bool async = ASYNC && rows.aligned;
  u32 under_way = 0;
  if (async) {
#pragma unroll 1
    for (index_t next = first; next < COMBINED && under_way < SAVED; next += BATCH * stride)
      Batch::start(rows, under_way++, next, stride);
  }
#pragma unroll 1
  for (u32 turn = 0;; ++turn) {
    Totals totals;
    u32 batches = 0;
    index_t at = first;
#pragma unroll 1
    for (; at < COMBINED; at += BATCH * stride, ++batches) {
      Batch batch;
      if (under_way > 0) {
        wait_for_all_but(--under_way);
        batch.restore(batches);
      } else {
        batch.load(rows, at, stride);
        if (!async && batches < SAVED) batch.save(batches);
      }
      batch.add_to(totals);
    }
    totals.combine();
    const bool last = !IN_TURN || groups - group <= clusters;
    if (CLUSTERED && parts > 1) {
      totals.combine_cluster(parts, turn);
      if (last) cluster_arrive();  // this block has read the others' totals
    }
    if constexpr (!BACKWARD) {
#pragma unroll
      for (int i = 0; i < LANES; ++i)
        totals.sum[i] =
            ALGORITHM == LOG ? math_log(totals.sum[i]) : math_reciprocal(totals.sum[i]) * alpha;
    }

#pragma unroll 1
    while (batches > (IN_TURN ? SAVED : 0)) {
      at -= BATCH * stride, --batches;
      Batch batch;
      if (!IN_TURN && batches < SAVED)
        batch.restore(batches);
      else
        batch.load(rows, at, stride);
      if (rows.present) batch.write(rows, at, stride, totals, alpha, beta);
    }
    if constexpr (!IN_TURN) break;
    // The saved batches, in the order in which the next row's will be waited for.
    if (!last) group += clusters;
    const Rows next(params, group);
    at = first;
#pragma unroll 1
    for (u32 number = 0; number < batches; ++number, at += BATCH * stride) {
      Batch batch;
      batch.restore(number);
      if (rows.present) batch.write(rows, at, stride, totals, alpha, beta);
      if (async && !last) Batch::start(next, number, at, stride), ++under_way;
    }
    if (last) break;
    rows = next;
    block_barrier();  // all have read the exchanges between the block's threads
  }
  if (CLUSTERED && parts > 1) cluster_wait();  // other blocks read this block's memory until here
}
