// What one launch of copies to and from channels last tells its kernel. Shared by host code and
// kernels.
#pragma once

// How what tiles walk lies in either tensor. Of channels that have their pixels side by side:
// pixels of both alike; those of the copy, which are what a stride leaves of the caller's plane; or
// those of the plane, of which the copy has what a stride leaves. Or pixels that have their
// channels side by side, one pixel after another without gaps.
enum PixelWalk : unsigned { WALK_ALIKE, WALK_PICKED, WALK_SPREAD, WALK_ROWS };

// A tensor of the caller's and its copy in the workspace, [image][pixel][channel], which may have
// more channels and images: these come in as zeros, and do not go out. First what the copy holds
// goes out to the caller's images, then others of these come in.
struct ChannelsLastCopy {
  void* out;
  const void* in;
  void* last;                // the copy
  long long image, channel;  // elements from one of the caller's to the next
  long long in_span;         // elements from `in` to the tensor's end
  unsigned out_images, in_images;
  unsigned in_with_beta;                 // what comes in is read only where beta is not 0
  unsigned images_there;                 // of in_images: those that the caller has
  unsigned channels, pixels;             // of an image; the pixels that are walked
  unsigned last_channels;                // of the copy; of rows a multiple of 16 bytes
  unsigned last_pixels;                  // of an image of the copy
  unsigned tile_log;                     // a tile has 2^tile_log pixels
  unsigned pixel_tiles, channel_tiles;   // of an image
  unsigned first_block, blocks;          // of the launch
  unsigned walk;                         // PixelWalk
  unsigned plane_width, plane_height;    // of the caller's, unless alike
  unsigned picked_width, picked_height;  // of the copy
  unsigned stride[3];                    // depth, height, width
  unsigned tiles;                        // of all images
};

struct ChannelsLastParams {
  enum : int { most = 4 };
  ChannelsLastCopy copies[most];  // those there are, in the order of their blocks
  double beta;                    // 0: what results held is not read
};

enum : int { CHANNELS_LAST_TILES = 2 };  // of a block

static_assert(sizeof(ChannelsLastCopy) == 136, "host and device must agree");
