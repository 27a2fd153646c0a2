// Exchanges the results of products between lanes, so that each lane can store vectors of 16 bytes.
#pragma once

#include "target/kernel.cuh"

constexpr int WARP_OCTETS = 4;  // one for each of the four lanes that share a row

// Lane t of four has channels 2t and 2t + 1 of each of four octets, for two rows. It gets all
// channels of octet t, for both rows. All 32 lanes must take part.
device_inline void exchange_octets(float (&octets)[2][8], const float (&mine)[WARP_OCTETS][4]) {
  const bool odd = thread_x() % 2 != 0, upper = thread_x() / 2 % 2 != 0;
  // First exchange, between neighboring lanes: [octets 0 and 1, or 2 and 3][even lane, odd lane].
  float pairs[2][2][4];
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float own = odd ? mine[2 * i + 1][c] : mine[2 * i][c];
      const float other = warp_shuffle_xor(odd ? mine[2 * i][c] : mine[2 * i + 1][c], 1);
      pairs[i][0][c] = odd ? other : own;
      pairs[i][1][c] = odd ? own : other;
    }
#pragma unroll
  for (int lane = 0; lane < 2; ++lane)
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float own = upper ? pairs[1][lane][c] : pairs[0][lane][c];
      const float other = warp_shuffle_xor(upper ? pairs[0][lane][c] : pairs[1][lane][c], 2);
      octets[c / 2][2 * lane + c % 2] = upper ? other : own;
      octets[c / 2][4 + 2 * lane + c % 2] = upper ? own : other;
    }
}
