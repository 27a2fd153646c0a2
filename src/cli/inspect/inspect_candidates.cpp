#include "cli/inspect/inspect_candidates.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/format.hpp"
#include "core/text.hpp"

namespace kiln::cli {

using nlohmann::ordered_json;

ordered_json candidates_of(const Problem& problem, const DeviceDescription& device,
                           std::size_t workspace, const Choice& choice) {
  const Winner chosen = name_of(choice.proposal.first().kernel, choice.proposal.first().launch);
  ordered_json json{{"candidates", ordered_json::array()}, {"refusals", ordered_json::array()}};
  for (const Option& option : all_candidates(problem, device, workspace))
    json["candidates"].push_back({{"engine", option.name.engine},
                                  {"tile", option.name.tile},
                                  {"parts", option.name.parts},
                                  {"estimate_us", option.choice.seconds * 1e6},
                                  {"chosen", option.name == chosen},
                                  {"only_by_name", option.only_by_name}});
  for (const EngineRefusal& answer : ask_engines(problem, device))
    if (!answer.reason.empty())
      json["refusals"].push_back({{"engine", answer.engine}, {"reason", answer.reason}});
  return json;
}

std::string candidates_text(const ordered_json& json) {
  std::string text = "candidates, the chosen one marked >\n  estimate, us\n";
  for (const ordered_json& each : json["candidates"]) {
    const int parts = each["parts"];
    text += cat(each["chosen"].get<bool>() ? "> " : "  ",
                padded(significant(each["estimate_us"], 3), 12), "  ", padded(each["engine"], 31),
                each["tile"].get<std::string>(), parts > 1 ? cat(", ", parts, " parts") : "",
                each["only_by_name"].get<bool>() ? ", only by name" : "", "\n");
  }
  text += json["refusals"].empty() ? "no engine refuses the problem\n" : "refused by\n";
  for (const ordered_json& each : json["refusals"])
    text += cat("  ", padded(each["engine"], 31), each["reason"].get<std::string>(), "\n");
  return text;
}

std::string candidates_summary(const ordered_json& json) {
  std::set<std::string> engines;
  for (const ordered_json& each : json["candidates"]) engines.insert(each["engine"]);
  const std::size_t count = json["candidates"].size(), refusals = json["refusals"].size();
  return cat(count, count == 1 ? " candidate of " : " candidates of ", engines.size(),
             engines.size() == 1 ? " engine; " : " engines; ", refusals,
             refusals == 1 ? " engine refuses" : " engines refuse", " (--emit candidates)");
}

}  // namespace kiln::cli
