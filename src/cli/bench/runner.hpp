// Measures cases: Kiln, its peers and the chip's ceilings. Makes rows of the results.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/bench/ceilings.hpp"
#include "cli/bench/peer.hpp"
#include "cli/bench/row.hpp"

namespace kiln::cli::bench {

class Runner {
 public:
  Runner(std::shared_ptr<Device> device, MeasurementSettings settings, std::uint64_t seed,
         bool check);

  void add(std::unique_ptr<Peer> peer) { peers_.push_back(std::move(peer)); }

  // The rows of a case, Kiln's first. A contestant that fails has a row with a note.
  std::vector<Row> run(const Case& item);
  std::vector<Row> ceilings();

 private:
  // Kiln with `workspace` bytes granted; none if its plan then needs no workspace.
  std::optional<Contestant> kiln(const Case& item, std::size_t workspace) const;
  std::vector<Row> latency(const Case& item);
  std::vector<Row> device_time(const Case& item);
  void compare(const Contestant& contestant, Operands& operands, Row& row) const;

  std::shared_ptr<Device> device_;
  MeasurementSettings settings_;
  bool check_;
  RandomPool pool_;
  Ceilings ceilings_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

// A row with all fields that do not depend on the contestant.
Row row_of(const Case& item);

}  // namespace kiln::cli::bench
