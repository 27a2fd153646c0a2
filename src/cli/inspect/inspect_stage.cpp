#include "cli/inspect/inspect_stage.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <system_error>

#include "cli/files.hpp"
#include "cli/format.hpp"
#include "cli/inspect/disassemble.hpp"
#include "cli/inspect/inspect_candidates.hpp"
#include "cli/json_text.hpp"
#include "cli/usage_error.hpp"
#include "codegen/loops.hpp"
#include "codegen/source.hpp"
#include "compile/cubin.hpp"
#include "core/error.hpp"
#include "device/occupancy.hpp"
#include "plan/dump.hpp"
#include "plan/kernel_store.hpp"
#include "plan/kernel_text.hpp"
#include "plan/plan_line.hpp"
#include "plan/tuning.hpp"

namespace kiln::cli {
namespace {

using nlohmann::ordered_json;

const Step& step_of(const Proposal& proposal, std::size_t number) {
  const auto launches = static_cast<std::size_t>(launch_count(proposal));
  if (number >= launches)
    throw UsageError(cat("--step is ", number, "; expected 0 to ", launches - 1,
                         ", as the problem takes ", launches, " steps"));
  std::size_t launch = 0, found = 0;
  for_each_launch(proposal.steps.size(), proposal.loops, [&](std::size_t step, const Iterations&) {
    if (launch++ == number) found = step;
  });
  return proposal.steps[found];
}

ordered_json spec_of(const Problem& problem, const Grant& grant, const Choice& choice,
                     const Step& step, const DeviceDescription& device) {
  const KernelSpec& kernel = step.kernel;
  const LaunchShape& shape = step.launch.shape;
  const KernelText text = kernel_text(kernel, device.kind, device.arch);
  ordered_json spec{{"problem", plan_line(problem, device, grant)},
                    {"architecture", device.arch},
                    {"engine", kernel.engine},
                    {"tile", kernel.tile},
                    {"tuned", choice.tuned},
                    {"estimate_us", choice.seconds * 1e6},
                    {"kernel", kernel.entry},
                    {"file", kernel.file},
                    {"key", text.key.text()},
                    {"options", text.options},
                    {"grid", shape.grid},
                    {"block", shape.block},
                    {"cluster", shape.cluster},
                    {"shared_memory_bytes", kernel.shared_memory},
                    {"alignment_bytes", kernel.alignment},
                    {"steps", launch_count(choice.proposal)},
                    {"different_steps", choice.proposal.steps.size()},
                    {"workspace_bytes", choice.proposal.workspace},
                    {"constants", ordered_json::array()}};
  std::istringstream constants(print_constants(kernel));
  for (std::string line; std::getline(constants, line);) spec["constants"].push_back(line);
  return spec;
}

std::string print_spec(const ordered_json& spec, const ordered_json& candidates) {
  const auto text = [&](const char* name) { return spec[name].get<std::string>(); };
  const auto list = [&](const char* name, const char* separator) {
    std::string joined;
    for (const ordered_json& each : spec[name])
      joined += cat(joined.empty() ? "" : separator,
                    each.is_string() ? each.get<std::string>() : each.dump());
    return joined;
  };
  const int cluster = spec["cluster"];
  const std::int64_t steps = spec["steps"], different = spec["different_steps"];
  return cat(
      "problem        ", text("problem"), "\narchitecture   ", text("architecture"),
      "\nengine         ", text("engine"), "\ntile           ", text("tile"), "\nchosen         ",
      spec["tuned"].get<bool>() ? "as tuned: the fastest when it was measured"
                                : "by the cost model",
      "\namong          ", candidates_summary(candidates), "\nestimate       ",
      significant(spec["estimate_us"], 3), " us\nkernel         ", text("kernel"), " of ",
      text("file"), "\nkey            ", text("key"), "\noptions        ", list("options", " "),
      "\ngrid           ", list("grid", " x "), " blocks of ", list("block", " x "), " threads",
      cluster > 1 ? cat(", clusters of ", cluster) : "", "\nshared memory  ",
      spec["shared_memory_bytes"].get<std::uint32_t>(), " bytes a block\nalignment      ",
      spec["alignment_bytes"].get<std::size_t>(), " bytes\nsteps          ", steps,
      different < steps ? cat(", of which ", different, " differ in more than addresses") : "",
      "\nworkspace      ", spec["workspace_bytes"].get<std::size_t>(), " bytes\n\n",
      list("constants", "\n"), "\n");
}

// How much of a kernel's local memory is spilled registers. Local memory has arrays too, and only
// the assembler's report tells the two apart.
std::string spills(const KernelImage& image, int local_memory) {
  if (local_memory == 0) return "none";
  std::string why;
  const auto compiler = find_nvrtc(why);
  if (!compiler) return "unknown without NVRTC: " + why;
  std::vector<std::string> options = nvrtc_options(image.arch, image.spec.quick_assembly);
  options.emplace_back("--ptxas-options=-v");
  const std::string log =
      compiler->compile(image.source, source_name(image.spec, image.arch, image.key), options).log;
  const std::regex report("([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads");
  std::smatch found;
  if (!std::regex_search(log, found, report)) return "unknown: the assembler did not say";
  return found[1] == "0" && found[2] == "0"
             ? "none"
             : cat(found[1].str(), " bytes stored, ", found[2].str(), " bytes loaded");
}

ordered_json resources_json(const Step& step, const KernelImage& image,
                            const DeviceDescription& device) {
  const KernelResources used = resources_of(image.binary, step.kernel.entry);
  const auto& block = step.launch.shape.block;
  const int threads = static_cast<int>(block[0] * block[1] * block[2]);
  const int dynamic = static_cast<int>(step.kernel.shared_memory);
  const Occupancy occupancy =
      occupancy_of({threads, used.registers, used.shared_memory + dynamic}, device);
  return {{"registers", used.registers},
          {"local_memory_bytes", used.local_memory},
          {"spills", spills(image, used.local_memory)},
          {"static_shared_memory_bytes", used.shared_memory},
          {"dynamic_shared_memory_bytes", dynamic},
          {"code_bytes", used.code_bytes},
          {"threads", threads},
          {"blocks_per_multiprocessor", occupancy.blocks},
          {"warps_per_multiprocessor", occupancy.warps},
          {"most_warps_per_multiprocessor", occupancy.most_warps},
          {"limited_by", occupancy.limit}};
}

std::string print_resources(const Step& step, const ordered_json& resources,
                            const DeviceDescription& device) {
  const auto number = [&](const char* name) { return resources[name].get<std::int64_t>(); };
  const std::int64_t warps = number("warps_per_multiprocessor"),
                     most = number("most_warps_per_multiprocessor");
  return cat(
      "architecture   ", device.arch, " (", device.name, ")\nkernel         ", step.kernel.entry,
      step.kernel.entry == step.kernel.engine ? "" : cat(" by ", step.kernel.engine), ", tile ",
      step.kernel.tile, "\nregisters      ", number("registers"), " a thread\nlocal memory   ",
      number("local_memory_bytes"), " bytes a thread\nspills         ",
      resources["spills"].get<std::string>(), "\nshared memory  ",
      number("static_shared_memory_bytes"), " bytes static, ",
      number("dynamic_shared_memory_bytes"), " dynamic a block\ncode           ",
      number("code_bytes"), " bytes\nthreads        ", number("threads"),
      " a block\noccupancy      ", number("blocks_per_multiprocessor"), " blocks, ", warps, " of ",
      most, " warps (", fixed(100.0 * static_cast<double>(warps) / static_cast<double>(most), 0),
      "%) a multiprocessor; more are ruled out by ", resources["limited_by"].get<std::string>(),
      "\n");
}

}  // namespace

const std::vector<std::string> stage_names{"spec",  "candidates", "source",   "ptx",
                                           "cubin", "sass",       "resources"};

std::string stage_text(const std::string& stage, const Problem& problem,
                       const DeviceDescription& device, const Grant& grant, std::size_t number,
                       bool as_json) {
  std::vector<EngineRefusal> refusals;
  const Choice choice = choose_tuned(problem, device, grant, refusals);
  const Step& step = step_of(choice.proposal, number);
  if (device.kind == KILN_DEVICE_HOST &&
      (stage == "ptx" || stage == "sass" || stage == "resources")) {
    throw UsageError(
        cat("the host device has no ", stage,
            "; expected --emit spec, candidates, source or cubin (its shared object)"));
  }
  ordered_json json;
  if (as_json || stage == "spec" || stage == "candidates") {
    json = spec_of(problem, grant, choice, step, device);
    const ordered_json candidates = candidates_of(problem, device, grant.workspace, choice);
    if (!as_json)
      return stage == "spec"
                 ? print_spec(json, candidates)
                 : cat("problem        ", json["problem"].get<std::string>(), "\narchitecture   ",
                       device.arch, "\n\n", candidates_text(candidates));
    json.update(candidates);
    if (stage == "spec" || stage == "candidates") return json_line(json);
  }
  const auto answer = [&](std::string text) {
    if (!as_json) return text;
    json[stage] = std::move(text);
    return json_line(json);
  };
  if (stage == "source") return answer(generate_source(step.kernel, device.kind));
  const auto image = make_image(step.kernel, device.kind, device.arch, Caching::use, [&] {
                       return plan_line(problem, device, grant);
                     }).image;
  if (stage == "ptx") return answer(image->ptx);
  if (stage == "sass") return answer(disassemble(image->binary));
  if (stage == "resources") {
    const ordered_json resources = resources_json(step, *image, device);
    if (!as_json) return print_resources(step, resources, device);
    json[stage] = resources;
    return json_line(json);
  }
  return {reinterpret_cast<const char*>(image->binary.data()), image->binary.size()};
}

std::string write_sources(const std::string& folder, const Problem& problem,
                          const DeviceDescription& device, const Grant& grant) {
  std::vector<EngineRefusal> refusals;
  const Proposal proposal = choose_tuned(problem, device, grant, refusals).proposal;
  std::vector<SourceFile> sources;
  for (const Step& step : proposal.steps)
    for (SourceFile& more : source_files(step.kernel, device.kind))
      if (std::none_of(sources.begin(), sources.end(),
                       [&](const SourceFile& each) { return each.path == more.path; }))
        sources.push_back(std::move(more));
  std::string report;
  for (const SourceFile& source : sources) {
    const std::filesystem::path path = std::filesystem::path(folder) / source.path;
    std::error_code error;
    const bool kept = std::filesystem::exists(path, error);
    if (!kept) {
      std::filesystem::create_directories(path.parent_path(), error);
      if (const std::string why = write_file(path.string(), source.text); !why.empty())
        fail(KILN_STATUS_EXECUTION_FAILED, "cannot write ", path.string(), ": ", why);
    }
    report += cat(kept ? "kept     " : "written  ", path.string(), "\n");
  }
  return report;
}

std::string comparable(const std::string& stage, const std::string& text) {
  static const std::regex address(R"(/\*[0-9a-f]{4,}\*/)");
  return stage == "sass" ? std::regex_replace(text, address, "") : text;
}

}  // namespace kiln::cli
