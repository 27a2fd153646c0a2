#include "proof/record.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "cache/hash.hpp"
#include "codegen/loops.hpp"
#include "codegen/source.hpp"
#include "core/error.hpp"
#include "engines/answers.hpp"
#include "engines/engine.hpp"
#include "engines/stand_in/stand_in.hpp"

namespace proof {
namespace {

using namespace kiln;

std::string digest(std::string_view text) {
  return cache::hash64_hex(std::as_bytes(std::span(text)));
}

// In so many digits that estimates which differ by the order of a sum look alike.
std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", seconds);
  return text;
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<unsigned>(byte) >> 4];
    text += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

std::string without_paths(const std::string& source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t at = 0; at < source.size();) {
    const std::size_t end = std::min(source.find('\n', at), source.size() - 1) + 1;
    if (source.compare(at, 8, "// ---- ") != 0) text.append(source, at, end - at);
    at = end;
  }
  return text;
}

std::string map_text(const LaunchSpec::Map& map) {
  const TensorMapSpec& spec = map.spec;
  return cat("map at ", map.offset, ": operand ", int{map.operand}, " from byte ", map.first,
             spec.mode == TensorMapSpec::Mode::im2col ? ", im2col" : ", tiled", ", ",
             name_of(spec.type), ", rank ", spec.rank, ", sizes ", join(spec.sizes, "x"),
             ", strides ", join(spec.strides, ":"), ", box ", join(spec.box, "x"), ", lower ",
             join(spec.lower, ":"), ", upper ", join(spec.upper, ":"), ", steps ",
             join(spec.steps, ":"), spec.swizzled ? ", swizzled" : "", "\n");
}

std::string launch_text(const KernelSpec& kernel, const LaunchSpec& launch) {
  std::string text =
      cat("grid ", join(launch.shape.grid, "x"), ", block ", join(launch.shape.block, "x"),
          ", cluster ", launch.shape.cluster, ", shared memory ", launch.shape.shared_memory,
          " (kernel ", kernel.shared_memory, "), late constants ", kernel.late_bytes,
          ", alignment ", kernel.alignment, kernel.clustered ? ", clustered" : "",
          launch.empty ? ", empty" : "", "\nparameters ", hexadecimal(launch.parameters), "\n");
  for (const LaunchSpec::Patch& patch : launch.patches)
    text += cat("patch at ", patch.offset, ": hole ", static_cast<int>(patch.hole), ", operand ",
                int{patch.operand}, "\n");
  for (const LaunchSpec::Map& map : launch.maps) text += map_text(map);
  return text;
}

std::string kernel_text(const KernelSpec& kernel, const DeviceDescription& device) {
  return cat("// entry ", kernel.entry, kernel.quick_assembly ? ", assembled quickly" : "", "\n",
             without_paths(generate_source(kernel, device.kind)));
}

// The texts of all launches, by those of the steps: a list with loops is the same as one without.
template <class Text>
std::string texts(const StepList& list, const Text& text_of_launch) {
  std::string text;
  for_each_launch(list.steps.size(), list.loops,
                  [&](std::size_t step, const Iterations& iterations) {
                    text += text_of_launch(step, iterations);
                  });
  return text;
}
std::string choice_text(const Proposal& proposal) {
  return texts(proposal, [&](std::size_t step, const Iterations&) {
    return describe(name_of(proposal.steps[step].kernel, proposal.steps[step].launch)) + "\n";
  });
}
std::string launches_text(const Proposal& proposal) {
  return texts(proposal, [&](std::size_t step, const Iterations& iterations) {
    return launch_text(proposal.steps[step].kernel,
                       launch_in(proposal.steps[step].launch, iterations));
  });
}
std::string kernels_text(const Proposal& proposal, const DeviceDescription& device) {
  std::vector<std::string> of_steps;
  for (const Step& step : proposal.steps) of_steps.push_back(kernel_text(step.kernel, device));
  return texts(proposal, [&](std::size_t step, const Iterations&) { return of_steps[step]; });
}

Record record_of(const Choice& choice, const DeviceDescription& device) {
  const Proposal& proposal = choice.proposal;
  return {{"choice", choice_text(proposal)},
          {"launch", launches_text(proposal)},
          {"workspace", cat(proposal.workspace), true},
          {"text", kernels_text(proposal, device)},
          {"estimate", seconds_text(choice.seconds), true}};
}

Record refused(std::string reason) { return {{"refused", std::move(reason)}}; }

// What `work` returns; or, as a refusal, what it throws.
template <class Work>
Record record_or_refusal(const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    return refused(cat(identifier_of(error.status()), ": ", error.what()));
  }
}

Record candidates_of(const Method& method, const Problem& problem, const DeviceDescription& device,
                     bool all_texts) {
  const Chooser chooser(device);
  auto asked = ask(method, problem, chooser);
  if (auto* refusal = std::get_if<Refusal>(&asked)) return refused(std::move(refusal->reason));
  auto& candidates = std::get<std::vector<Candidate>>(asked);
  std::size_t turn = 0;
  for (const char digit : digest(cat(device.arch, " ", text_of(problem))))
    turn = turn * 16 + static_cast<unsigned char>(digit);
  turn %= candidates.size();
  std::string answer, launch, text;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const int parts = candidates[i].parts;
    const std::size_t workspace = candidates[i].workspace;
    const std::string seconds = seconds_text(candidates[i].seconds);
    const Proposal proposal = make(method, problem, chooser, std::move(candidates[i]));
    answer += cat(proposal.first().kernel.tile, ", split count ", parts, ", ", seconds,
                  " s, workspace ", workspace, "\n");
    launch += launches_text(proposal);
    if (all_texts || i == turn) text += kernels_text(proposal, device);
  }
  if (const std::string why = method.only_by_name(problem); !why.empty())
    answer += cat("only by name: ", why, "\n");
  return {{"candidates", cat(candidates.size()), true},
          {"answer", std::move(answer)},
          {"launch", std::move(launch)},
          {"text", std::move(text)}};
}

}  // namespace

Record chosen(const Problem& problem, const DeviceDescription& device, std::size_t workspace) {
  return record_or_refusal([&] {
    std::vector<EngineRefusal> refusals;
    return record_of(choose(problem, device, {.workspace = workspace}, refusals, nullptr), device);
  });
}

Record stand_in_for(const Problem& problem, const DeviceDescription& device,
                    std::size_t workspace) {
  return record_or_refusal([&] {
    const std::optional<StandIn> found = stand_in(problem, device, {.workspace = workspace});
    if (!found) return refused("there is no stand-in");
    Record record = record_of(found->choice, device);
    record.push_back({"for every shape", found->for_every_shape ? "yes" : "no", true});
    return record;
  });
}

Record answer_of(const Method& method, const Problem& problem, const DeviceDescription& device,
                 bool all_texts) {
  return record_or_refusal([&] { return candidates_of(method, problem, device, all_texts); });
}

std::string digest_of(const Record& record) {
  std::string text;
  for (const Part& part : record)
    text +=
        cat(text.empty() ? "" : " ", part.name, " ", part.plain ? part.text : digest(part.text));
  return text;
}

std::string hash_of(const Record& record) { return digest(digest_of(record)); }

std::string text_of(const Record& record) {
  std::string text;
  for (const Part& part : record) text += cat("== ", part.name, "\n", part.text, "\n");
  return text;
}

}  // namespace proof
