// Barriers in shared memory that count arrivals and bytes, and the loads that land on them, of one
// thread block on the host device (kernel_sources/cuda/mbarrier.cuh, bulk_copy.cuh).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::host {

// Loads land only when a thread waits for their phase, and until then what they write is 0xff
// bytes. Defects of the kernel are thrown as EXECUTION_FAILED.
class Transactions {
 public:
  // A new block begins.
  void begin() { barriers_.clear(); }
  // All its threads have exited: nothing may be on its way.
  void end() const;

  void init(void* at, std::uint32_t arrivals);
  void arrive(void* at, std::uint32_t announced_bytes);
  // `box`: what lands at `shared`.
  void load(void* at, void* shared, std::vector<std::byte> box);

  // Whether the phase of that parity has ended. What it waits for lands, if all of it is there.
  bool wait(void* at, std::uint32_t parity);

  // Barriers whose phase lacks bytes, for a report; "" if there are none.
  std::string missing() const;

 private:
  struct Load {
    void* shared;
    std::vector<std::byte> box;
  };
  struct Barrier {
    void* at;
    std::uint32_t arrivals;  // of a phase
    std::uint32_t left;      // of the current one
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
