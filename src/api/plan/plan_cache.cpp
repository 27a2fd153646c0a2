#include "api/plan/plan_cache.hpp"

#include <cstdint>
#include <variant>

namespace kiln::api {

namespace {

// A running hash of integers: multiply and fold, a few cycles each.
class Mixer {
 public:
  void add(std::uint64_t value) {
    state_ = (state_ ^ value) * 0x9e3779b97f4a7c15u;
    state_ ^= state_ >> 32;
  }
  template <class Array>
  void add_all(const Array& values) {
    for (const auto value : values) add(static_cast<std::uint64_t>(value));
  }
  std::size_t result() const { return state_; }

 private:
  std::uint64_t state_ = 0x4b696c6eu;
};

void add(Mixer& mixer, const ConvolutionProblem& p) {
  const std::int64_t scalars[] = {static_cast<int>(p.pass),
                                  p.x_type,
                                  p.w_type,
                                  p.y_type,
                                  p.rank,
                                  p.mode,
                                  p.batch,
                                  p.groups,
                                  p.in_channels,
                                  p.out_channels,
                                  p.epilogue.bias,
                                  p.bias_stride,
                                  p.epilogue.residual,
                                  p.epilogue.residual_last,
                                  p.epilogue.moments,
                                  p.epilogue.gradient ? p.epilogue.gradient->activation.mode : 0,
                                  p.epilogue.activation.mode};
  mixer.add_all(scalars);
  for (const Spatial* space : {&p.in, &p.filter, &p.out, &p.pad, &p.stride, &p.dilation})
    mixer.add_all(*space);
  for (const Dims* strides : {&p.x_strides, &p.w_strides, &p.y_strides, &p.z_strides,
                              &p.norm_x_strides, &p.norm_residual_strides})
    mixer.add_all(*strides);
}

void add(Mixer& mixer, const LocalProblem& p) {
  add(mixer, p.conv);
  mixer.add_all(p.outer_strides);
  mixer.add(p.bias);
  for (const Dims* sizes : {&p.bias_dims, &p.bias_strides}) mixer.add_all(*sizes);
}

void add(Mixer& mixer, const PoolingProblem& p) {
  const std::int64_t scalars[] = {p.type, p.backward, p.rank, p.batch, p.channels, p.mode, p.nan};
  mixer.add_all(scalars);
  for (const Spatial* space :
       {&p.in, &p.out, &p.window, &p.pad, &p.stride, &p.dilation, &p.overhang})
    mixer.add_all(*space);
  for (const Dims* strides : {&p.x_strides, &p.y_strides, &p.dx_strides}) mixer.add_all(*strides);
}

void add(Mixer& mixer, const SoftmaxProblem& p) {
  const std::int64_t scalars[] = {p.type, p.backward, p.rank, p.algorithm, p.mode};
  mixer.add_all(scalars);
  for (const Dims* sizes : {&p.dims, &p.x_strides, &p.y_strides, &p.dy_strides, &p.dx_strides})
    mixer.add_all(*sizes);
}

void add(Mixer& mixer, const PointwiseProblem& p) {
  const std::int64_t scalars[] = {static_cast<int>(p.op), p.activation.mode, p.rank};
  mixer.add_all(scalars);
  mixer.add_all(p.dims);
  for (const PointwiseProblem::View& view : p.views) {
    mixer.add(view.type);
    mixer.add_all(view.strides);
  }
}

void add(Mixer& mixer, const ReductionProblem& p) {
  const std::int64_t scalars[] = {p.type, p.op, p.rank};
  mixer.add_all(scalars);
  for (const Dims* sizes : {&p.dims, &p.out_dims, &p.a_strides, &p.c_strides})
    mixer.add_all(*sizes);
}

void add(Mixer& mixer, const NormalizationProblem& p) {
  const std::int64_t scalars[] = {p.type,
                                  static_cast<int>(p.pass),
                                  p.rank,
                                  p.affine,
                                  p.running,
                                  p.residual,
                                  p.frozen,
                                  p.activation.mode,
                                  p.bias,
                                  p.centered,
                                  static_cast<int>(p.over),
                                  p.groups};
  mixer.add_all(scalars);
  for (const Dims* sizes : {&p.dims, &p.x_strides, &p.residual_strides, &p.y_strides, &p.dy_strides,
                            &p.dresidual_strides, &p.dx_strides})
    mixer.add_all(*sizes);
}

void add(Mixer& mixer, const MatmulProblem& p) {
  const std::int64_t scalars[] = {p.type,
                                  p.d_type,
                                  p.rank,
                                  p.batch,
                                  p.rows,
                                  p.columns,
                                  p.inner,
                                  p.math,
                                  p.epilogue.bias,
                                  p.bias_stride,
                                  p.epilogue.residual,
                                  p.epilogue.residual_last,
                                  p.epilogue.activation.mode};
  mixer.add_all(scalars);
  for (const MatrixStrides* m : {&p.a, &p.b, &p.d, &p.z})
    for (const std::int64_t stride : {m->batch, m->row, m->column})
      mixer.add(static_cast<std::uint64_t>(stride));
}

}  // namespace

std::size_t ProblemHash::operator()(const Problem& problem) const {
  Mixer mixer;
  mixer.add(problem.index());
  std::visit([&](const auto& value) { add(mixer, value); }, problem);
  return mixer.result();
}

std::shared_ptr<const Plan> PlanCache::get(const std::shared_ptr<Device>& device,
                                           const Problem& problem) {
  const std::shared_ptr<Entry> entry = find_or_add(device, problem);
  if (!entry->ready.load(std::memory_order_acquire)) {
    const std::lock_guard lock(entry->finalizing);
    if (!entry->ready.load(std::memory_order_relaxed)) {
      entry->plan.finalize();
      entry->ready.store(true, std::memory_order_release);
    }
  }
  return {entry, &entry->plan};
}

std::shared_ptr<PlanCache::Entry> PlanCache::find_or_add(const std::shared_ptr<Device>& device,
                                                         const Problem& problem) {
  std::shared_ptr<Entry> evicted;  // dies after the lock is released
  const auto plans = plans_.lock();
  auto& [recent, entries] = *plans;
  if (const auto found = entries.find(problem); found != entries.end()) {
    recent.splice(recent.begin(), recent, found->second);
    return recent.front();
  }
  recent.push_front(std::make_shared<Entry>(device, problem));
  try {
    entries.emplace(problem, recent.begin());
  } catch (...) {
    recent.pop_front();
    throw;
  }
  if (recent.size() > capacity) {
    evicted = std::move(recent.back());
    entries.erase(evicted->plan.problem());
    recent.pop_back();
  }
  return recent.front();
}

}  // namespace kiln::api
