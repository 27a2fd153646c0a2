// The reference's pooling and its gradient against oneDNN's.
#include <cmath>
#include <limits>

#include "onednn.hpp"

using namespace kiln;

namespace {

using onednn::compare;
using onednn::elements;
using onednn::layout;
using onednn::Memory;
using onednn::wrap;

#if DNNL_VERSION_MAJOR >= 3
using Forward = dnnl::pooling_forward;
using Backward = dnnl::pooling_backward;
#else
using Forward = dnnl::pooling_v2_forward;  // only v2 has dilation
using Backward = dnnl::pooling_v2_backward;
#endif

dnnl::algorithm algorithm_of(kilnPoolingMode_t mode) {
  switch (mode) {
    case KILN_POOLING_MAX: return dnnl::algorithm::pooling_max;
    case KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING:
      return dnnl::algorithm::pooling_avg_include_padding;
    case KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING: break;
  }
  return dnnl::algorithm::pooling_avg_exclude_padding;
}

struct PoolingCase {
  PoolingSpec spec;
  bool wide = false, unread = false;  // padding of at least a window; elements that are not read
  Tensor x, y;

  Memory::dims space(const Spatial& sizes, std::int64_t offset = 0) const {
    Memory::dims dims;
    for (int i = 0; i < spec.spatial; ++i) dims.push_back(sizes[i] + offset);
    return dims;
  }

  Forward::primitive_desc forward() const {
    return onednn::describe_forward<Forward>(
        dnnl::prop_kind::forward_training, algorithm_of(spec.mode), layout(x), layout(y),
        space(spec.stride), space(spec.window), space(spec.dilation, -1), space(spec.pad_before),
        space(spec.pad_after));
  }
  Backward::primitive_desc backward() const {
    return onednn::describe_backward<Backward>(forward(), algorithm_of(spec.mode), layout(x),
                                               layout(y), space(spec.stride), space(spec.window),
                                               space(spec.dilation, -1), space(spec.pad_before),
                                               space(spec.pad_after));
  }
};

// Draws a random case. False if the window does not fit, or if a window may have taps before and
// behind x but none inside.
bool draw(onednn::Random& random, kilnPoolingMode_t mode, PoolingCase& item) {
  PoolingSpec& spec = item.spec;
  spec = {};
  item.wide = item.unread = false;
  spec.mode = mode;
  spec.spatial = static_cast<int>(random.among(1, 3));
  TensorDims dims{random.among(1, 3), random.among(1, 20)};
  for (int i = 0; i < spec.spatial; ++i) {
    spec.window[i] = random.among(1, 4);
    spec.dilation[i] = random.among(0, 3) == 0 ? random.among(1, 3) : 1;
    const std::int64_t reach = (spec.window[i] - 1) * spec.dilation[i];
    spec.pad_before[i] = random.among(0, reach);
    spec.pad_after[i] = random.among(0, reach);
    spec.stride[i] = random.among(1, 3);
    dims[i + 2] = random.among(1, 11);
    // Padding of a window and more. oneDNN refuses it if it would divide by 0.
    if (mode != KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING && random.among(0, 3) == 0) {
      spec.pad_before[i] = random.among(0, reach + 4);
      spec.pad_after[i] = random.among(0, reach + 4);
      item.wide = true;
    }
    // Elements at the end of the input that are not read.
    if (random.among(0, 3) == 0) spec.pad_after[i] = -random.among(0, 7), item.unread = true;
    const std::int64_t room = dims[i + 2] + spec.pad_before[i] + spec.pad_after[i] - reach - 1;
    if (room < 0 || dims[i + 2] < spec.dilation[i]) return false;
    // oneDNN requires that the output reads all of the padding behind the input.
    spec.pad_after[i] -= room % spec.stride[i];
  }
  item.x = random.tensor(spec.spatial + 2, dims);
  item.y = random.tensor(spec.spatial + 2, pooling_output_dims(spec, item.x));
  item.y.strides = dense_strides(item.x.strides[1] == 1 ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW,
                                 item.y.rank, item.y.dims);
  return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pooling_onednn)

BOOST_AUTO_TEST_CASE(random_problems) {
  onednn::Random random(7);
  int compared = 0, wide = 0, unread = 0;
  while (compared < 300) {
    PoolingCase item;
    if (!draw(random, static_cast<kilnPoolingMode_t>(KILN_POOLING_MAX + compared % 3), item))
      continue;
    try {
      item.forward();
    } catch (const dnnl::error&) {  // some versions refuse such padding
      BOOST_TEST((item.wide || item.unread));
      continue;
    }
    ++compared;
    wide += item.wide ? 1 : 0;
    unread += item.unread ? 1 : 0;
    const bool max = item.spec.mode == KILN_POOLING_MAX;
    std::vector<float> x = random.values(elements(item.x)), y(elements(item.y));
    const auto forward = item.forward();
    const Memory workspace(forward.workspace_desc(), onednn::cpu());
    onednn::execute(Forward(forward), {{DNNL_ARG_SRC, wrap(layout(item.x), x)},
                                       {DNNL_ARG_DST, wrap(layout(item.y), y)},
                                       {DNNL_ARG_WORKSPACE, workspace}});
    // For a window without taps inside x, oneDNN's maximum is the least finite value.
    for (float& value : y)
      if (value == std::numeric_limits<float>::lowest()) value = -HUGE_VALF;
    compare(make_pooling_forward(item.spec, item.x, item.y), {x.data()}, y, 2);

    std::vector<float> dy = random.values(elements(item.y)), dx(elements(item.x));
    onednn::execute(Backward(item.backward()), {{DNNL_ARG_DIFF_DST, wrap(layout(item.y), dy)},
                                                {DNNL_ARG_DIFF_SRC, wrap(layout(item.x), dx)},
                                                {DNNL_ARG_WORKSPACE, workspace}});
    std::vector<const void*> inputs{dy.data()};
    if (max) inputs.push_back(x.data());
    compare(make_pooling_backward(item.spec, item.y, max ? &item.x : nullptr, item.x), inputs, dx,
            2);
  }
  BOOST_TEST_MESSAGE(wide << " of wide padding, " << unread << " with input unread");
  BOOST_TEST(wide + unread > 30);
}

BOOST_AUTO_TEST_SUITE_END()
