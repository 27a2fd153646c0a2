// kiln doctor: whether a program written for cuDNN runs on Kiln's library of that interface.
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/commands.hpp"
#include "cli/doctor/cudnn_functions.hpp"
#include "cli/doctor/cudnn_use.hpp"
#include "cli/format.hpp"
#include "cli/json_text.hpp"
#include "cli/options.hpp"
#include "cli/printable.hpp"
#include "core/text.hpp"

namespace kiln::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view served_library = "libcudnn.so.9";

struct Function {
  std::string name;
  std::string_view service, why;
  bool as_text;
};

std::string_view name_of(Service service) {
  switch (service) {
    case Service::served: return "served";
    case Service::forwarded: return "forwarded";
    case Service::refused: return "refused";
  }
  return "";
}

struct Report {
  std::vector<Function> functions;  // what is served first, by name within one kind
  std::vector<std::string> hindrances;
  std::size_t served = 0;

  bool all_served() const { return hindrances.empty() && served == functions.size(); }
};

Function function_of(const std::string& name, bool as_text) {
  const CudnnFunction* const known = cudnn_function(name);
  if (!known) return {name, "unknown", "no function of cuDNN's that Kiln knows", as_text};
  return {name, name_of(known->service), known->why, as_text};
}

Report report_on(const CudnnUse& use) {
  Report report;
  for (const std::string_view service : {"served", "forwarded", "refused", "unknown"})
    for (const bool as_text : {false, true})
      for (const std::string& name : as_text ? use.named : use.called)
        if (const Function function = function_of(name, as_text); function.service == service)
          report.functions.push_back(function);
  report.served = static_cast<std::size_t>(
      std::count_if(report.functions.begin(), report.functions.end(),
                    [](const Function& function) { return function.service == "served"; }));
  if (!use.carried.empty())
    report.hindrances.push_back(
        cat("it has ", use.carried.size(), " functions of cuDNN itself, as ", *use.carried.begin(),
            ": it is such a library, or linked with a static one, which none can replace; link the "
            "program with -lcudnn from Kiln's folder"));
  for (const std::string& library : use.libraries)
    if (library != served_library)
      report.hindrances.push_back(cat("it asks for ", library, ", and Kiln's library passes for ",
                                      served_library,
                                      " alone; build it anew with the headers in Kiln's folder"));
  return report;
}

ordered_json json_of(const std::string& path, const CudnnUse& use, const Report& report) {
  ordered_json functions = ordered_json::array();
  for (const Function& function : report.functions) {
    ordered_json each{{"name", function.name},
                      {"service", function.service},
                      {"found_as", function.as_text ? "text" : "symbol"}};
    if (!function.why.empty()) each["why"] = function.why;
    functions.push_back(std::move(each));
  }
  return {{"file", path},
          {"libraries", use.libraries},
          {"functions", functions},
          {"carried", use.carried},
          {"hindrances", report.hindrances},
          {"all_served", report.all_served()}};
}

std::string conclusion(const CudnnUse& use, const Report& report) {
  const std::size_t count = report.functions.size();
  if (count > 0) return cat(report.served, " of ", count, " functions are served");
  if (!report.hindrances.empty()) return "it calls no function of another library's cuDNN";
  if (use.linked_statically)
    return "it is linked statically and has no function of cuDNN, or no names left of them";
  return "it neither calls nor names a function of cuDNN; a library that it loads may";
}

std::string text_of(const std::string& path, const CudnnUse& use, const Report& report) {
  std::string text = cat(printable(path), "\n");
  std::size_t width = 0;
  for (const Function& function : report.functions)
    width = std::max(width, printable(function.name).size());
  for (const Function& function : report.functions) {
    // Functions that may be forwarded are refused unless KILN_CUDNN_FORWARD names a library.
    const bool may_be_forwarded = function.service == name_of(Service::forwarded);
    std::string line =
        cat("  ", padded(may_be_forwarded ? "refused" : std::string(function.service), 9), "  ",
            padded(printable(function.name), width));
    std::string_view before = "  ";
    const auto add = [&](std::string_view remark) {
      if (!remark.empty()) line += cat(std::exchange(before, "; "), remark);
    };
    if (function.as_text) add("named as text");
    if (may_be_forwarded) add("refused, unless KILN_CUDNN_FORWARD is set");
    add(function.why);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  for (const std::string& hindrance : report.hindrances)
    text += cat("  hindered   ", printable(hindrance), "\n");
  return cat(text, conclusion(use, report), "\n");
}

int run(const std::vector<std::string>& paths, bool as_json) {
  bool all_served = true;
  for (const std::string& path : paths) {
    const CudnnUse use = cudnn_use_of(path);
    const Report report = report_on(use);
    std::cout << (as_json ? json_line(json_of(path, use, report)) : text_of(path, use, report));
    all_served = all_served && report.all_served();
  }
  return all_served ? 0 : 1;
}

}  // namespace

void add_doctor_command(Command app, Run& run_command) {
  const Command command = app.add_command(
      "doctor",
      "Which functions of cuDNN a program calls, and whether Kiln's library of that interface "
      "serves them; exit status 1 if one is not served");
  auto paths = std::make_shared<std::vector<std::string>>();
  command
      .add_option("PROGRAM", *paths,
                  "Programs, shared libraries or object files of Linux, of 64 bits")
      .required();
  auto as_json = std::make_shared<bool>(false);
  command.add_flag("--json", *as_json, "One JSON object per line");
  command.when_parsed([=, &run_command] { run_command = [=] { return run(*paths, *as_json); }; });
}

}  // namespace kiln::cli
