// A chunk is the channels of a pixel that are copied to shared memory at once: CHUNK_STEPS
// fragments.
#pragma once

#include "conv/mma/fragment_words.cuh"

constexpr int CHUNK_BYTES = CHUNK_STEPS * FRAGMENT_BYTES;
constexpr int CHUNK_CHANNELS = CHUNK_BYTES / ELEMENT_BYTES;
// Bytes from one pixel, or row of the filter, to the next in layouts whose channels are contiguous.
constexpr int PITCH = fragments_pitch(CHUNK_STEPS);
constexpr int CHUNKS = (CHANNELS + CHUNK_CHANNELS - 1) / CHUNK_CHANNELS;
