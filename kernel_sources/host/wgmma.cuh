// Products of matrices by a warpgroup, on the host device: see kernel_sources/cuda/wgmma.cuh.
#pragma once

#include "target/half.cuh"
#include "target/kernel.cuh"
#include "target/mma.cuh"

struct SharedMatrix {
  const unsigned char* first;
  int k_step, n_step;
  int line = 0;  // bytes of a swizzled row; 0: no swizzle

  SharedMatrix() = default;
  device_inline SharedMatrix(const void* at, int to_next_16_bytes, int to_next_8_columns)
      : first(static_cast<const unsigned char*>(at)),
        k_step(to_next_16_bytes),
        n_step(to_next_8_columns) {}
  template <int LINE>
  device_inline static SharedMatrix swizzled(const void* at, int eight_rows, int blocks = 16) {
    SharedMatrix matrix(at, blocks, eight_rows);
    matrix.line = LINE;
    return matrix;
  }
  // Where the swizzle puts the 16 bytes at `place`.
  device_inline const unsigned char* permuted(const unsigned char* place) const {
    if (line == 0) return place;
    const u64 address = reinterpret_cast<u64>(place), places = static_cast<u64>(line - 16);
    return place + static_cast<i64>((address ^ (address >> 3 & places)) - address);
  }
  device_inline SharedMatrix moved(int bytes) const {
    SharedMatrix other = *this;
    other.first += bytes;
    return other;
  }
  // Reads the first 16 elements of the reduction of a row or column of an MN-major, 16-bit matrix.
  device_inline void read_across(int row, u32 (&words)[8]) const {
    for (int k = 0; k < 16; ++k) {
      const unsigned char* const at =
          line != 0 ? permuted(first + row / (line / 2) * k_step + k / 8 * n_step + k % 8 * line +
                               row % (line / 2) / 8 * 16) +
                          row % 8 * 2
                    : first + row / 8 * n_step + row % 8 * 2 + k / 8 * k_step + k % 8 * 16;
      __builtin_memcpy(reinterpret_cast<unsigned char*>(words) + 2 * k, at, 2);
    }
  }
  // Reads the first 32 bytes of the reduction of a row or column of a K-major matrix.
  device_inline void read(int column, u32 (&words)[8]) const {
    const unsigned char* const at =
        first + column / 8 * n_step + column % 8 * (line != 0 ? line : 16);
    __builtin_memcpy(words, permuted(at), 16);
    __builtin_memcpy(words + 4, permuted(at + (line != 0 ? 16 : k_step)), 16);
  }
};

device_inline void fence_proxy_async() {}

// Sums are NaN until all their products have been waited for. They stay NaN if an operand of a
// product has changed by then, or if no group had begun. So a missing wait gives a wrong result.
template <class T, int LEFT, int PRODUCTS>
class WarpgroupProducts {
  static constexpr int MOST = 16 * LEFT;  // products in flight
  using TileSums = float[PRODUCTS][4];

  struct Pending {
    const u32* left;  // registers; null: operand A is in shared memory
    u32 left_was[4];
    u64 left_digest, right_digest;
    SharedMatrix left_matrix, right;
    bool left_rows_inner, right_columns_inner;
    int group;
  };
  Pending pending_[MOST];  // oldest first
  int count_ = 0, group_ = 0;
  bool begun_ = false, wrong_ = false;
  // The sums that have products in flight, and the values that they will get.
  TileSums* tiles_[LEFT];
  TileSums next_[LEFT];
  int tile_count_ = 0;

  // The first of the lane's two columns in every 8.
  device_inline static int lane_column() {
    return static_cast<int>(2 * (kiln_context->lane(kiln_context) % 4));
  }
  device_inline static void read_right(const SharedMatrix& right, bool columns_inner, int column,
                                       u32 (&words)[8]) {
    if (columns_inner)
      right.read_across(column, words);
    else
      right.read(column, words);
  }
  device_inline static void digest(u64& value, const u32 (&words)[8]) {
    for (int i = 0; i < 8; i += 2)
      value = (value ^ (words[i] | u64{words[i + 1]} << 32)) * 0x100000001b3ull;
  }
  // A digest of the columns of `right` that the lane's sums depend on.
  device_inline static u64 digest_right(const SharedMatrix& right, bool columns_inner) {
    u64 value = 0;
    const int first = lane_column();
    for (int j = 0; j < PRODUCTS; ++j)
      for (int i = 0; i < 2; ++i) {
        u32 words[8];
        read_right(right, columns_inner, 8 * j + first + i, words);
        digest(value, words);
      }
    return value;
  }
  // Reads the lane's two rows of the warpgroup's 64.
  device_inline static void read_left(const SharedMatrix& left, bool rows_inner,
                                      u32 (&rows)[2][8]) {
    const int first =
        static_cast<int>(thread_x() / 32 % 4 * 16 + kiln_context->lane(kiln_context) / 4);
    for (int row = 0; row < 2; ++row) {
      if (rows_inner)
        left.read_across(first + row * 8, rows[row]);
      else
        left.read(first + row * 8, rows[row]);
    }
  }
  device_inline static u64 digest_left(const SharedMatrix& left, bool rows_inner) {
    u32 rows[2][8];
    read_left(left, rows_inner, rows);
    u64 value = 0;
    for (const auto& row : rows) digest(value, row);
    return value;
  }
  // Converts the words of a row or column to the elements that products use.
  static constexpr int ELEMENTS = 32 / sizeof(T);
  device_inline static void elements_of(const u32 (&words)[8], double (&elements)[ELEMENTS]) {
    for (int i = 0; i < ELEMENTS; ++i)
      if constexpr (sizeof(T) == 4)
        elements[i] = tf32_of(float_of(words[i]));
      else
        elements[i] = to_float(T{static_cast<unsigned short>(words[i / 2] >> 16 * (i % 2))});
  }

  // The index of `sums` among those with products in flight; adds them if they are new.
  device_inline int tile_of(TileSums& sums) {
    for (int i = 0; i < tile_count_; ++i)
      if (tiles_[i] == &sums) return i;
    if (tile_count_ == LEFT) {
      wrong_ = true;
      return 0;
    }
    tiles_[tile_count_] = &sums;
    __builtin_memcpy(next_[tile_count_], sums, sizeof sums);
    return tile_count_++;
  }
  device_inline void start(TileSums& sums, const u32 (&left)[2][8], const Pending& pending,
                           bool add = true) {
    auto& next = next_[tile_of(sums)];
    if (!add) __builtin_memset(next, 0, sizeof next);
    wrong_ = wrong_ || !begun_ || count_ == MOST;
    double rows[2][ELEMENTS], column[ELEMENTS];
    for (int row = 0; row < 2; ++row) elements_of(left[row], rows[row]);
    const int first = lane_column();
    for (int j = 0; j < PRODUCTS; ++j)
      for (int i = 0; i < 2; ++i) {
        u32 words[8];
        read_right(pending.right, pending.right_columns_inner, 8 * j + first + i, words);
        elements_of(words, column);
        double sum0 = next[j][i], sum1 = next[j][2 + i];
        for (int k = 0; k < ELEMENTS; k += 2) {  // the products are exact
          sum0 += rows[0][k] * column[k] + rows[0][k + 1] * column[k + 1];
          sum1 += rows[1][k] * column[k] + rows[1][k + 1] * column[k + 1];
        }
        next[j][i] = mma_round(sum0, 0.0f), next[j][2 + i] = mma_round(sum1, 0.0f);
      }
    for (auto& column : sums)
      for (float& sum : column) sum = __builtin_nanf("");
    if (count_ < MOST) pending_[count_++] = pending;
  }
  device_inline void multiply_in_place(TileSums& sums, const SharedMatrix& left,
                                       bool left_rows_inner, const SharedMatrix& right,
                                       bool right_columns_inner, bool add) {
    u32 rows[2][8];
    read_left(left, left_rows_inner, rows);
    start(sums, rows,
          {nullptr,
           {},
           digest_left(left, left_rows_inner),
           digest_right(right, right_columns_inner),
           left,
           right,
           left_rows_inner,
           right_columns_inner,
           group_},
          add);
  }
  device_inline static bool changed(const Pending& each) {
    if (digest_right(each.right, each.right_columns_inner) != each.right_digest) return true;
    if (each.left == nullptr)
      return digest_left(each.left_matrix, each.left_rows_inner) != each.left_digest;
    return __builtin_memcmp(each.left, each.left_was, sizeof each.left_was) != 0;
  }

 public:
  device_inline void begin() { begun_ = true; }

  template <bool COLUMNS_INNER, int L, class Sums>
  device_inline void multiply(Sums& sums, const u32 (&left)[4], const SharedMatrix& right,
                              bool add = true) {
    static_assert(!COLUMNS_INNER || sizeof(T) == 2);
    struct Left {
      u32 word[4];
    } mine;
    __builtin_memcpy(mine.word, left, sizeof mine.word);
    const auto* const all =
        static_cast<const Left*>(kiln_context->warp_exchange(kiln_context, &mine, sizeof mine));
    const u32 g = kiln_context->lane(kiln_context) / 4;
    u32 rows[2][8];
    for (u32 row = 0; row < 2; ++row)
      for (u32 k = 0; k < 8; ++k) rows[row][k] = all[g * 4 + k % 4].word[k / 4 * 2 + row];
    Pending pending{left,  {},    0,     digest_right(right, COLUMNS_INNER),
                    right, right, false, COLUMNS_INNER,
                    group_};
    __builtin_memcpy(pending.left_was, left, sizeof pending.left_was);
    start(sums.part[L], rows, pending, add);
  }

  template <bool LEFT_ROWS_INNER, int L, class Sums>
  device_inline void multiply(Sums& sums, const SharedMatrix& left, const SharedMatrix& right,
                              bool add = true) {
    static_assert(!LEFT_ROWS_INNER || sizeof(T) == 2);
    multiply_in_place(sums.part[L], left, LEFT_ROWS_INNER, right, false, add);
  }
  template <bool LEFT_BY_STEPS, bool RIGHT_BY_STEPS, int L, class Sums>
  device_inline void multiply_swizzled(Sums& sums, const SharedMatrix& left,
                                       const SharedMatrix& right, bool add) {
    static_assert(sizeof(T) == 2 || !(LEFT_BY_STEPS || RIGHT_BY_STEPS));
    if (left.line == 0 || right.line == 0) __builtin_trap();
    multiply_in_place(sums.part[L], left, LEFT_BY_STEPS, right, RIGHT_BY_STEPS, add);
  }

  device_inline void commit() {
    ++group_;
    begun_ = false;
  }

  // The whole warp calls this, as on a GPU. No lane continues before all lanes are done, because
  // another lane may still read the registers that this lane would overwrite next.
  template <int NEWEST>
  device_inline void wait() {
    finish<NEWEST>();
    warp_barrier();
  }

 private:
  template <int NEWEST>
  device_inline void finish() {
    int done = 0;
    for (; done < count_ && pending_[done].group < group_ - NEWEST; ++done)
      wrong_ = wrong_ || changed(pending_[done]);
    for (int i = done; i < count_; ++i) pending_[i - done] = pending_[i];
    count_ -= done;
    if (done == 0 || count_ > 0) return;
    if (!wrong_)
      for (int i = 0; i < tile_count_; ++i) __builtin_memcpy(*tiles_[i], next_[i], sizeof next_[i]);
    tile_count_ = 0;
  }
};
