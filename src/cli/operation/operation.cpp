#include "cli/operation/operation.hpp"

#include <charconv>
#include <sstream>

#include "cli/operation/operations.hpp"
#include "cli/options.hpp"
#include "core/error.hpp"

namespace kiln::cli {
namespace {

std::string element_of(const std::string& list, const char* option, std::size_t i,
                       std::size_t count) {
  std::vector<std::string> values;
  std::istringstream stream(list);
  for (std::string value; std::getline(stream, value, ':');) values.push_back(value);
  if (values.size() != 1 && values.size() != count)
    fail(KILN_STATUS_BAD_PARAM, option, " is ", list, "; expected one value, or ", count,
         " separated by ':'");
  return values.size() == 1 ? values[0] : values[i];
}

}  // namespace

std::vector<std::unique_ptr<Operation>> operations() {
  std::vector<std::unique_ptr<Operation>> all;
  all.push_back(make_conv_operation());
  all.push_back(make_local_operation());
  all.push_back(make_matmul_operation());
  all.push_back(make_pool_operation());
  all.push_back(make_act_operation());
  all.push_back(make_softmax_operation());
  all.push_back(make_norm_operation());
  all.push_back(make_tensor_operation());
  return all;
}

std::string operation_names() {
  std::vector<std::string> names;
  for (const std::unique_ptr<Operation>& operation : operations())
    names.emplace_back(operation->command());
  return alternatives(names);
}

DataType type_of(const std::string& list, std::size_t i, std::size_t count) {
  const std::string name = element_of(list, "--dt", i, count);
  DataType type{};
  if (!parse_name(name, type))
    fail(KILN_STATUS_BAD_PARAM, "--dt is ", list, "; expected f32, f64, f16 or bf16");
  return type;
}

kilnTensorFormat_t layout_of(const std::string& list, std::size_t i, std::size_t count) {
  const std::string name = element_of(list, "--layout", i, count);
  kilnTensorFormat_t layout{};
  if (!parse_name(name, layout))
    fail(KILN_STATUS_BAD_PARAM, "--layout is ", list, "; expected nchw or nhwc");
  return layout;
}

void parse_numbers(const std::string& option, const std::string& text,
                   std::span<std::int64_t> out) {
  const auto wrong = [&](const std::string& found) {
    fail(KILN_STATUS_BAD_PARAM, option, " is ", text, " (", found, "); expected ", out.size(),
         " whole numbers separated by ':', outermost dimension first");
  };
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i > 0) {
      if (at == end || *at != ':') wrong(cat("only ", i, " at character ", at - text.data() + 1));
      ++at;
    }
    const auto [stop, error] = std::from_chars(at, end, out[i]);
    if (error != std::errc()) wrong(cat("no number at character ", at - text.data() + 1));
    at = stop;
  }
  if (at != end) wrong(cat("more at character ", at - text.data() + 1));
}

void set_strides(Tensor& tensor, const std::string& option, const std::string& text) {
  if (text.empty()) return;
  parse_numbers(option, text,
                std::span(tensor.strides).first(static_cast<std::size_t>(tensor.rank)));
}

void add_type_and_layout(Command app, Operation& operation, Lists lists) {
  const bool types = lists == Lists::of_both || lists == Lists::of_types;
  const bool layouts = lists == Lists::of_both || lists == Lists::of_layouts;
  const CommandOption type = app.add_option(
      "--dt", operation.type,
      lists == Lists::of_types
          ? "Data type f32, f64, f16 or bf16 of all operands, or one each for x, w and y: the "
            "result of f16 or bf16 may be f32, as in f16:f16:f32"
      : types ? "Data type f32, f64, f16 or bf16 of all operands; of --op copy also one each for x "
                "and y, as in f32:f16"
              : "Data type of all operands");
  const CommandOption layout =
      app.add_option("--layout", operation.layout,
                     layouts ? "Layout nchw or nhwc: of all operands, or one each, as in nchw:nhwc"
                             : "Layout of all operands");
  types ? type.each_of(type_names) : type.one_of(type_names);
  layouts ? layout.each_of(layout_names) : layout.one_of(layout_names);
  type.show_default();
  layout.show_default();
}

void ActivationOptions::add_to(Command app, const std::string& help) {
  app.add_option("--act", mode, help).one_of(names_of<kilnActivationMode_t>()).show_default();
  app.add_option(
      "--coef", coefficient,
      "Ceiling of clipped_relu (6 if left out), slope of leaky_relu (0.01), alpha of elu "
      "(1), factor of pow and linear (1) and of hard_sigmoid (0.2), lower bound of clip "
      "(-infinity)");
  app.add_option("--coef2", coefficient2,
                 "Exponent of pow (2 if left out), offset of linear (0) and of hard_sigmoid (0.5), "
                 "upper bound of clip (infinity)");
}

void add_math(Command app, std::string& mode) {
  app.add_option("--math", mode,
                 "default: tensor cores where their error is no worse than f32's; strict: fused "
                 "multiply-adds alone; tf32: f32 cut to 11 bits")
      .one_of(names_of<kilnMathMode_t>())
      .show_default();
}

void EpilogueOptions::add_to(Command app, const std::string& of_bias, const std::string& z,
                             const std::string& passes) {
  app.add_flag("--bias", bias, "Add a bias" + of_bias + passes);
  app.add_option("--bias-stride", bias_stride,
                 "Elements from one element of the bias to the next; 0: one for all")
      .not_negative()
      .show_default();
  app.add_flag("--residual", residual, "beta scales a " + z + " z of its own" + passes);
  app.add_flag("--residual-last", residual_last,
               "The term that beta scales is added after the activation" + passes);
  activation.add_to(app, "Activation of the sum" + passes);
}

EpilogueList EpilogueOptions::make(const Tensor& z, const Tensor& bias_tensor,
                                   bool activates) const {
  using Kind = EpilogueOperation::Kind;
  EpilogueList list;
  const bool active = activates && activation.mode != "identity";
  if (bias) list.push_back({.kind = Kind::bias, .tensor = bias_tensor});
  if (active) list.push_back({.kind = Kind::activation, .activation = activation.make()});
  if (residual || residual_last) {
    EpilogueOperation added{.kind = Kind::residual};
    if (residual) added.tensor = z;
    const bool first = !residual_last && active;
    list.insert(first ? list.end() - 1 : list.end(), std::move(added));
  }
  return list;
}

Activation ActivationOptions::make() const {
  Activation out;
  if (!parse_name(mode, out.mode))
    fail(KILN_STATUS_BAD_PARAM, "--act is ", mode, "; expected ",
         alternatives(names_of<kilnActivationMode_t>()));
  const Activation usual = default_activation(out.mode);
  out.coefficient = coefficient.value_or(usual.coefficient);
  out.coefficient2 = coefficient2.value_or(usual.coefficient2);
  return out;
}

StrideOptions::StrideOptions(const std::vector<std::string>& names) {
  for (const std::string& name : names) texts.emplace_back(name, "");
}

void StrideOptions::add_to(Command app) {
  for (auto& [name, text] : texts)
    app.add_option("--" + name + "-strides", text,
                   "Strides in elements instead of the layout's, outermost first")
        .type_name("A:B:...");
}

void StrideOptions::apply(Tensor& tensor, const std::string& name) const {
  for (const auto& [own, text] : texts)
    if (own == name) set_strides(tensor, "--" + name + "-strides", text);
}

}  // namespace kiln::cli
