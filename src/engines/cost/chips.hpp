// Rates of chips: what a multiprocessor does in a clock, and how many clusters of blocks run at
// once.
#pragma once

#include "device/device.hpp"

namespace kiln {

inline constexpr double issue_width = 4;       // warp instructions a clock
inline constexpr double wavefront_words = 32;  // of shared memory a clock
inline constexpr double warp = 32, warps_of_warpgroup = 4;

// Multiply-adds of a multiprocessor in a clock. Those of the FMA units are from the CUDA C++
// Programming Guide ("Arithmetic Instructions"), those of the tensor cores from the vendor's
// architecture papers; for capability 90 they are what mma.sync reached (614 clocks for three
// products of 128x128x8). The gathering engines multiply 16-bit operands as TF32; engines that read
// fragments multiply them at twice the rate. Clock and memory rate are those of the data sheet of
// the first chip of that capability in device/known_chips.cpp; for 90 they were measured on an
// H200.
struct Rates {
  int capability;
  double gigahertz;
  double f32, f64;                // FMA units
  double tensor_f32, tensor_f64;  // 0: none
  double memory;                  // bytes a second
};
// The rates of the device's capability, or of the newest known one that is no newer.
const Rates& rates_of(const DeviceDescription& device);

inline double clock_rate(const DeviceDescription& device) {  // clocks a second
  return rates_of(device).gigahertz * 1e9;
}

// The number of multiprocessors that blocks in clusters of `parts` can fill, with `resident` blocks
// on a multiprocessor.
double cluster_places(int parts, int resident, const DeviceDescription& device);

// Whether the device is known to run a cluster of `size` blocks that have a multiprocessor each.
bool certainly_runs(int size, const DeviceDescription& device);

// Seconds of a launch whose multiprocessors are busy for `clocks` while `bytes` move to and from
// memory.
double clocks_to_seconds(double clocks, double bytes, const DeviceDescription& device);

}  // namespace kiln
