#include "cli/bench/runner.hpp"

#include "core/error.hpp"
#include "engines/choice.hpp"
#include "plan/plan.hpp"

namespace kiln::cli::bench {
namespace {

// The contestant for each role's row: the fastest one, or the first one if all failed.
std::vector<std::pair<std::string, std::size_t>> places(const std::vector<Contestant>& contestants,
                                                        const std::vector<Measured>& measured) {
  std::vector<std::pair<std::string, std::size_t>> out;
  const auto better = [&](std::size_t a, std::size_t b) {
    if (measured[a].failure.empty() != measured[b].failure.empty())
      return measured[a].failure.empty();
    return measured[a].times.median < measured[b].times.median;
  };
  for (std::size_t i = 0; i < contestants.size(); ++i)
    for (const std::string& role : contestants[i].roles) {
      auto known = out.begin();
      while (known != out.end() && known->first != role) ++known;
      if (known == out.end())
        out.emplace_back(role, i);
      else if (better(i, known->second))
        known->second = i;
    }
  return out;
}

void set_measured(Row& row, const Contestant& contestant, const Measured& measured) {
  row.kernel = contestant.kernel;
  row.workspace = contestant.workspace;
  if (contestant.flops > 0 || contestant.bytes > 0) {
    row.bytes = contestant.bytes;
    // A product of the lowered matrices is the problem's arithmetic; a copy has none.
    if (contestant.flops > 0 || contestant.roles[0] == "copy") row.flops = contestant.flops;
  }
  row.note = measured.failure;
  if (measured.failure.empty()) row.times = measured.times;
}

}  // namespace

Row row_of(const Case& item) {
  Row row;
  row.suite = item.suite;
  row.layer = item.layer;
  row.operation = command_of(item.problem);
  row.direction = item.direction;
  row.type = name_of(type_of(item));
  row.layout = item.layout;
  row.math = item.math;
  row.batch = batch_of(item);
  const Work work = work_of(item.problem, item.scalars.beta != 0);
  row.flops = work.flops;
  row.bytes = work.bytes;
  row.problem = text_of(item.problem);
  return row;
}

Runner::Runner(std::shared_ptr<Device> device, MeasurementSettings settings, std::uint64_t seed,
               bool check)
    : device_(std::move(device)),
      settings_(settings),
      check_(check),
      pool_(*device_, seed),
      ceilings_(*device_, pool_) {}

std::vector<Row> Runner::run(const Case& item) {
  try {
    return item.latency ? latency(item) : device_time(item);
  } catch (const Error& error) {
    Row row = row_of(item);
    row.contestant = "kiln";
    row.note = error.what();
    return {row};
  } catch (const std::bad_alloc&) {
    Row row = row_of(item);
    row.contestant = "kiln";
    row.note = "not enough memory on this machine for the operands";
    return {row};
  }
}

std::optional<Contestant> Runner::kiln(const Case& item, std::size_t workspace) const {
  const std::string role = workspace > 0 ? "kiln workspace" : "kiln";
  const auto plan = std::make_shared<Plan>(device_, item.problem);
  FinalizeOptions options;
  options.grant.workspace = workspace;
  try {
    plan->finalize(options);
  } catch (const Error& error) {
    return refusal({role}, error.what());
  }
  const std::size_t bytes = plan->workspace_bytes();
  if (workspace > 0 && bytes == 0) return std::nullopt;
  const auto memory = bytes > 0 ? std::make_shared<DeviceBuffer>(*device_, bytes) : nullptr;
  Contestant contestant;
  contestant.roles = {role};
  contestant.kernel = describe(name_of(plan->spec(), plan->launch()));
  contestant.workspace = bytes;
  contestant.execute = [plan, memory, bytes, scalars = item.scalars](const BufferSet& set) {
    plan->execute(set.operands, scalars, nullptr, {},
                  {memory != nullptr ? memory->address() : nullptr, bytes});
  };
  return contestant;
}

std::vector<Row> Runner::device_time(const Case& item) {
  Operands operands(*device_, pool_, item);
  std::vector<Contestant> contestants{*kiln(item, 0)};
  if (item.suite == "memory")
    if (auto granted = kiln(item, most_workspace)) contestants.push_back(*std::move(granted));
  for (const std::unique_ptr<Peer>& peer : peers_) {
    try {
      for (Contestant& contestant : peer->contestants(item, operands, pool_))
        contestants.push_back(std::move(contestant));
    } catch (const Error& error) {
      contestants.push_back(refusal({peer->name()}, error.what()));
    }
  }
  try {
    if (std::optional<Contestant> ceiling = ceilings_.of(item))
      contestants.push_back(std::move(*ceiling));
  } catch (const Error& error) {
    contestants.push_back(refusal({"ceiling"}, error.what()));
  }
  const std::vector<Measured> measured = measure(
      *device_, contestants, [&] { return operands.next(); }, settings_);

  std::vector<Row> rows;
  for (const auto& [role, place] : places(contestants, measured)) {
    Row row = row_of(item);
    row.contestant = role;
    set_measured(row, contestants[place], measured[place]);
    if (check_ && row.times && contestants[place].solves)
      compare(contestants[place], operands, row);
    rows.push_back(std::move(row));
  }
  return rows;
}

void Runner::compare(const Contestant& contestant, Operands& operands, Row& row) const {
  try {
    contestant.execute(operands.fresh());
    device_->synchronize(nullptr);
    const Comparison comparison = operands.compare();
    row.relative_rms = comparison.relative_rms;
    row.max_error = comparison.max_error;
    // A peer's larger error is not a fault, because only Kiln promises its own bounds.
    if (row.contestant.starts_with("kiln")) row.note = comparison.complaint();
  } catch (const Error& error) {
    row.note = cat("not compared: ", error.what());
  }
}

std::vector<Row> Runner::ceilings() {
  std::vector<Row> rows;
  Row row;
  row.suite = "ceilings";
  row.layer = "this chip";
  std::vector<Contestant> contestants;
  try {
    contestants = ceilings_.alone();
  } catch (const Error& error) {
    row.note = error.what();
    row.contestant = "fma peak";
    return {row};
  }
  for (const Contestant& contestant : contestants) {
    const Measured measured = measure(
        *device_, std::span(&contestant, 1), [] { return BufferSet{}; }, settings_)[0];
    rows.push_back(row);
    rows.back().contestant = contestant.roles[0];
    set_measured(rows.back(), contestant, measured);
  }
  return rows;
}

}  // namespace kiln::cli::bench
