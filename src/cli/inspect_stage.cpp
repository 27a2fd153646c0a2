#include "cli/inspect_stage.hpp"

#include <filesystem>
#include <fstream>
#include <regex>
#include <system_error>

#include "cli/commands.hpp"
#include "cli/disassemble.hpp"
#include "cli/format.hpp"
#include "codegen/source.hpp"
#include "compile/cubin.hpp"
#include "core/error.hpp"
#include "device/occupancy.hpp"
#include "plan/dump.hpp"
#include "plan/kernel_store.hpp"
#include "plan/kernel_text.hpp"
#include "plan/tuning.hpp"

namespace kiln::cli {
namespace {

std::string print_spec(const Problem& problem, const Choice& choice,
                       const DeviceDescription& device) {
  const KernelSpec& kernel = choice.proposal.kernel;
  const LaunchShape& shape = choice.proposal.launch.shape;
  const KernelText text = kernel_text(kernel, device.kind, device.arch);
  return cat("problem        ", kiln::text_of(problem), "\narchitecture   ", device.arch,
             "\nengine         ", kernel.engine, "\ntile           ", kernel.tile,
             "\nchosen         ",
             choice.tuned ? "as tuned: the fastest when it was measured" : "by the cost model",
             "\nestimate       ", significant(choice.seconds * 1e6, 3), " us\nkernel         ",
             kernel.entry, " of ", kernel.file, "\nkey            ", text.key.text(),
             "\noptions        ", join(text.options, " "), "\ngrid           ",
             join(shape.grid, " x "), " blocks of ", join(shape.block, " x "), " threads",
             shape.cluster > 1 ? cat(", clusters of ", shape.cluster) : "", "\nshared memory  ",
             kernel.shared_memory, " bytes a block\nalignment      ", kernel.alignment,
             " bytes\n\n", print_constants(kernel));
}

// Not every byte of stack is a spilled register: of the two, only the assembler's own report tells.
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

std::string print_resources(const Proposal& proposal, const KernelImage& image,
                            const DeviceDescription& device) {
  const KernelResources used = resources_of(image.binary, proposal.kernel.entry);
  const auto& block = proposal.launch.shape.block;
  const int threads = static_cast<int>(block[0] * block[1] * block[2]);
  const int dynamic = static_cast<int>(proposal.kernel.shared_memory);
  const Occupancy occupancy =
      occupancy_of({threads, used.registers, used.shared_memory + dynamic}, device);
  return cat("architecture   ", device.arch, " (", device.name, ")\nkernel         ",
             proposal.kernel.entry, " by ", proposal.kernel.engine, ", tile ", proposal.kernel.tile,
             "\nregisters      ", used.registers, " a thread\nlocal memory   ", used.local_memory,
             " bytes a thread\nspills         ", spills(image, used.local_memory),
             "\nshared memory  ", used.shared_memory, " bytes static, ", dynamic,
             " dynamic a block\ncode           ", used.code_bytes, " bytes\nthreads        ",
             threads, " a block\noccupancy      ", occupancy.blocks, " blocks, ", occupancy.warps,
             " of ", occupancy.most_warps, " warps (",
             fixed(100.0 * occupancy.warps / occupancy.most_warps, 0),
             "%) a multiprocessor; more are ruled out by ", occupancy.limit, "\n");
}

}  // namespace

const std::vector<std::string> stage_names{"spec", "source", "ptx", "cubin", "sass", "resources"};

std::string stage_text(const std::string& stage, const Problem& problem,
                       const DeviceDescription& device, const std::string& engine) {
  std::vector<EngineRefusal> refusals;
  const Choice choice = choose_tuned(problem, device, engine, refusals);
  const Proposal& proposal = choice.proposal;
  if (stage == "spec") return print_spec(problem, choice, device);
  if (stage == "source") return generate_source(proposal.kernel, device.kind);
  if (device.kind == KILN_DEVICE_HOST && stage != "cubin") {
    throw UsageError(cat("the host device has no ", stage,
                         "; expected --emit spec, source or cubin (its shared object)"));
  }
  const auto image = make_image(proposal.kernel, device.kind, device.arch).image;
  if (stage == "ptx") return image->ptx;
  if (stage == "sass") return disassemble(image->binary);
  if (stage == "resources") return print_resources(proposal, *image, device);
  return {reinterpret_cast<const char*>(image->binary.data()), image->binary.size()};
}

std::string write_sources(const std::string& folder, const Problem& problem,
                          const DeviceDescription& device, const std::string& engine) {
  std::vector<EngineRefusal> refusals;
  const KernelSpec spec = choose_tuned(problem, device, engine, refusals).proposal.kernel;
  std::string report;
  for (const SourceFile& source : source_files(spec, device.kind)) {
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
