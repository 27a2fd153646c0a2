#include "cli/bench/measurement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace kiln::cli::bench {
namespace {

class Timing {
 public:
  Timing(Device& device, const Contestant& contestant, const std::function<BufferSet()>& next_set,
         const MeasurementSettings& settings)
      : device_(device), contestant_(contestant), next_set_(next_set), settings_(settings) {
    failure_ = contestant.refusal;
  }

  void warm_up() {
    attempt([&] {
      time();  // not counted: the first execution may load kernels
      double busy = 0;
      int executions = 0;
      while (busy < settings_.warm_up) {
        // Each burst is as long as all before it, so that waiting for the device hardly counts.
        const int burst = executions == 0 ? 1 : executions;
        busy += time(burst);
        executions += burst;
        last_ = busy / executions;
      }
      count_ = std::max(1, static_cast<int>(std::ceil(settings_.sample / last_)));
    });
  }

  void sample() {
    attempt([&] { samples_.push_back(time(count_) / count_ * 1e3); });
  }

  Measured result() const {
    if (!failure_.empty() || samples_.empty()) return {{}, failure_};
    return {times_of(samples_), ""};
  }

 private:
  double time(int count = 1) {
    return device_.time(nullptr, count, [&] { contestant_.execute(next_set_()); });
  }

  template <class Step>
  void attempt(const Step& step) {
    if (!failure_.empty()) return;
    try {
      step();
    } catch (const Error& error) {
      failure_ = error.what();
    }
  }

  Device& device_;
  const Contestant& contestant_;
  const std::function<BufferSet()>& next_set_;
  const MeasurementSettings& settings_;
  int count_ = 1;
  double last_ = 0;
  std::vector<double> samples_;
  std::string failure_;
};

}  // namespace

Times times_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  const double median =
      samples.size() % 2 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  return {median, samples.front(), samples.back(), static_cast<int>(samples.size())};
}

std::vector<Measured> measure(Device& device, std::span<const Contestant> contestants,
                              const std::function<BufferSet()>& next_set,
                              const MeasurementSettings& settings) {
  std::vector<Timing> timings;
  for (const Contestant& contestant : contestants)
    timings.emplace_back(device, contestant, next_set, settings);
  for (Timing& timing : timings) timing.warm_up();
  for (int i = 0; i < settings.samples; ++i)
    for (Timing& timing : timings) timing.sample();
  std::vector<Measured> results;
  for (const Timing& timing : timings) results.push_back(timing.result());
  return results;
}

std::vector<double> measure_alone(Device& device, std::span<const Contestant> contestants,
                                  const std::function<BufferSet()>& next_set,
                                  const std::function<void()>& flush, int samples) {
  std::vector<std::vector<double>> times(contestants.size());
  std::vector<bool> failed(contestants.size());
  for (int i = 0; i < samples; ++i)
    for (std::size_t place = 0; place < contestants.size(); ++place) {
      if (failed[place]) continue;
      try {
        flush();
        times[place].push_back(
            1e3 * device.time(nullptr, 1, [&] { contestants[place].execute(next_set()); }));
      } catch (const Error&) {
        failed[place] = true;
      }
    }
  std::vector<double> medians;
  for (std::size_t place = 0; place < contestants.size(); ++place)
    medians.push_back(failed[place] ? std::numeric_limits<double>::quiet_NaN()
                                    : times_of(times[place]).median);
  return medians;
}

}  // namespace kiln::cli::bench
