#include "engines/stand_in/stand_in_direct.hpp"

namespace kiln {
namespace {

Treatment treat(std::string_view name) {
  for (const char* const kept : {"element_t", "output_t", "compute_t", "index_t", "PHASES",
                                 "RESIDUAL", "RESIDUAL_LAST", "ACTIVATION"})
    if (name == kept) return Treatment::keep;
  if (name == "BIAS_STRIDE") return Treatment::late;
  if (name.starts_with("PADDED_")) return Treatment::leave_out;
  const bool offset = name.find("_STRIDE") != name.npos || name.ends_with("_FIRST");
  return offset ? Treatment::wide : Treatment::late;
}

}  // namespace

Refusal StandInDirectEngine::refusal(const ConvolutionProblem& problem) const {
  return phase_refusal(problem);
}

bool StandInDirectEngine::generalize(Proposal& proposal, const DeviceDescription&) const {
  pad_phases(proposal.first().kernel);
  return make_late(proposal.first(), treat);
}

bool StandInWgradDirectEngine::generalize(Proposal& proposal, const DeviceDescription&) const {
  return make_late(proposal.first(), treat);
}

}  // namespace kiln
