// Tensors as the reference's values and as descriptors of the cuDNN API, and checks of that API's
// calls against the reference.
#pragma once

#include <functional>
#include <memory>

#include "api/test_device.hpp"
#include "cudnn/objects.hpp"
#include "support/operation_data.hpp"

namespace test {

using Sizes = std::vector<std::int64_t>;

// ---- values of the reference
// ---------------------------------------------------------------------

enum class Layout { nchw, nhwc, padded };  // padded: NCHW with gaps between rows and images
inline constexpr Layout layouts[] = {Layout::nchw, Layout::nhwc, Layout::padded};

inline Tensor tensor(DataType type, const Sizes& dims, Layout layout = Layout::nchw) {
  Tensor out;
  out.type = type;
  out.rank = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), out.dims.begin());
  out.strides = dense_strides(layout == Layout::nhwc ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW,
                              out.rank, out.dims);
  if (layout == Layout::padded)
    for (std::size_t i = dims.size() - 1; i-- > 0;)
      out.strides[i] = out.strides[i + 1] * out.dims[i + 1] + 3;
  return out;
}

// ---- descriptors of the API
// ----------------------------------------------------------------------

inline cudnnDataType_t type_of(DataType type) {
  switch (type) {
    case KILN_DATA_DOUBLE: return CUDNN_DATA_DOUBLE;
    case KILN_DATA_HALF: return CUDNN_DATA_HALF;
    case KILN_DATA_BFLOAT16: return CUDNN_DATA_BFLOAT16;
    default: return CUDNN_DATA_FLOAT;
  }
}

template <class Array>
std::vector<int> ints(const Array& values, int count) {
  return {values.begin(), values.begin() + count};
}

inline std::unique_ptr<TensorDesc> describe(const Tensor& t) {
  auto out = std::make_unique<TensorDesc>();
  succeeds(cudnnSetTensorNdDescriptor(*out, type_of(t.type), t.rank, ints(t.dims, t.rank).data(),
                                      ints(t.strides, t.rank).data()));
  return out;
}

// A filter is dense: NCHW or NHWC.
inline std::unique_ptr<FilterDesc> describe_filter(const Tensor& t, Layout layout) {
  auto out = std::make_unique<FilterDesc>();
  succeeds(cudnnSetFilterNdDescriptor(
      *out, type_of(t.type), layout == Layout::nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, t.rank,
      ints(t.dims, t.rank).data()));
  return out;
}

// ---- a call and the reference
// --------------------------------------------------------------------

struct Arguments {
  cudnnHandle_t handle;
  const void *alpha, *beta, *alpha2;
  std::vector<void*> at;  // the operands, in the order of operands_of(problem)
};

using Call = std::function<cudnnStatus_t(const Arguments&)>;

// Checks that the call gives the reference's result, the same bits twice, and changes no input.
// Inputs are in [low, high].
inline void check(const Problem& problem, const Call& call,
                  const std::vector<Scalars>& scalings = {{1, 0}, {-0.75, 1}}, double low = -2,
                  double high = 2) {
  static const Handle handle;
  for (const Scalars& scalars : scalings)
    BOOST_TEST_CONTEXT(text_of(problem)
                       << ", alpha " << scalars.alpha << ", beta " << scalars.beta) {
      OperationData data(problem);
      data.scalars = scalars;
      data.fill_uniform(17, low, high);
      const double doubles[] = {scalars.alpha, scalars.beta, scalars.alpha2};
      const float floats[] = {static_cast<float>(doubles[0]), static_cast<float>(doubles[1]),
                              static_cast<float>(doubles[2])};
      const bool wide = scalar_type(problem) == KILN_DATA_DOUBLE;
      const auto scalar = [&](int i) {
        return wide ? static_cast<const void*>(doubles + i) : floats + i;
      };
      std::vector<std::byte> bits;
      for (int time = 0; time < 2; ++time) {
        std::vector<std::unique_ptr<Buffer<std::byte>>> buffers;
        Arguments arguments{handle, scalar(0), scalar(1), scalar(2), {}};
        for (const HostTensor& each : data.tensors) {
          buffers.push_back(std::make_unique<Buffer<std::byte>>(each.bytes()));
          arguments.at.push_back(buffers.back()->data());
        }
        const cudnnStatus_t status = call(arguments);
        BOOST_TEST_REQUIRE(status == CUDNN_STATUS_SUCCESS, cudnnGetErrorString(status)
                                                               << ": " << last_sentence());
        const std::vector<std::byte> got = buffers.back()->read();
        if (time > 0) BOOST_TEST((got == bits), "other bits the second time");
        bits = got;
        for (std::size_t i = 0; i + 1 < buffers.size(); ++i)
          BOOST_TEST((buffers[i]->read() == data.tensors[i].bytes()), "an input was written");
      }
      HostTensor got = data.result();
      got.read(bits);
      const std::string fault = data.fault(got);
      BOOST_TEST(fault.empty(), fault);
    }
}

}  // namespace test
