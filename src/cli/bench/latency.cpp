// Measures the host's time to make a plan (with the kernel compiled, from disk, from memory) and to
// execute it, and for comparison that of a bare launch of the same kernel and of the peers' calls.
#include <chrono>
#include <cstring>

#include "cli/bench/runner.hpp"
#include "core/error.hpp"
#include "plan/parameters.hpp"
#include "plan/plan.hpp"

namespace kiln::cli::bench {
namespace {

double microseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

Times times_of_runs(int runs, const std::function<double()>& run) {
  std::vector<double> samples;
  for (int i = 0; i < runs; ++i) samples.push_back(run());
  return times_of(std::move(samples));
}

// The host's times of a call that enqueues work. Calls come in short bursts, so that the device's
// queue never fills, which would make the host wait.
Times times_of_call(Device& device, const std::function<void()>& call) {
  const bool host = device.description().kind == KILN_DEVICE_HOST;
  const int burst = host ? 1 : 64;
  const int runs = host ? 5 : 51;
  call();
  device.synchronize(nullptr);
  return times_of_runs(runs, [&] {
    const double time = microseconds([&] {
      for (int i = 0; i < burst; ++i) call();
    });
    device.synchronize(nullptr);
    return time / burst;
  });
}

}  // namespace

std::vector<Row> Runner::latency(const Case& item) {
  std::vector<Row> rows;
  const auto add = [&](const std::string& contestant, const std::string& what, const Times& times,
                       const std::string& kernel) {
    Row row = row_of(item);
    row.layer = what;
    row.contestant = contestant;
    row.kernel = kernel;
    row.host_time = true;
    row.times = times;
    row.flops = row.bytes = 0;
    rows.push_back(std::move(row));
  };
  const auto planned = [&](const FinalizeOptions& options) {
    Plan made(device_, item.problem);
    made.finalize(options);
    return made.finalize_milliseconds() * 1e3;
  };
  Plan plan(device_, item.problem);
  plan.finalize();
  const std::string kernel = cat(plan.spec().engine, " ", plan.spec().tile);
  add("kiln", "plan, compiled",
      times_of_runs(5, [&] { return planned({.caching = Caching::bypass}); }), kernel);
  const DeviceDescription& description = device_->description();
  bool from_disk = true;
  const Times disk = times_of_runs(15, [&] {
    return microseconds([&] {
      const FoundImage found = make_image(plan.spec(), description.kind, description.arch);
      from_disk = from_disk && found.origin == KILN_KERNEL_DISK;
      device_->load(found.image->binary, plan.spec().entry, plan.spec().shared_memory);
    });
  });
  if (from_disk) {
    add("kiln", "kernel from the disk cache, loaded", disk, kernel);
  } else {
    Row row = row_of(item);
    row.layer = "kernel from the disk cache, loaded";
    row.contestant = "kiln";
    row.note = "the disk cache keeps nothing: kiln info says why";
    rows.push_back(std::move(row));
  }
  add("kiln", "plan, from memory", times_of_runs(101, [&] { return planned({}); }), kernel);

  Operands operands(*device_, pool_, item);
  const BufferSet set = operands.set(0);
  ParameterBuffer buffer;
  const std::span<const std::byte> parameters =
      fill_parameters(plan.launch(), *device_, set.operands, nullptr, {}, {}, buffer);
  add("kiln", "call", times_of_call(*device_, [&] { plan.execute(set.operands, {}, nullptr); }),
      kernel);
  add("bare launch", "call",
      times_of_call(
          *device_,
          [&] { plan.kernel().kernel->launch(plan.launch().shape, parameters, nullptr); }),
      kernel);
  for (const std::unique_ptr<Peer>& peer : peers_) {
    for (const Contestant& contestant : peer->contestants(item, operands, pool_)) {
      const std::string name = contestant.roles[0];
      try {
        if (!contestant.execute) fail(KILN_STATUS_NOT_SUPPORTED, contestant.refusal);
        add(name, "call", times_of_call(*device_, [&] { contestant.execute(set); }),
            contestant.kernel);
      } catch (const Error& error) {
        Row row = row_of(item);
        row.layer = "call";
        row.contestant = name;
        row.note = error.what();
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

}  // namespace kiln::cli::bench
