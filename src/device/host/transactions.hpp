// The mbarriers of one thread block on the host device, which count arrivals and bytes, and the
// loads that complete on them (kernel_sources/cuda/mbarrier.cuh, bulk_copy.cuh).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::host {

// Loads land only when a thread waits for their phase; until then their destinations hold bytes of
// 0xff, so that early reads are noticed. Defects of the kernel are thrown as EXECUTION_FAILED.
class Transactions {
 public:
  // A new block begins.
  void begin() { barriers_.clear(); }
  // All threads of the block have exited: no load may be in flight.
  void end() const;

  void init(void* at, std::uint32_t arrivals);
  void arrive(void* at, std::uint32_t announced_bytes);
  // Starts a load that will write `box` to `shared` and complete on the barrier `at`.
  void load(void* at, void* shared, std::vector<std::byte> box);

  // Whether the phase of this parity has ended. If all its arrivals and bytes have been counted,
  // its loads land, and it ends.
  bool wait(void* at, std::uint32_t parity);

  // A text about the barriers whose phase lacks bytes, for a report; "" if there are none.
  std::string missing() const;

 private:
  struct Load {
    void* shared;
    std::vector<std::byte> box;
  };
  struct Barrier {
    void* at;
    std::uint32_t arrivals;  // of every phase
    std::uint32_t left;      // arrivals that the current phase lacks
    std::uint32_t phase = 0;
    std::uint64_t announced = 0;  // bytes
    std::vector<Load> loads{};

    std::uint64_t landing() const;
    void end_phase();
  };

  Barrier& find(const void* at);

  std::vector<Barrier> barriers_;
};

}  // namespace kiln::host
