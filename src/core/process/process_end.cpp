#include "core/process/process_end.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

namespace kiln {
namespace {

using Work = void (*)();
constinit std::array<std::atomic<Work>, 2> works{};

void end() {
  for (std::atomic<Work>& work : works) {
    try {
      if (const Work now = work.exchange(nullptr)) now();
    } catch (...) {  // nothing can report a failure any more
    }
  }
}

}  // namespace

void at_process_end(AtEnd what, void (*work)()) {
  std::atomic<Work>& place = works.at(static_cast<std::size_t>(what));
  if (place == work) return;
  put_process_end_first();
  place = work;
}

void put_process_end_first() {
  if (std::atexit(end) != 0) throw std::bad_alloc();
}

}  // namespace kiln
