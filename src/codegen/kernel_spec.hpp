// What an engine proposes: kernels and launches as plain values, before any text is generated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
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

// The text of a macro, for what a constant cannot express, such as an instruction's operands.
struct MacroText {
  std::string text;
  friend bool operator==(const MacroText&, const MacroText&) = default;
};

// A number that is not in the text. Each launch passes it ahead of the kernel's own parameters, so
// that one kernel serves all its values (late.hpp).
struct LateValue {
  enum class Kind : std::uint8_t { number, wide_number, divisor, wide_divisor };
  Kind kind = Kind::number;
  bool array = false;
  std::uint16_t offset = 0;  // in bytes, from the start of the late constants
  friend bool operator==(const LateValue&, const LateValue&) = default;
};

// One constant of the generated text.
struct Constant {
  std::string name;
  std::variant<std::int64_t, bool, TypeName, MacroText, MagicDivisor, WideMagicDivisor,
               std::vector<std::int64_t>, LateValue>
      value;  // a vector becomes an array
  std::string comment;
  friend bool operator==(const Constant&, const Constant&) = default;
};

// A kernel. Equal specs give equal text; the spec is the key of the table of loaded kernels.
struct KernelSpec {
  std::string engine;  // "implicit_gemm_fma"
  std::string file;    // in kernel_sources/: "conv/implicit_gemm/implicit_gemm_fma.cu"
  std::string entry;   // name of the extern "C" kernel
  std::string tile;    // description for people
  std::vector<Constant> constants;
  std::uint32_t late_bytes = 0;     // bytes of late constants, ahead of the parameters
  std::uint32_t shared_memory = 0;  // bytes of dynamic shared memory
  std::size_t alignment = 1;        // required of every operand, in bytes
  bool clustered = false;           // may be launched in clusters; else it lacks the code for them
  bool quick_assembly = false;      // assembled with few optimizations, as more gain nothing
  friend bool operator==(const KernelSpec&, const KernelSpec&) = default;
};

// The launch of a kernel: its shape, and the parameter struct with holes for the values that the
// caller passes at execution.
struct LaunchSpec {
  enum class Hole : std::uint8_t { operand, alpha, beta, alpha2, workspace };
  struct Patch {
    Hole hole;
    std::uint8_t operand;  // index into the execution's operands, for Hole::operand
    std::uint16_t offset;  // in the struct, in bytes
    friend bool operator==(const Patch&, const Patch&) = default;
  };

  // A tensor map among the parameters. It describes an operand, or the workspace, from byte `first`
  // on.
  struct Map {
    static constexpr std::uint8_t workspace = 0xff;  // as `operand`: the workspace
    TensorMapSpec spec;
    std::uint8_t operand;
    std::int64_t first;
    std::uint16_t offset;  // in the struct, in bytes; a multiple of tensor_map_alignment
    friend bool operator==(const Map&, const Map&) = default;
  };

  // What a launch of a loop adds, in each iteration, to a number of the iteration before: to the 8
  // bytes at `place` of the struct, modulo 2^64, or to Map::first of map number `place`.
  struct Stride {
    std::int64_t each;
    std::uint16_t place;
    bool of_map;
    std::uint8_t level;  // of the loop
    friend bool operator==(const Stride&, const Stride&) = default;
  };

  LaunchShape shape;
  bool empty = false;                 // nothing to compute, because the batch is empty
  std::vector<std::byte> parameters;  // in loops: of the first iteration
  std::vector<Patch> patches;
  std::vector<Map> maps;
  std::vector<Stride> strides;

  template <class Struct>
  void set_parameters(const Struct& value) {
    parameters.resize(sizeof(Struct));
    std::memcpy(parameters.data(), &value, sizeof(Struct));
  }
  friend bool operator==(const LaunchSpec&, const LaunchSpec&) = default;
};

// One launch of one kernel, or as many as the loops around it have iterations.
struct Step {
  KernelSpec kernel;
  LaunchSpec launch;

  // Launches the blocks in clusters of `size`.
  void set_cluster(std::int64_t size) {
    launch.shape.cluster = static_cast<std::uint32_t>(size);
    kernel.clustered = size > 1;
  }
};

// Steps that are launched `times` times in order: launches that differ only in numbers which grow
// evenly (LaunchSpec::Stride) are counted, not listed.
struct Loop {
  std::size_t begin, end;  // the first step, and the one after the last
  std::int64_t times;
  std::uint8_t level;  // more than that of the loops inside
  friend bool operator==(const Loop&, const Loop&) = default;
};

// Steps in the order of their launches (loops.hpp).
struct StepList {
  std::vector<Step> steps;
  std::vector<Loop> loops;  // inner ones before those around them
};

// What an engine proposes: steps that are launched in order on one stream, so that each sees the
// results of those before it. The first step's kernel gives the candidate its name. There is at
// least one step.
struct Proposal : StepList {
  Proposal() : StepList{std::vector<Step>(1), {}} {}
  Proposal(Step only) : StepList{{std::move(only)}, {}} {}  // NOLINT(google-explicit-constructor)
  Proposal(std::vector<Step> all, std::size_t bytes)
      : Proposal(StepList{std::move(all), {}}, bytes) {}
  Proposal(StepList all, std::size_t bytes) : StepList(std::move(all)), workspace(bytes) {}

  Step& first() { return steps.front(); }
  const Step& first() const { return steps.front(); }

  // Bytes of device memory that steps use to pass results on; at most what the caller granted.
  std::size_t workspace = 0;
};

}  // namespace kiln
