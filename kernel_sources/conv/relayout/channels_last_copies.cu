// Copies between the caller's tensors and tensors [image][pixel][channel] in the workspace, several
// of them in one launch. A block moves TILES tiles through shared memory, with 16-byte accesses on
// both sides, even where contiguous runs of the caller's tensor do not begin at multiples of 16
// bytes. Channels that only the copy has are set to zero.
#include "conv/relayout/planes.cuh"
#include "conv/relayout/rows.cuh"
#include "target/step.cuh"

KILN_BEGINS_STEP;

// What to do with a tile. out() moves it from the copy to the caller's tensor. The other direction
// has two steps, because the asynchronous copies of the first must land before the second: ask()
// loads the tile into shared memory, in() writes it to the copy.
struct Planes {
  device_inline static void out(const ChannelsLastCopy& copy, u32 number, double beta,
                                bits_t* memory) {
    const Tile tile(copy, number, copy.out_pixels, 0);
    if (tile.image >= copy.out_images) return;
    read_channels(tile, beta, memory);
    block_barrier();
    write_rows(tile, memory);
  }
  device_inline static void ask(const ChannelsLastCopy& copy, u32 number, bits_t* memory) {
    const Tile tile = incoming(copy, number);
    if (tile.image >= copy.in_images || tile.image >= copy.images_there) return;
    if (tile.begin() >= tile.end()) return;
    if (copy.walk == WALK_PICKED)
      read_picked(tile, memory);
    else
      read_rows(tile, memory);
  }
  device_inline static void in(const ChannelsLastCopy& copy, u32 number, const bits_t* memory) {
    const Tile tile = incoming(copy, number);
    if (tile.image < copy.in_images) write_channels(tile, memory);
  }

 private:
  device_inline static Tile incoming(const ChannelsLastCopy& copy, u32 number) {
    return Tile(copy, number, copy.in_pixels, copy.in_before);
  }
};
struct Rows {
  device_inline static void out(const ChannelsLastCopy& copy, u32 number, double, bits_t* memory) {
    const RowsTile tile(copy, number, copy.out_pixels, 0, copy.out_pixels);
    read_units(tile, memory);
    async_commit();
    async_wait<0>();
    block_barrier();
    write_elements(tile, memory);
  }
  device_inline static void ask(const ChannelsLastCopy& copy, u32 number, bits_t* memory) {
    read_elements(incoming(copy, number), memory);
  }
  device_inline static void in(const ChannelsLastCopy& copy, u32 number, const bits_t* memory) {
    write_units(incoming(copy, number), memory);
  }

 private:
  device_inline static RowsTile incoming(const ChannelsLastCopy& copy, u32 number) {
    return RowsTile(copy, number, copy.in_pixels, copy.in_before, copy.in_there);
  }
};

// Moves a block's tiles. While one is written to the copy, the next one's rows are being loaded.
template <class Walk>
device_inline void move_tiles(const ChannelsLastCopy& copy, double beta, bits_t* shared) {
  const u32 first = (block_x() - copy.first_block) * TILES;
  const u32 end = first + TILES < copy.tiles ? first + TILES : copy.tiles;
  const auto memory = [&](u32 number) {
    return shared + (number - first) * (SHARED_UNITS * VECTOR);
  };
  if (copy.out_images > 0)
#pragma unroll 1
    for (u32 i = first; i < end; ++i) Walk::out(copy, i, beta, memory(i));
  if (copy.in_images == 0 || (copy.in_with_beta != 0 && beta == 0)) return;
  if (copy.out_images > 0) block_barrier();
#pragma unroll 1
  for (u32 i = first; i < end; ++i) {
    Walk::ask(copy, i, memory(i));
    async_commit();
  }
#pragma unroll 1
  for (u32 i = first; i < end; ++i) {
    if (i + 1 < end)
      async_wait<1>();
    else
      async_wait<0>();
    block_barrier();
    Walk::in(copy, i, memory(i));
  }
}

KILN_KERNEL(channels_last_copies, THREADS, 5, ChannelsLastParams, params) {
  begin_step();
  bits_t* const shared = shared_array<bits_t, TILES * SHARED_UNITS * VECTOR>(0);
  int number = 0;
  while (block_x() >= params.copies[number].first_block + params.copies[number].blocks) ++number;
  const ChannelsLastCopy& copy = params.copies[number];
  if (copy.walk == WALK_ROWS)
    move_tiles<Rows>(copy, params.beta, shared);
  else
    move_tiles<Planes>(copy, params.beta, shared);
}
