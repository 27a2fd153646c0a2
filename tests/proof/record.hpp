// What the library decides for a problem, as text that two versions of it can be compared by.
#pragma once

#include <string>
#include <vector>

#include "engines/choice.hpp"

namespace proof {

// A part of what is decided. Parts change for different reasons, so each has a hash of its own.
struct Part {
  std::string name, text;
  bool plain = false;  // short: it stands in the output as it is, without a hash
};

// Of a choice: refused (one sentence, and no other part), or
//   choice     of each step: engine, tile and split count
//   launch     of each step: grid, block, cluster, shared memory, parameters, patches, tensor maps
//   workspace  bytes (plain)
//   text       of each step: what a compiler gets, without the lines "// ---- path"
//   estimate   seconds (plain), in six digits, because a sum may be taken in another order
using Record = std::vector<Part>;

// What choose() chooses.
Record chosen(const kiln::Problem& problem, const kiln::DeviceDescription& device,
              std::size_t workspace);
// What executes until that is compiled.
Record stand_in_for(const kiln::Problem& problem, const kiln::DeviceDescription& device,
                    std::size_t workspace);

// The answer of one engine or rewrite for a problem of its operation, whether it is ever chosen or
// not: refused, or
//   candidates  their number (plain)
//   answer      of each candidate, in its order: tile, split count, estimate, workspace
//   launch      of each candidate
//   text        of one candidate, which the problem's own text selects, so that among many problems
//               every tile has its turn; of all with `all_texts`
Record answer_of(const kiln::Method& method, const kiln::Problem& problem,
                 const kiln::DeviceDescription& device, bool all_texts);

// "choice 0123456789abcdef launch 0123456789abcdef workspace 0 ..."
std::string digest_of(const Record& record);
// One hash of all parts.
std::string hash_of(const Record& record);
// All parts in full, each under its name.
std::string text_of(const Record& record);

}  // namespace proof
