// A new process that finds all its kernels made: how long each takes from problem to machine code,
// and from which layer it comes. Figures, not a test.
//
//   warm_start MANIFEST ARCHITECTURE [MOST]
//
// The part that counts lies between two calls of getpgid, for strace:
//   strace -f -o calls warm_start MANIFEST sm_90a 500
//   awk '/getpgid/ { on = !on; next } on { n[$2 ~ /^[a-z]/ ? substr($2, 1, index($2, "(")) : $2]++
//   }
//        END { for (c in n) print n[c], c }' calls
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "cli/cache/manifest.hpp"
#include "cli/device/device_options.hpp"
#include "codegen/source.hpp"
#include "core/error.hpp"
#include "engines/choice.hpp"
#include "plan/kernel_store.hpp"

namespace {

using namespace kiln;

// Problems whose kernels differ, up to `most` of them.
std::vector<Problem> problems_of(const std::string& file, const DeviceDescription& device,
                                 std::size_t most) {
  std::vector<Problem> problems;
  std::set<std::string> seen;
  for (const auto& entry : cli::read_manifest(file, {}).entries) {
    std::vector<EngineRefusal> refusals;
    const Proposal proposal = choose(entry.problem, device, {}, refusals);
    if (problems.size() < most &&
        seen.insert(generate_source(proposal.first().kernel, device.kind)).second)
      problems.push_back(entry.problem);
  }
  return problems;
}

int run(const std::string& file, const std::string& arch, std::size_t most) {
  const DeviceDescription device = cli::architecture_of(arch);
  const std::vector<Problem> problems = problems_of(file, device, most);
  kernel_cache();
  kernel_bundles();
  std::string ignored;
  find_nvrtc(ignored);  // a process does that once
  std::vector<double> times, lookups;
  std::map<std::string, int> origins;
  syscall(SYS_getpgid, 0);
  for (const Problem& problem : problems) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<EngineRefusal> refusals;
    const Proposal proposal = choose(problem, device, {}, refusals);
    const FoundImage found = make_image(proposal.first().kernel, device.kind, device.arch);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    times.push_back(time.count());
    lookups.push_back(found.times.lookup);
    ++origins[std::string(name_of(found.origin))];
  }
  syscall(SYS_getpgid, 0);
  double total = 0;
  for (const double time : times) total += time;
  std::sort(times.begin(), times.end());
  std::sort(lookups.begin(), lookups.end());
  const auto at = [](const std::vector<double>& sorted, double share) {
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
  };
  std::printf("%zu plans", problems.size());
  for (const auto& [origin, count] : origins) std::printf(", %d %s", count, origin.c_str());
  std::printf("\nall %.1f ms, each %.3f ms (p50 %.3f, p99 %.3f), of it the lookup p50 %.3f ms\n",
              total, total / static_cast<double>(times.size()), at(times, 0.5), at(times, 0.99),
              at(lookups, 0.5));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: warm_start MANIFEST ARCHITECTURE [MOST]\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2], argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 500);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "warm_start: %s\n", error.what());
    return 1;
  }
}
