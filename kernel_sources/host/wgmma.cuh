// Products of matrices by a warpgroup, on the host device: see kernel_sources/cuda/wgmma.cuh.
#pragma once

#include "target/half.cuh"
#include "target/kernel.cuh"
#include "target/mma.cuh"

struct SharedMatrix {
  const unsigned char* first;
  int k_step, n_step;

  device_inline SharedMatrix(const void* at, int to_next_16_bytes, int to_next_8_columns)
      : first(static_cast<const unsigned char*>(at)),
        k_step(to_next_16_bytes),
        n_step(to_next_8_columns) {}
  device_inline SharedMatrix moved(int bytes) const {
    SharedMatrix other = *this;
    other.first += bytes;
    return other;
  }
  // A column's first 32 bytes of the reduction.
  device_inline void read(int column, u32 (&words)[8]) const {
    const unsigned char* const at = first + column / 8 * n_step + column % 8 * 16;
    __builtin_memcpy(words, at, 16);
    __builtin_memcpy(words + 4, at + k_step, 16);
  }
};

device_inline void show_to_tensor_cores() {}

// Sums are not numbers until all their products have been waited for, and stay so where a product's
// operands have changed by then or no group had begun: a missing wait is a wrong result.
template <class T, int PRODUCTS>
class WarpgroupProducts {
  static constexpr int MOST = 16;  // products on their way

  struct Pending {
    const u32* left;
    u32 left_was[4];
    const unsigned char* right;
    int k_step, n_step;
    u64 right_was;
    int group;
  };
  Pending pending_[MOST];  // oldest first
  int count_ = 0, group_ = 0;
  bool begun_ = false, wrong_ = false;
  float next_[PRODUCTS][4];

  device_inline static int column_of(int product, u32 i) {
    return product * 8 + static_cast<int>(2 * (kiln_context->lane(kiln_context) % 4) + i);
  }
  // Of the part of `right` that the lane's sums are made of.
  device_inline static u64 digest(const SharedMatrix& right) {
    u64 value = 0;
    for (int j = 0; j < PRODUCTS; ++j)
      for (u32 i = 0; i < 2; ++i) {
        u32 words[8];
        right.read(column_of(j, i), words);
        for (const u32 word : words) value = (value ^ word) * 0x100000001b3ull;
      }
    return value;
  }
  // Product k of a word of 4 bytes: two of 16 bits, one of f32.
  device_inline static double product(u32 left, u32 right) {
    if constexpr (sizeof(T) == 4) {
      return static_cast<double>(tf32_of(float_of(left))) *
             static_cast<double>(tf32_of(float_of(right)));
    } else {
      const auto element = [](u32 pair, u32 i) {
        return static_cast<double>(to_float(T{static_cast<unsigned short>(pair >> 16 * i)}));
      };
      return element(left, 0) * element(right, 0) + element(left, 1) * element(right, 1);
    }
  }

 public:
  device_inline void begin() { begun_ = true; }

  device_inline void multiply(float (&sums)[PRODUCTS][4], const u32 (&left)[4],
                              const SharedMatrix& right) {
    struct Left {
      u32 word[4];
    } mine;
    __builtin_memcpy(mine.word, left, sizeof mine.word);
    const auto* const all =
        static_cast<const Left*>(kiln_context->warp_exchange(kiln_context, &mine, sizeof mine));
    if (count_ == 0) __builtin_memcpy(next_, sums, sizeof next_);
    wrong_ = wrong_ || !begun_ || count_ == MOST;
    const u32 g = kiln_context->lane(kiln_context) / 4;
    for (int j = 0; j < PRODUCTS; ++j)
      for (u32 i = 0; i < 2; ++i) {
        u32 words[8];
        right.read(column_of(j, i), words);
        for (u32 row = 0; row < 2; ++row) {
          double sum = next_[j][row * 2 + i];
          for (u32 k = 0; k < 8; ++k)
            sum += product(all[g * 4 + k % 4].word[k / 4 * 2 + row], words[k]);
          next_[j][row * 2 + i] = mma_round(sum, 0.0f);
        }
      }
    for (auto& column : sums)
      for (float& sum : column) sum = __builtin_nanf("");
    if (count_ == MOST) return;
    Pending& pending = pending_[count_++];
    pending = {left, {}, right.first, right.k_step, right.n_step, digest(right), group_};
    __builtin_memcpy(pending.left_was, left, sizeof pending.left_was);
  }

  device_inline void commit() {
    ++group_;
    begun_ = false;
  }

  template <int NEWEST>
  device_inline void wait(float (&sums)[PRODUCTS][4]) {
    int done = 0;
    for (; done < count_ && pending_[done].group < group_ - NEWEST; ++done) {
      const Pending& each = pending_[done];
      wrong_ = wrong_ || __builtin_memcmp(each.left, each.left_was, sizeof each.left_was) != 0 ||
               digest({each.right, each.k_step, each.n_step}) != each.right_was;
    }
    for (int i = done; i < count_; ++i) pending_[i - done] = pending_[i];
    if (done > 0 && done == count_ && !wrong_) __builtin_memcpy(sums, next_, sizeof next_);
    count_ -= done;
  }
};
