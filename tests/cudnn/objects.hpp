// The objects of the cuDNN API by names apart from those of the reference's values, and what a call
// is expected to give.
#pragma once

#include <cudnn.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "cudnn/library/objects.hpp"

namespace test {

using kiln_test::last_sentence;

inline void succeeds(cudnnStatus_t status) {
  BOOST_TEST(status == CUDNN_STATUS_SUCCESS, cudnnGetErrorString(status)
                                                 << ": " << last_sentence());
}

// With a sentence that has each of `parts`.
inline void fails(cudnnStatus_t status, cudnnStatus_t expected,
                  const std::vector<std::string>& parts) {
  BOOST_TEST(status == expected, cudnnGetErrorString(status)
                                     << ", not " << cudnnGetErrorString(expected));
  const std::string sentence = last_sentence();
  for (const std::string& part : parts)
    BOOST_TEST((sentence.find(part) != std::string::npos), sentence << " lacks " << part);
}

using kiln_test::Handle;
using ActivationDesc = kiln_test::Activation;
using ConvolutionDesc = kiln_test::Convolution;
using FilterDesc = kiln_test::Filter;
using OpTensorDesc = kiln_test::OpTensor;
using PoolingDesc = kiln_test::Pooling;
using ReduceTensorDesc = kiln_test::Reduction;
using TensorDesc = kiln_test::Tensor;
using TransformDesc = kiln_test::Transform;

}  // namespace test
