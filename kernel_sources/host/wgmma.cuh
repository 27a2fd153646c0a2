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
  // Where element k, of 16, of the reduction of a row or column of an MN-major, 16-bit matrix lies.
  device_inline const unsigned char* across(int row, int k) const {
    if (line == 0) return first + row / 8 * n_step + row % 8 * 2 + k / 8 * k_step + k % 8 * 16;
    return permuted(first + row / (line / 2) * k_step + k / 8 * n_step + k % 8 * line +
                    row % (line / 2) / 8 * 16) +
           row % 8 * 2;
  }
  // Reads the first 16 elements of the reduction of such a row or column.
  device_inline void read_across(int row, u32 (&words)[8]) const {
    for (int k = 0; k < 16; ++k)
      __builtin_memcpy(reinterpret_cast<unsigned char*>(words) + 2 * k, across(row, k), 2);
  }
  // Reads those of an even column and the next, which lie side by side: a word for each k.
  device_inline void read_two_across(int column, u32 (&words)[16]) const {
    for (int k = 0; k < 16; ++k) __builtin_memcpy(words + k, across(column, k), 4);
  }
  // Reads the first 32 bytes of the reduction of a row or column of a K-major matrix.
  device_inline void read(int column, u32* words) const {
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
  // Reads two columns of `right`: 8 words of each, or a word of both for each of 16 elements.
  device_inline static void read_right(const SharedMatrix& right, bool columns_inner, int column,
                                       u32 (&words)[16]) {
    if (columns_inner) return right.read_two_across(column, words);
    right.read(column, words);
    right.read(column + 1, words + 8);
  }
  // Products that do not wait for each other; each factor is odd, so that no changed word is lost.
  device_inline static void digest(u64& value, const u32* words) {
    u64 pair[4];
    __builtin_memcpy(pair, words, sizeof pair);
    value = value * 0x100000001b3ull +
            (pair[0] * 0x9e3779b97f4a7c15ull + pair[1] * 0xc2b2ae3d27d4eb4full) +
            (pair[2] * 0x165667b19e3779f9ull + pair[3] * 0xd6e8feb86659fd93ull);
  }
  // A digest of the columns of `right` that the lane's sums depend on.
  device_inline static u64 digest_right(const SharedMatrix& right, bool columns_inner) {
    u64 value = 0;
    const int first = lane_column();
    for (int j = 0; j < PRODUCTS; ++j) {
      u32 words[16];
      read_right(right, columns_inner, 8 * j + first, words);
      digest(value, words);
      digest(value, words + 8);
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
  // Converts words to the elements that products use: of four words, the lower and the upper
  // halves.
  static constexpr int ELEMENTS = 32 / sizeof(T);
  device_inline static void halves_of(const u32* words, floatx4& low, floatx4& high) {
    u32x4 four;
    __builtin_memcpy(&four, words, sizeof four);
    low = to_floats<T>(four & 0xffffu);
    high = to_floats<T>(four >> 16);
  }
  // Those of a row or column.
  device_inline static void elements_of(const u32* words, double (&elements)[ELEMENTS]) {
    if constexpr (sizeof(T) == 4) {
      for (int i = 0; i < ELEMENTS; ++i) elements[i] = tf32_of(float_of(words[i]));
    } else {
      for (int i = 0; i < 8; i += 4) {
        floatx4 low, high;
        halves_of(words + i, low, high);
        for (int k = 0; k < 4; ++k)
          elements[2 * (i + k)] = low[k], elements[2 * (i + k) + 1] = high[k];
      }
    }
  }
  // Those of two columns, as read_right() reads them.
  device_inline static void elements_of(const u32 (&words)[16], bool columns_inner,
                                        double (&elements)[2][ELEMENTS]) {
    if constexpr (sizeof(T) == 2) {
      if (columns_inner) {
        for (int i = 0; i < 16; i += 4) {
          floatx4 low, high;
          halves_of(words + i, low, high);
          for (int k = 0; k < 4; ++k) elements[0][i + k] = low[k], elements[1][i + k] = high[k];
        }
        return;
      }
    }
    elements_of(words, elements[0]);
    elements_of(words + 8, elements[1]);
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
    double row[2][ELEMENTS], column[2][ELEMENTS];
    for (int i = 0; i < 2; ++i) elements_of(left[i], row[i]);
    doublex2 rows[ELEMENTS];
    for (int k = 0; k < ELEMENTS; ++k) rows[k] = doublex2{row[0][k], row[1][k]};
    const int first = lane_column();
    for (int j = 0; j < PRODUCTS; ++j) {
      u32 words[16];
      read_right(pending.right, pending.right_columns_inner, 8 * j + first, words);
      elements_of(words, pending.right_columns_inner, column);
      doublex2 sum0{next[j][0], next[j][2]}, sum1{next[j][1], next[j][3]};
      for (int k = 0; k < ELEMENTS; k += 2) {  // the products are exact
        sum0 += rows[k] * column[0][k] + rows[k + 1] * column[0][k + 1];
        sum1 += rows[k] * column[1][k] + rows[k + 1] * column[1][k + 1];
      }
      next[j][0] = mma_round(sum0[0], 0.0f), next[j][1] = mma_round(sum1[0], 0.0f);
      next[j][2] = mma_round(sum0[1], 0.0f), next[j][3] = mma_round(sum1[1], 0.0f);
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
