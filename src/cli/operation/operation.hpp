// Operations on the command line: what each command's flags are, and the problem that they and a
// problem line make.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "problem/problem.hpp"

namespace kiln::cli {

inline const std::vector<std::string> type_names = names_of<DataType>();
inline const std::vector<std::string> layout_names = names_of<kilnTensorFormat_t>();

class Operation {
 public:
  virtual ~Operation() = default;
  virtual std::unique_ptr<Operation> clone() const = 0;

  virtual const char* command() const = 0;
  virtual const char* summary() const = 0;
  virtual const char* line_help() const = 0;  // the text of --help about problem lines
  virtual void add_flags(CLI::App& app) = 0;  // bound to this object, which must outlive the app
  virtual Problem make(const std::string& line) const = 0;              // throws BAD_PARAM
  virtual std::string name_in(const std::string&) const { return ""; }  // n"..." of a line

  std::string type = "f32", layout = "nchw";
};

// One of each, with flags as they are when none is given: conv, local, pool, act,
// softmax, tensor.
std::vector<std::unique_ptr<Operation>> operations();

// A problem as a line of a file has it: flags of its own, which override those of `defaults`, then
// the problem line. Throws BAD_PARAM.
struct Parsed {
  Problem problem;
  std::string name;
};
Parsed parse_line(const Operation& defaults, const std::string& text);

// The operation whose command is the text's first word, which is taken off; else conv.
std::unique_ptr<Operation> take_operation(std::string& text);

// ---- what the operations share ------------------------------------------------------------------

// One of "f32:f16" for the i-th of `count` operands, or the one there is. Throws BAD_PARAM.
DataType type_of(const std::string& list, std::size_t i, std::size_t count);
kilnTensorFormat_t layout_of(const std::string& list, std::size_t i, std::size_t count);

// "1:2:3", as many numbers as `out` has. Throws BAD_PARAM.
void parse_numbers(const std::string& option, const std::string& text, std::span<std::int64_t> out);

// Replaces the strides of `tensor` by those of an option's text, unless that is empty.
void set_strides(Tensor& tensor, const std::string& option, const std::string& text);

// --dt and --layout, of which operations whose operands may differ take lists.
enum class Lists { none, of_layouts, of_types, of_both };
void add_type_and_layout(CLI::App& app, Operation& operation, Lists lists);

// --act and --coef.
struct ActivationOptions {
  std::string mode;  // before any is given
  std::optional<double> coefficient{}, coefficient2{};
  void add_to(CLI::App& app, const std::string& help);
  Activation make() const;  // throws BAD_PARAM
};

// --NAME-strides of each name.
struct StrideOptions {
  std::vector<std::pair<std::string, std::string>> texts;  // name, "a:b:c"
  explicit StrideOptions(const std::vector<std::string>& names);
  void add_to(CLI::App& app);
  void apply(Tensor& tensor, const std::string& name) const;
};

}  // namespace kiln::cli
