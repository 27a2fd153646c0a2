// What Kiln refuses: each function by name, and each variant of a function that it serves.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "cli/doctor/cudnn_functions.hpp"
#include "cudnn/described.hpp"

using namespace test;
using kiln::cli::CudnnFunction;
using kiln::cli::Service;

namespace {

// What is written to standard error for as long as this object lives.
class StandardError {
 public:
  StandardError() : file_(std::tmpfile()), before_(dup(STDERR_FILENO)) {
    BOOST_TEST_REQUIRE(file_ != nullptr);
    dup2(fileno(file_), STDERR_FILENO);
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;
  ~StandardError() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    std::fclose(file_);
  }
  std::string text() const {
    std::string text(static_cast<std::size_t>(lseek(fileno(file_), 0, SEEK_END)), '\0');
    BOOST_TEST_REQUIRE(pread(fileno(file_), text.data(), text.size(), 0) ==
                       static_cast<ssize_t>(text.size()));
    return text;
  }

 private:
  std::FILE* file_;
  int before_;
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(refusals)

// A status each time, a sentence that names the function and what is missing, and one line in the
// log. What it is called with does not matter.
BOOST_AUTO_TEST_CASE(every_function_by_name) {
  std::size_t refused = 0;
  std::string log;
  {
    const StandardError standard_error;
    for (const CudnnFunction& each : kiln::cli::cudnn_functions()) {
      if (each.service == Service::served) continue;
      ++refused;
      const std::string name(each.name);
      auto* const function =
          reinterpret_cast<cudnnStatus_t (*)()>(dlsym(RTLD_DEFAULT, name.c_str()));
      BOOST_TEST_REQUIRE((function != nullptr), name);
      for (int time = 0; time < 2; ++time)
        fails(function(), CUDNN_STATUS_NOT_SUPPORTED, {name, std::string(each.why)});
    }
    log = standard_error.text();
  }
  BOOST_TEST(refused > 100u);
  for (const CudnnFunction& each : kiln::cli::cudnn_functions())
    if (each.service != Service::served)
      BOOST_TEST(count(log, std::string(each.name) + " is refused: " + std::string(each.why)) == 1u,
                 each.name << " in the log:\n"
                           << log);
}

// Such descriptors can be set; no operation takes them.
BOOST_AUTO_TEST_CASE(types_and_formats) {
  const Handle handle;
  const TensorDesc bytes, vectors, floats;
  succeeds(cudnnSetTensor4dDescriptor(bytes, CUDNN_TENSOR_NHWC, CUDNN_DATA_INT8, 1, 4, 3, 3));
  succeeds(
      cudnnSetTensor4dDescriptor(vectors, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x4, 1, 4, 3, 3));
  succeeds(cudnnSetTensor4dDescriptor(floats, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 4, 3, 3));
  const Buffer<float> memory(std::vector<float>(36, 1));
  const float one = 1, zero = 0;
  const auto add = [&](cudnnTensorDescriptor_t descriptor) {
    return cudnnAddTensor(handle, &one, descriptor, memory.data(), &zero, floats, memory.data());
  };
  fails(add(bytes), CUDNN_STATUS_NOT_SUPPORTED, {"aDesc", "INT8", "expected FLOAT"});
  fails(add(vectors), CUDNN_STATUS_NOT_SUPPORTED, {"aDesc", "INT8x4"});
  const ConvolutionDesc convolution;
  const int four[] = {1, 1, 1, 1};
  fails(cudnnSetConvolutionNdDescriptor(convolution, 4, four, four, four, CUDNN_CROSS_CORRELATION,
                                        CUDNN_DATA_FLOAT),
        CUDNN_STATUS_NOT_SUPPORTED, {"arrayLength is 4"});
}

BOOST_AUTO_TEST_CASE(variants) {
  const Handle handle;
  const TensorDesc t, row;
  succeeds(cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 2, 3, 3));
  succeeds(cudnnSetTensor4dDescriptor(row, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 2, 1, 1));
  const Buffer<float> a(std::vector<float>(18, 1)), b(std::vector<float>(18, 1)),
      c(std::vector<float>(18, 1));
  const float one = 1, zero = 0, minus = -1;

  const ReduceTensorDesc reduce;
  const auto set_reduce = [&](cudnnReduceTensorOp_t op, cudnnReduceTensorIndices_t indices) {
    succeeds(cudnnSetReduceTensorDescriptor(reduce, op, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN,
                                            indices, CUDNN_32BIT_INDICES));
    return cudnnReduceTensor(handle, reduce, b.data(), 72, nullptr, 0, &one, t, a.data(), &zero,
                             row, c.data());
  };
  fails(set_reduce(CUDNN_REDUCE_TENSOR_MAX, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES),
        CUDNN_STATUS_NOT_SUPPORTED, {"cudnnReduceTensor", "ndices"});
  fails(set_reduce(CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS, CUDNN_REDUCE_TENSOR_NO_INDICES),
        CUDNN_STATUS_NOT_SUPPORTED, {"cudnnReduceTensor", "MUL_NO_ZEROS"});

  const ActivationDesc swish;
  succeeds(cudnnSetActivationDescriptor(swish, CUDNN_ACTIVATION_SWISH, CUDNN_PROPAGATE_NAN, 0));
  succeeds(cudnnSetActivationDescriptorSwishBeta(swish, 2));
  fails(cudnnActivationForward(handle, swish, &one, t, a.data(), &zero, t, c.data()),
        CUDNN_STATUS_NOT_SUPPORTED, {"swish_beta is 2", "expected 1"});

  const OpTensorDesc root;
  succeeds(cudnnSetOpTensorDescriptor(root, CUDNN_OP_TENSOR_SQRT, CUDNN_DATA_FLOAT,
                                      CUDNN_PROPAGATE_NAN));
  fails(
      cudnnOpTensor(handle, root, &minus, t, a.data(), &one, nullptr, nullptr, &zero, t, c.data()),
      CUDNN_STATUS_NOT_SUPPORTED, {"alpha1"});

  const TransformDesc fold;
  const unsigned folds[] = {2, 2};
  succeeds(cudnnSetTensorTransformDescriptor(fold, 4, CUDNN_TENSOR_NCHW, nullptr, nullptr, folds,
                                             CUDNN_TRANSFORM_FOLD));
  fails(cudnnTransformTensorEx(handle, fold, &one, t, a.data(), &zero, t, c.data()),
        CUDNN_STATUS_NOT_SUPPORTED, {"cudnnTransformTensorEx"});
  BOOST_TEST(c.read() == std::vector<float>(18, 1), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
