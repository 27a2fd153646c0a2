// The parameters of one launch of copies to and from channels last. Shared by host code and
// kernels.
#pragma once

// What tiles walk. The first three are for channels-first tensors. WALK_ALIKE: both have the same
// pixels. WALK_PICKED: the copy's pixels, which a stride selects from the caller's plane.
// WALK_SPREAD: all pixels of the caller's plane, of which the copy has those that a stride selects.
// WALK_ROWS: the rows of a channels-last tensor without gaps between pixels (rows.cuh).
enum PixelWalk : unsigned { WALK_ALIKE, WALK_PICKED, WALK_SPREAD, WALK_ROWS };

// A tensor of the caller and its copy in the workspace, [image][pixel][channel]. The copy may have
// more channels and images than the tensor: these come in as zeros and do not go out. A launch
// first moves the copy's contents out to out_images of the caller's images, then brings in_images
// others in. The copy may also be of some rows of one image: `in` and `out` are then those rows,
// and rows of padding come in as zeros.
struct ChannelsLastCopy {
  void* out;
  const void* in;
  void* last;                // the copy
  long long image, channel;  // the caller's strides, in elements
  long long in_span;         // elements from `in` to the tensor's end
  unsigned out_images, in_images;
  unsigned in_with_beta;                 // bring images in only if beta is not 0
  unsigned images_there;                 // how many of in_images the caller has
  unsigned channels;                     // of the caller's
  unsigned out_pixels, in_pixels;        // to walk of an image; with WALK_ROWS, of all images
  unsigned in_before, in_there;          // of in_pixels: first zeros, then the caller's, then zeros
  unsigned last_channels;                // of the copy; with WALK_ROWS, 16-byte multiples
  unsigned last_pixels;                  // pixels of an image of the copy
  unsigned tile_log;                     // a tile has 2^tile_log pixels
  unsigned pixel_tiles, channel_tiles;   // tiles of an image: along its pixels, along its channels
  unsigned first_block, blocks;          // the copy's first block in the launch, and its blocks
  unsigned walk;                         // PixelWalk
  unsigned plane_width, plane_height;    // size of the caller's planes, unless WALK_ALIKE
  unsigned picked_width, picked_height;  // size of the copy's planes
  unsigned stride[3];                    // depth, height, width
  unsigned tiles;                        // tiles of all images
  unsigned unused;                       // no byte is left undefined
};

struct ChannelsLastParams {
  enum : int { most = 4 };
  ChannelsLastCopy copies[most];  // as many as there are, by first_block
  double beta;                    // 0: previous results are not read
};

enum : int { CHANNELS_LAST_TILES = 2 };  // tiles of a block

static_assert(sizeof(ChannelsLastCopy) == 152, "host and device must agree");
