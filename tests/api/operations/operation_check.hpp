// Checks any operation through its three C functions (two for plans, one immediate) against the
// reference: the results, and the refusals of each function.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/objects.hpp"
#include "support/operation_data.hpp"

namespace test {

// ---- descriptors of the library's own values ----------------------------------------------------

inline Tensor tensor(DataType type, const Sizes& dims, const Sizes& strides) {
  Tensor out;
  out.type = type;
  out.rank = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), out.dims.begin());
  std::copy(strides.begin(), strides.end(), out.strides.begin());
  return out;
}
inline Tensor tensor(DataType type, const Sizes& dims,
                     kilnTensorFormat_t format = KILN_TENSOR_NCHW) {
  Tensor out = tensor(type, dims, dims);
  out.strides = dense_strides(format, out.rank, out.dims);
  return out;
}

template <class Array>
Sizes first(const Array& values, int count) {
  return {values.begin(), values.begin() + count};
}

inline std::shared_ptr<const TensorDesc> describe(const Tensor& t) {
  return std::make_shared<TensorDesc>(t.type, first(t.dims, t.rank), first(t.strides, t.rank));
}
inline std::shared_ptr<const FilterDesc> describe_filter(const Tensor& t) {
  return std::make_shared<FilterDesc>(t.type, first(t.dims, t.rank), first(t.strides, t.rank));
}
inline std::shared_ptr<const ConvolutionDesc> describe(const ConvolutionSpec& s) {
  return std::make_shared<ConvolutionDesc>(
      first(s.pad_before, s.spatial), first(s.pad_after, s.spatial), first(s.stride, s.spatial),
      first(s.dilation, s.spatial), s.groups, s.mode, s.compute_type);
}

struct PoolingDesc : Object<kilnPoolingDescriptor_t, kilnDestroyPoolingDescriptor> {
  PoolingDesc() : Object(kilnCreatePoolingDescriptor) {}
  explicit PoolingDesc(const PoolingSpec& s) : PoolingDesc() {
    succeeds(kilnSetPoolingNdDescriptor(*this, s.mode, s.nan, s.spatial, s.window.data(),
                                        s.pad_before.data(), s.pad_after.data(), s.stride.data(),
                                        s.dilation.data()));
    succeeds(kilnSetPoolingCeilMode(*this, s.ceil ? 1 : 0));
  }
};
inline std::shared_ptr<const PoolingDesc> describe(const PoolingSpec& s) {
  return std::make_shared<PoolingDesc>(s);
}

struct ActivationDesc : Object<kilnActivationDescriptor_t, kilnDestroyActivationDescriptor> {
  ActivationDesc() : Object(kilnCreateActivationDescriptor) {}
  explicit ActivationDesc(kilnActivationMode_t mode, double coef = 0, double coef2 = 0)
      : ActivationDesc() {
    succeeds(kilnSetActivationDescriptorEx(*this, mode, coef, coef2));
  }
};
inline std::shared_ptr<const ActivationDesc> describe(const Activation& a) {
  return std::make_shared<ActivationDesc>(a.mode, a.coefficient, a.coefficient2);
}

// ---- the three functions of an operation --------------------------------------------------------

struct Arguments {
  const void *alpha = nullptr, *beta = nullptr, *alpha2 = nullptr;
  std::vector<void*> at;  // the operands, in the order of operands_of(problem)
};

struct Calls {
  std::string operation;           // "PoolingForward"
  std::vector<std::string> names;  // the operands as kiln.h calls them
  std::function<kilnStatus_t(kilnHandle_t, kilnPlan_t*)> create{};
  std::function<kilnStatus_t(kilnHandle_t, kilnPlan_t, const Arguments&)> execute{};
  std::function<kilnStatus_t(kilnHandle_t, const Arguments&)> immediate{};
  std::vector<std::string> in_place{};  // inputs that the result may overwrite
  // The scalars' names and places, and values to try.
  std::vector<std::pair<std::string, const void * Arguments::*>> scalars{
      {"alpha", &Arguments::alpha}, {"beta", &Arguments::beta}};
  std::vector<Scalars> values{{1, 0}, {-0.75, 1}};
};

// kilnExecute... of the usual form: alpha, `inputs` tensors, beta, the result.
template <std::size_t inputs, class Function>
auto usual_execute(Function function) {
  return [function](kilnHandle_t handle, kilnPlan_t plan, const Arguments& a) {
    if constexpr (inputs == 1)
      return function(handle, plan, a.alpha, a.at[0], a.beta, a.at[1]);
    else
      return function(handle, plan, a.alpha, a.at[0], a.at[1], a.beta, a.at[2]);
  };
}

class OperationCheck {
 public:
  OperationCheck(const Problem& problem, const Calls& calls) : problem_(problem), calls_(calls) {}

  void run() {
    BOOST_TEST_CONTEXT(calls_.operation << ": " << text_of(problem_)) {
      refuses_before_a_plan_is_ready();
      succeeds(kilnFinalizePlan(plan_.get()));
      for (const Scalars& scalars : calls_.values) computes(scalars);
      refuses_bad_arguments();
      treats_overlaps();
    }
  }

 private:
  using Buffers = std::vector<std::unique_ptr<Buffer<std::byte>>>;

  struct DestroyPlan {
    void operator()(kilnPlan_t plan) const { kilnDestroyPlan(plan); }
  };
  using PlanOwner = std::unique_ptr<std::remove_pointer_t<kilnPlan_t>, DestroyPlan>;

  // Buffers of at least `least` bytes each.
  static Buffers buffers_of(const OperationData& data, std::size_t least = 0) {
    Buffers buffers;
    for (const HostTensor& each : data.tensors) {
      std::vector<std::byte> bytes = each.bytes();
      bytes.resize(std::max(bytes.size(), least));
      buffers.push_back(std::make_unique<Buffer<std::byte>>(bytes));
    }
    return buffers;
  }

  // The arguments with the scalars in the compute type; valid while this object lives.
  Arguments arguments(const Scalars& scalars, const Buffers& buffers) {
    doubles_ = {scalars.alpha, scalars.beta, scalars.alpha2};
    for (std::size_t i = 0; i < 3; ++i) floats_[i] = static_cast<float>(doubles_[i]);
    const bool wide = scalar_type(problem_) == KILN_DATA_DOUBLE;
    const auto scalar = [&](std::size_t i) {
      return wide ? static_cast<const void*>(&doubles_[i]) : &floats_[i];
    };
    Arguments out{scalar(0), scalar(1), scalar(2), {}};
    for (const auto& buffer : buffers) out.at.push_back(buffer->data());
    return out;
  }

  OperationData data_of(const Scalars& scalars) const {
    OperationData data(problem_);
    data.scalars = scalars;
    data.fill_uniform(11, -2, 2);
    return data;
  }

  void refuses_before_a_plan_is_ready() {
    kilnPlan_t plan = nullptr;
    bad_param(calls_.create(nullptr, &plan), {"handle is null; expected a handle from kilnCreate"});
    BOOST_TEST(plan == nullptr);
    bad_param(calls_.create(handle_, nullptr), {"plan is null; expected where to store"});
    succeeds(calls_.create(handle_, &plan));
    plan_.reset(plan);
    const char* line = nullptr;
    succeeds(kilnGetPlanText(plan, KILN_PLAN_PROBLEM, &line));
    BOOST_TEST(std::string(line).ends_with(kiln::line_of(problem_)));
    BOOST_TEST(std::string(line).starts_with(kiln::cat(kiln::command_of(problem_), " --arch ")));
    const OperationData data = data_of({});
    const Buffers buffers = buffers_of(data);
    fails(calls_.execute(handle_, plan, arguments({}, buffers)), KILN_STATUS_NOT_INITIALIZED,
          {"plan", "finalize"});
  }

  // Plan and immediate call give the right result and the same bits.
  void computes(const Scalars& scalars) {
    OperationData data = data_of(scalars);
    const Buffers planned = buffers_of(data), at_once = buffers_of(data);
    succeeds(calls_.execute(handle_, plan_.get(), arguments(scalars, planned)));
    succeeds(calls_.immediate(handle_, arguments(scalars, at_once)));
    const std::vector<std::byte> bits = planned.back()->read();
    BOOST_TEST((bits == at_once.back()->read()), "the immediate call gave other bits");
    HostTensor got = data.result();
    got.read(bits);
    const std::string fault = data.fault(got);
    BOOST_TEST(fault.empty(), fault);
    for (std::size_t i = 0; i + 1 < planned.size(); ++i)
      BOOST_TEST((planned[i]->read() == data.tensors[i].bytes()), "an input was written");
  }

  void refuses_bad_arguments() {
    const OperationData data = data_of({});
    const Buffers buffers = buffers_of(data);
    const Arguments good = arguments(calls_.values[0], buffers);
    const auto both = [&](const Arguments& bad, const std::vector<std::string>& parts) {
      refused(calls_.execute(handle_, plan_.get(), bad), parts);
      refused(calls_.immediate(handle_, bad), parts);
    };
    for (const auto& [name, place] : calls_.scalars) {
      Arguments bad = good;
      bad.*place = nullptr;
      both(bad, {name + " is null; expected the address of a host value of the compute type"});
    }
    for (std::size_t i = 0; i < calls_.names.size(); ++i) {
      Arguments bad = good;
      bad.at[i] = nullptr;
      both(bad, {calls_.names[i] + " is null; expected a device address"});
      bad.at[i] = static_cast<std::byte*>(good.at[i]) + 1;
      both(bad, {calls_.names[i] + " is at ", "expected a multiple of "});
    }
    bad_param(calls_.execute(nullptr, plan_.get(), good), {"handle is null"});
    bad_param(calls_.execute(handle_, nullptr, good), {"plan is null"});
    bad_param(calls_.immediate(nullptr, good), {"handle is null"});

    const bool scaling = calls_.operation == "ScaleTensor";
    const TensorDesc other(KILN_DATA_FLOAT, {1, 1, 1, 1});
    kilnPlan_t plan = nullptr;
    succeeds(
        (scaling ? kilnCreateSetTensorPlan : kilnCreateScaleTensorPlan)(handle_, other, &plan));
    const PlanOwner owner(plan);
    refused(calls_.execute(handle_, plan, good),
            {std::string("plan is from kilnCreate") + (scaling ? "Set" : "Scale") + "TensorPlan",
             "expected one from kilnCreate" + calls_.operation + "Plan"});
  }

  // Passes the address of each input, in a buffer large enough, as the result: it is computed if
  // that is allowed, else refused. Then passes the next aligned address, which is always refused.
  void treats_overlaps() {
    const std::size_t last = calls_.names.size() - 1;
    kilnPlanInfo_t info{};
    info.structSize = sizeof info;
    succeeds(kilnGetPlanInfo(plan_.get(), &info));
    for (std::size_t i = 0; i < last; ++i) {
      const bool allowed = std::find(calls_.in_place.begin(), calls_.in_place.end(),
                                     calls_.names[i]) != calls_.in_place.end();
      OperationData data = data_of(calls_.values.back());
      if (allowed) data.result().values = data.tensors[i].values;
      const std::size_t element = size_of(data.tensors[last].operand.type);
      const std::size_t further = std::max(element, info.alignment);
      const Buffers buffers = buffers_of(data, data.result().bytes().size() + further);
      Arguments on_top = arguments(data.scalars, buffers);
      on_top.at[last] = on_top.at[i];
      if (allowed) {
        succeeds(calls_.execute(handle_, plan_.get(), on_top));
        HostTensor got = data.result();
        got.read(buffers[i]->read());
        const std::string fault = data.fault(got);
        BOOST_TEST(fault.empty(), "in place of " << calls_.names[i] << ": " << fault);
      } else {
        refuses_overlap(on_top, i, "expected a result apart from it");
      }
      if (!data.tensors[i].operand.contiguous() || data.tensors[i].bytes().size() <= further)
        continue;
      on_top.at[last] = static_cast<std::byte*>(on_top.at[i]) + further;
      refuses_overlap(on_top, i, allowed ? "or at the same address" : "apart from it");
    }
  }

  void refuses_overlap(const Arguments& on_top, std::size_t input, const char* expected) {
    const std::vector<std::string> parts{calls_.names.back() + " is at ",
                                         "where it overlaps " + calls_.names[input] + " at ",
                                         expected};
    refused(calls_.execute(handle_, plan_.get(), on_top), parts);
    refused(calls_.immediate(handle_, on_top), parts);
  }

  static void refused(kilnStatus_t status, const std::vector<std::string>& parts) {
    bad_param(status, {});
    for (const std::string& part : parts) message_has(part.c_str());
  }

  Problem problem_;
  Calls calls_;
  TestHandle handle_;
  PlanOwner plan_;
  std::array<double, 3> doubles_{};
  std::array<float, 3> floats_{};
};

inline void check(const Problem& problem, const Calls& calls) {
  OperationCheck(problem, calls).run();
}

// The status of creating a plan, checked to equal that of the immediate call with the same
// descriptors. The plan, if any, is destroyed.
template <class Create>
kilnStatus_t creation(const Create& create) {
  const TestHandle handle;
  kilnPlan_t plan = nullptr;
  const kilnStatus_t status = create(static_cast<kilnHandle_t>(handle), &plan);
  BOOST_TEST((plan != nullptr) == (status == KILN_STATUS_SUCCESS));
  kilnDestroyPlan(plan);
  return status;
}

}  // namespace test
