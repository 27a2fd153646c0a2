#include "device/host/transactions.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace kiln::host {

std::uint64_t Transactions::Barrier::landing() const {
  std::uint64_t bytes = 0;
  for (const Load& load : loads) bytes += load.box.size();
  return bytes;
}

void Transactions::Barrier::end_phase() {
  for (const Load& load : loads) std::memcpy(load.shared, load.box.data(), load.box.size());
  loads.clear();
  announced = 0;
  left = arrivals;
  ++phase;
}

Transactions::Barrier& Transactions::find(const void* at) {
  const auto found = std::ranges::find(barriers_, at, &Barrier::at);
  if (found == barriers_.end())
    fail(KILN_STATUS_EXECUTION_FAILED, "an mbarrier is used before its init()");
  return *found;
}

void Transactions::init(void* at, std::uint32_t arrivals) {
  if (arrivals == 0)
    fail(KILN_STATUS_EXECUTION_FAILED, "an mbarrier of 0 arrivals; expected at least 1");
  if (std::ranges::count(barriers_, at, &Barrier::at) > 0)
    fail(KILN_STATUS_EXECUTION_FAILED, "an mbarrier is made a second time");
  barriers_.push_back({at, arrivals, arrivals});
}

void Transactions::arrive(void* at, std::uint32_t announced_bytes) {
  Barrier& barrier = find(at);
  if (barrier.left == 0)
    fail(KILN_STATUS_EXECUTION_FAILED, "an arrival at an mbarrier whose phase has all its ",
         barrier.arrivals, ", and waits for bytes: it is used again before it was waited for");
  barrier.announced += announced_bytes;
  if (--barrier.left == 0 && barrier.announced == 0 && barrier.loads.empty()) barrier.end_phase();
}

void Transactions::load(void* at, void* shared, std::vector<std::byte> box) {
  std::memset(shared, 0xff, box.size());
  find(at).loads.push_back({shared, std::move(box)});
}

bool Transactions::wait(void* at, std::uint32_t parity) {
  Barrier& barrier = find(at);
  if (barrier.phase % 2 != parity % 2) return true;
  if (barrier.left > 0) return false;
  const std::uint64_t landing = barrier.landing();
  if (landing > barrier.announced)
    fail(KILN_STATUS_EXECUTION_FAILED, "copies of ", landing,
         " bytes come to an mbarrier that was told of ", barrier.announced);
  if (landing < barrier.announced) return false;
  barrier.end_phase();
  return true;
}

std::string Transactions::missing() const {
  for (const Barrier& barrier : barriers_)
    if (barrier.left == 0 && barrier.landing() < barrier.announced)
      return cat("; an mbarrier was told of ", barrier.announced, " bytes, and copies have ",
                 barrier.landing());
  return "";
}

void Transactions::end() const {
  for (const Barrier& barrier : barriers_)
    if (!barrier.loads.empty())
      fail(KILN_STATUS_EXECUTION_FAILED, "the block ends while bulk copies of ", barrier.landing(),
           " bytes are on their way to it");
}

}  // namespace kiln::host
