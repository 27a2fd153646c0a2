// Operations on the command line: the flags of each command, and the problem that flags and a
// problem line describe.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "problem/problem.hpp"

namespace kiln::cli {

inline const std::vector<std::string> type_names = names_of<DataType>();
inline const std::vector<std::string> layout_names = names_of<kilnTensorFormat_t>();

class Command;  // cli/options.hpp

class Operation {
 public:
  virtual ~Operation() = default;
  virtual std::unique_ptr<Operation> clone() const = 0;

  virtual const char* command() const = 0;
  virtual const char* summary() const = 0;
  virtual const char* line_help() const = 0;  // the text of --help about problem lines
  virtual void add_flags(Command app) = 0;    // bound to this object, which must outlive it
  virtual Problem make(const std::string& line) const = 0;              // throws BAD_PARAM
  virtual std::string name_in(const std::string&) const { return ""; }  // n"..." in a line

  std::string type = "f32", layout = "nchw";
};

// One object of each operation, with its flags at their defaults: conv, local, matmul, pool, act,
// softmax, norm, tensor.
std::vector<std::unique_ptr<Operation>> operations();

// Their commands, for a message: "conv, local, ... or tensor".
std::string operation_names();

// ---- what the operations share ------------------------------------------------------------------

// The type or layout of the i-th of `count` operands, from a list such as "f32:f16" or from one
// value for all. Throw BAD_PARAM.
DataType type_of(const std::string& list, std::size_t i, std::size_t count);
kilnTensorFormat_t layout_of(const std::string& list, std::size_t i, std::size_t count);

// Reads as many numbers as `out` has from a text such as "1:2:3". Throws BAD_PARAM.
void parse_numbers(const std::string& option, const std::string& text, std::span<std::int64_t> out);

// Replaces the strides of `tensor` by those of an option's text, unless that is empty.
void set_strides(Tensor& tensor, const std::string& option, const std::string& text);

// Adds --dt and --layout. Operations whose operands may differ take lists of them.
enum class Lists { none, of_layouts, of_types, of_both };
void add_type_and_layout(Command app, Operation& operation, Lists lists);

// The flags --act, --coef and --coef2.
struct ActivationOptions {
  std::string mode;  // its initial value is the default
  std::optional<double> coefficient{}, coefficient2{};
  void add_to(Command app, const std::string& help);
  Activation make() const;  // throws BAD_PARAM
};

// The flag --math, in MODE.
void add_math(Command app, std::string& mode);

// What is done to a result: the flags --bias, --bias-stride, --residual, --residual-last, --act,
// --coef and --coef2.
struct EpilogueOptions {
  bool bias = false, residual = false, residual_last = false;
  std::int64_t bias_stride = 1;
  ActivationOptions activation{"identity"};
  // of_bias, z, passes: words of the help.
  void add_to(Command app, const std::string& of_bias, const std::string& z,
              const std::string& passes);
  // activates: whether the activation is one of the list's. Throws BAD_PARAM.
  EpilogueList make(const Tensor& z, const Tensor& bias_tensor, bool activates = true) const;
};

// The flags --NAME-strides, one for each name.
struct StrideOptions {
  std::vector<std::pair<std::string, std::string>> texts;  // name, "a:b:c"
  explicit StrideOptions(const std::vector<std::string>& names);
  void add_to(Command app);
  void apply(Tensor& tensor, const std::string& name) const;
};

}  // namespace kiln::cli
