// Channels come to shared memory so many at a time: a chunk, CHUNK_STEPS fragments.
#pragma once

#include "conv/mma/fragment_words.cuh"

constexpr int CHUNK_BYTES = CHUNK_STEPS * FRAGMENT_BYTES;
constexpr int CHUNK_CHANNELS = CHUNK_BYTES / ELEMENT_BYTES;
// From a pixel, or a row of the filter, to the next where its channels lie side by side.
constexpr int PITCH = fragments_pitch(CHUNK_STEPS);
constexpr int CHUNKS = (CHANNELS + CHUNK_CHANNELS - 1) / CHUNK_CHANNELS;
