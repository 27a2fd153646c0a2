// What the choice of kernels costs the host, and what is chosen: a row for each problem of a
// manifest. Figures, not a test; two versions choose alike if all columns but the times are equal.
//
//   choice_time MANIFEST ARCHITECTURE > choices.csv
//
// Times are microseconds of CPU: of choosing, of writing the text of all kernels, and of choosing
// the stand-in. `digest` covers that text, and how each kernel is launched.
#include <time.h>

#include <cstdio>
#include <string>

#include "cache/hash.hpp"
#include "cli/cache/manifest.hpp"
#include "cli/device/device_options.hpp"
#include "codegen/loops.hpp"
#include "codegen/source.hpp"
#include "core/error.hpp"
#include "engines/choice.hpp"
#include "engines/stand_in/stand_in.hpp"

namespace {

using namespace kiln;

double cpu_microseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

template <class Value>
void append_bytes(std::string& text, const Value& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string written(const Step& step, kilnDeviceKind_t kind) {
  std::string text = generate_source(step.kernel, kind);
  append_bytes(text, step.launch.shape);
  for (const std::byte byte : step.launch.parameters) text += static_cast<char>(byte);
  return text;
}

void print_row(const cli::ManifestEntry& entry, const DeviceDescription& device) {
  const double start = cpu_microseconds();
  std::vector<EngineRefusal> refusals;
  const Choice choice = choose(entry.problem, device, entry.grant, refusals, nullptr);
  const double chosen = cpu_microseconds();
  const Proposal& proposal = choice.proposal;
  std::string text;
  for (const Step& step : proposal.steps) text += written(step, device.kind);
  const double text_end = cpu_microseconds();
  const std::optional<StandIn> other = stand_in(entry.problem, device, entry.grant);
  const double end = cpu_microseconds();
  const auto name = [](const Proposal& made) {
    return describe(name_of(made.first().kernel, made.first().launch));
  };
  std::printf("%.0f,%.0f,%.0f,\"%s%s %s\",\"%s\",%zu,%.9g,%zu,%s,\"%s\"\n", chosen - start,
              text_end - chosen, end - text_end, flags_of(entry.grant).c_str(),
              command_of(entry.problem), line_of(entry.problem).c_str(), name(proposal).c_str(),
              static_cast<std::size_t>(launch_count(proposal)), choice.seconds * 1e6,
              proposal.workspace, cache::hash64_hex(std::as_bytes(std::span(text))).c_str(),
              other ? name(other->choice.proposal).c_str() : "");
}

int run(const std::string& file, const std::string& arch) {
  const DeviceDescription device = cli::architecture_of(arch);
  const cli::Manifest manifest = cli::read_manifest(file, {});
  for (const std::string& flaw : manifest.flaws) std::fprintf(stderr, "%s\n", flaw.c_str());
  std::printf(
      "choice_us,text_us,stand_in_us,problem,kernel,steps,estimated_us,workspace,digest,stand_"
      "in\n");
  for (const cli::ManifestEntry& entry : manifest.entries) try {
      print_row(entry, device);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s: %s\n", entry.place.c_str(), error.what());
    }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: choice_time MANIFEST ARCHITECTURE\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "choice_time: %s\n", error.what());
    return 1;
  }
}
