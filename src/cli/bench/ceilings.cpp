#include "cli/bench/ceilings.hpp"

#include "bench/fma_peak_params.h"
#include "core/text.hpp"

namespace kiln::cli::bench {
namespace {

constexpr std::int64_t threads = 256, chains = 16, turns = 16;

KernelSpec fma_kernel(DataType type) {
  KernelSpec spec;
  spec.engine = "fma_peak";
  spec.file = "bench/fma_peak.cu";
  spec.entry = "fma_peak";
  spec.tile = cat(threads, " threads, ", chains, " sums each");
  spec.constants = {{"T", kernel_type(type), "what is multiplied and added"},
                    {"THREADS", threads, "of a block"},
                    {"CHAINS", chains, "sums of a thread, none of which waits for another"},
                    {"TURNS", turns, "of the loop that are written out"}};
  return spec;
}

}  // namespace

std::optional<Contestant> Ceilings::of(const Case& item) {
  const DataType type = type_of(item);
  if (!std::holds_alternative<ConvolutionProblem>(item.problem) &&
      !std::holds_alternative<MatmulProblem>(item.problem)) {
    const bool reads_output = item.scalars.beta != 0;
    return copy(static_cast<std::size_t>(work_of(item.problem, reads_output).bytes));
  }
  if (size_of(type) == 2 || item.math == "tf32") return std::nullopt;
  return fma(type);
}

std::vector<Contestant> Ceilings::alone() {
  pool_.require(KILN_DATA_FLOAT, 1 << 20);
  std::vector<Contestant> all;
  all.push_back(copy(std::size_t{512} << 20));
  for (const DataType type : {KILN_DATA_FLOAT, KILN_DATA_DOUBLE}) {
    all.push_back(fma(type));
    all.back().roles = {cat("fma peak ", name_of(type))};
  }
  return all;
}

Contestant Ceilings::copy(std::size_t bytes) {
  // Copies rotate through several pairs of buffers, so that neither buffer is still in the L2
  // cache.
  const std::size_t half = std::max<std::size_t>(bytes / 2 / 256 * 256, 256);
  const int pairs = sets_of(device_.description(), 2 * half);
  copied_.reset();
  copied_ = std::make_unique<DeviceBuffer>(device_, 2 * half * pairs);
  pool_.fill(copied_->address(), copied_->bytes());
  std::byte* const memory = copied_->address();
  Contestant contestant;
  contestant.roles = {"copy"};
  contestant.kernel = "device to device, by the driver";
  contestant.bytes = 2 * static_cast<double>(half);
  contestant.solves = false;
  contestant.execute = [this, memory, half, pairs, turn = 0](const BufferSet&) mutable {
    std::byte* const pair = memory + 2 * half * (turn++ % pairs);
    device_.copy(pair + half, pair, half, nullptr);
  };
  return contestant;
}

Contestant Ceilings::fma(DataType type) {
  const DeviceDescription& description = device_.description();
  const bool host = description.kind == KILN_DEVICE_HOST;
  if (!nothing_) nothing_ = std::make_unique<DeviceBuffer>(device_, 256);
  const KernelSpec spec = fma_kernel(type);
  const auto kernel = load_kernel(spec, device_).kernel;
  const FmaPeakParams params{nothing_->address(), 0.5, 1, host ? 1 : 128};
  LaunchShape shape;
  shape.block = {threads, 1, 1};
  // A multiprocessor runs eight blocks at once (2,048 threads). With eight rounds of them, the last
  // round hardly matters.
  constexpr int blocks_a_multiprocessor = 64;
  shape.grid = {host ? 1u : description.multiprocessors * blocks_a_multiprocessor, 1, 1};
  Contestant contestant;
  contestant.roles = {"fma peak"};
  contestant.kernel = spec.tile;
  contestant.flops = 2.0 * shape.grid[0] * threads * chains * turns * params.rounds;
  contestant.solves = false;
  contestant.execute = [kernel, params, shape](const BufferSet&) {
    kernel->kernel->launch(shape, std::as_bytes(std::span(&params, 1)), nullptr);
  };
  return contestant;
}

}  // namespace kiln::cli::bench
