#include "torch/report.hpp"

#include <nlohmann/json.hpp>

#include "torch/plans/plan_table.hpp"

namespace kiln::torch {
namespace {

std::string sizes_text(const Extents& sizes, int rank) {
  std::string out;
  for (int i = 0; i < std::min(rank, max_rank); ++i)
    out += (i == 0 ? "" : "x") + std::to_string(sizes[i]);
  return out;
}

const char* text_of(PlanEntry::State state) {
  switch (state) {
    case PlanEntry::State::fresh: return "not made";
    case PlanEntry::State::compiling: return "compiling";
    case PlanEntry::State::standing_in: return "standing in";
    case PlanEntry::State::ready: return "ready";
    case PlanEntry::State::refused: return "refused";
  }
  return "";
}

// The time of the i-th way that was timed; null if there is none.
nlohmann::json time_of(const PlanEntry::Facts& facts, std::size_t i, double Cost::*which) {
  return facts.ways.size() <= i ? nlohmann::json(nullptr)
                                : nlohmann::json(facts.ways[i].cost.*which);
}

}  // namespace

std::string report() {
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& entry : all_entries()) {
    const PlanRequest& r = entry->request;
    const PlanEntry::Facts f = entry->facts();
    if (f.served + f.native == 0 && r.pass == Pass::add) continue;
    rows.push_back({
        {"pass", name_of(r.pass)},
        {"a", sizes_text(r.a.sizes, r.rank)},
        {"b", sizes_text(r.b.sizes, r.rank)},
        {"state", text_of(f.state)},
        {"served", f.served},
        {"stand_in", f.stood_in},
        {"native", f.native},
        {"why", f.why},
        {"problem", f.problem},
        {"device", r.device_kind == KILN_DEVICE_CUDA ? "cuda:" + std::to_string(r.device_index)
                                                     : std::string("cpu")},
        {"engine", f.engine},
        {"tile", f.tile},
        {"architecture", f.architecture},
        {"origin", f.origin},
        {"finalize_ms", f.finalize_ms},
        {"compile_ms", f.compile_ms},
        {"kiln_us", time_of(f, 0, &Cost::device_us)},
        {"native_us", time_of(f, 1, &Cost::device_us)},
        {"kiln_host_us", time_of(f, 0, &Cost::host_us)},
        {"native_host_us", time_of(f, 1, &Cost::host_us)},
    });
  }
  return rows.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace kiln::torch
