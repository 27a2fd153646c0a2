// What an engine proposes: a kernel as a plain value, before any text is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/magic.hpp"
#include "device/device.hpp"
#include "device/tensor_map.hpp"
#include "problem/types.hpp"

namespace kiln {

struct TypeName {
  std::string name;  // as kernel_sources/common/ spells it: "float", "double", "f16_t", "bf16_t"
  friend bool operator==(const TypeName&, const TypeName&) = default;
};
TypeName kernel_type(DataType type);

// What a macro stands for: text that no constant can be, such as an instruction's operands.
struct MacroText {
  std::string text;
  friend bool operator==(const MacroText&, const MacroText&) = default;
};

// A number that the text does not have: it comes with the launch, ahead of the kernel's own
// parameters, so that one kernel serves whatever it is (late.hpp).
struct LateValue {
  enum class Kind : std::uint8_t { number, wide_number, divisor, wide_divisor };
  Kind kind = Kind::number;
  bool array = false;
  std::uint16_t offset = 0;  // bytes into what comes with the launch
  friend bool operator==(const LateValue&, const LateValue&) = default;
};

// One constant of the generated text.
struct Constant {
  std::string name;
  std::variant<std::int64_t, bool, TypeName, MacroText, MagicDivisor, WideMagicDivisor,
               std::vector<std::int64_t>, LateValue>
      value;  // a vector: an array
  std::string comment;
  friend bool operator==(const Constant&, const Constant&) = default;
};

// The kernel itself. Equal specs give equal text; the cache of loaded kernels is keyed by it.
struct KernelSpec {
  std::string engine;  // "implicit_gemm_fma"
  std::string file;    // below kernel_sources/: "conv/implicit_gemm/implicit_gemm_fma.cu"
  std::string entry;   // the extern "C" kernel
  std::string tile;    // for people
  std::vector<Constant> constants;
  std::uint32_t late_bytes = 0;     // of late constants, ahead of the parameters
  std::uint32_t shared_memory = 0;  // dynamic, bytes
  std::size_t alignment = 1;        // bytes that every operand must be aligned to
  bool clustered = false;           // may come in clusters; else it lacks the code for them
  bool quick_assembly = false;      // by few of the assembler's optimizations: it needs no more
  friend bool operator==(const KernelSpec&, const KernelSpec&) = default;
};

// How one plan launches its kernel: a shape, and the kernel's parameter struct with holes for what
// the caller gives at execution.
struct LaunchSpec {
  enum class Hole : std::uint8_t { operand, alpha, beta, alpha2, workspace };
  struct Patch {
    Hole hole;
    std::uint8_t operand;  // index into the execution's operands, for Hole::operand
    std::uint16_t offset;  // bytes into the struct
  };

  // A tensor map among the parameters, of an operand, or of the workspace, from `first` bytes on.
  struct Map {
    static constexpr std::uint8_t workspace = 0xff;  // in place of an operand's number
    TensorMapSpec spec;
    std::uint8_t operand;
    std::int64_t first;
    std::uint16_t offset;  // bytes into the struct, a multiple of tensor_map_alignment
  };

  LaunchShape shape;
  bool empty = false;  // nothing to compute: an empty batch
  std::vector<std::byte> parameters;
  std::vector<Patch> patches;
  std::vector<Map> maps;

  template <class Struct>
  void set_parameters(const Struct& value) {
    parameters.resize(sizeof(Struct));
    std::memcpy(parameters.data(), &value, sizeof(Struct));
  }
};

// One launch of one kernel.
struct Step {
  KernelSpec kernel;
  LaunchSpec launch;

  // Blocks come in clusters of `size`.
  void set_cluster(std::int64_t size) {
    launch.shape.cluster = static_cast<std::uint32_t>(size);
    kernel.clustered = size > 1;
  }
};

// What an engine proposes: steps that are launched in order on one stream, each of which sees what
// those before it wrote. The first one is the proposal itself: what there is mostly is one kernel,
// and of several the first gives the candidate its name.
struct Proposal : Step {
  std::vector<Step> then{};  // after the first
  // Device memory through which steps hand results on: 0 unless the caller granted as many bytes.
  std::size_t workspace = 0;
};

}  // namespace kiln
