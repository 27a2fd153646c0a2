#include "cli/bench/operands.hpp"

#include <algorithm>

#include "cli/operation/random_fill.hpp"
#include "plan/tune/rotation.hpp"
#include "reference/reference.hpp"

namespace kiln::cli::bench {
namespace {

// Operands begin at different elements of the pool, so that no two of them have the same data.
constexpr std::int64_t apart = 1000003;

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

void RandomPool::require(DataType type, std::int64_t elements) {
  if (type_ == type && host_.size() >= elements * size_of(type)) return;
  Operand operand;
  operand.type = type;
  operand.dims = {1, 1, 1, 1, elements};
  operand.strides = {0, 0, 0, 0, 1};
  type_.reset();
  on_device_.reset();
  host_ = random_operand(operand, type, seed_);
  on_device_ = std::make_unique<DeviceBuffer>(device_, host_.size());
  on_device_->fill(host_);
  type_ = type;
}

void RandomPool::fill(std::byte* memory, std::size_t bytes) const {
  for (std::size_t at = 0; at < bytes; at += host_.size())
    device_.copy(memory + at, device(), std::min(host_.size(), bytes - at), nullptr);
}

int sets_of(const DeviceDescription& device, std::size_t bytes) {
  if (device.kind == KILN_DEVICE_HOST) return 1;
  const double each = static_cast<double>(std::max<std::size_t>(bytes, 1));
  const int affordable = static_cast<int>(
      std::clamp(static_cast<double>(device.memory_bytes) / 4 / each, 1.0, 1000.0));
  return std::min(std::max(sets_beyond_l2(device.l2_bytes, bytes), 2), affordable);
}

Operands::Operands(Device& device, RandomPool& pool, const Case& item)
    : device_(device), pool_(pool), case_(item), operands_(operands_of(item.problem)) {
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const std::int64_t first = static_cast<std::int64_t>(i) * apart;
    elements = std::max(elements, first + operands_[i].span());
    pool_offsets_.push_back(first * size_of(operands_[i].type));
    offsets_.push_back(set_bytes_);
    set_bytes_ += aligned(operands_[i].span() * size_of(operands_[i].type));
  }
  pool_.require(type_of(item), elements);
  const int sets = sets_of(device.description(), set_bytes_);
  memory_ = std::make_unique<DeviceBuffer>(device, set_bytes_ * sets);
  addresses_.resize(sets);
  for (int set = 0; set < sets; ++set)
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      addresses_[set].push_back(memory_->address() + set * set_bytes_ + offsets_[i]);
      write(set, i);
    }
  device_.synchronize(nullptr);
}

void Operands::write(int set, std::size_t operand) {
  const std::size_t bytes = operands_[operand].span() * size_of(operands_[operand].type);
  device_.copy(addresses_[set][operand], pool_.device() + pool_offsets_[operand], bytes, nullptr);
}

BufferSet Operands::set(int index) const {
  const int wrapped = index % sets();
  return {wrapped, addresses_[wrapped]};
}

BufferSet Operands::fresh() {
  const Operand& result = operands_.back();
  if (case_.scalars.beta == 0)
    device_.fill(addresses_[0].back(), 0xff, result.span() * size_of(result.type));
  else
    write(0, operands_.size() - 1);
  device_.synchronize(nullptr);
  return set(0);
}

Comparison Operands::compare() {
  if (!samples_) {
    std::vector<const void*> memory;
    for (const std::size_t offset : pool_offsets_) memory.push_back(pool_.host() + offset);
    samples_.emplace(case_.problem, case_.scalars, memory,
                     Sampling{.seed = pool_.seed(), .seconds = 0.1, .least = 64});
  }
  // Few elements of a large result are copied one by one, which takes some 10 us each and is faster
  // than copying all.
  const Operand& result = operands_.back();
  const std::size_t size = size_of(result.type);
  const std::vector<std::int64_t> offsets = samples_->offsets();
  const auto* const output = static_cast<const std::byte*>(addresses_[0].back());
  std::vector<double> values;
  constexpr std::int64_t small = 1 << 20;  // elements
  constexpr std::size_t few = 1000;
  if (result.span() <= small || offsets.size() > few) {
    std::vector<std::byte> all(result.span() * size);
    device_.copy_out(all.data(), output, all.size());
    for (const std::int64_t offset : offsets)
      values.push_back(reference::read_element(result.type, all.data(), offset));
  } else {
    for (const std::int64_t offset : offsets) {
      double element = 0;
      device_.copy_out(&element, output + offset * size, size);
      values.push_back(reference::read_element(result.type, &element, 0));
    }
  }
  return samples_->compare(values);
}

}  // namespace kiln::cli::bench
