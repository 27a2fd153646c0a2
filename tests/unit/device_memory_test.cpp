// No kernel has variables of its own in device memory, because launches of it on two streams would
// share them. Blocks pass data on through the workspace, which is separate for every launch.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "codegen/embedded.hpp"
#include "codegen/source.hpp"
#include "engines/choice.hpp"
#include "engines/method.hpp"
#include "problem/line/problem_line.hpp"

namespace {

using namespace kiln;

// The text without comments and preprocessor directives.
std::string bare(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (!line.starts_with('#')) out += line.substr(0, line.find("//")) + '\n';
    at = end + 1;
  }
  return out;
}

// The declarations of variables that a kernel can write to and that outlive it: __device__ or
// __managed__ ones of a module, and static ones of a function, unless they are constants.
std::vector<std::string> lasting_variables(const std::string& text) {
  static const std::regex attribute(R"(\b(__align__|alignas|__attribute__)\s*\([^)]*\))");
  // From such a word to the character that distinguishes a variable from a function, which has "(".
  static const std::regex declaration(
      R"(\b(__device__|__managed__|device_inline|static)\b[^;{}()=\[]*[;{(=\[])");
  static const std::regex constant(R"(\b(const|constexpr|__constant__)\b)");
  const std::string code = std::regex_replace(bare(text), attribute, "");
  std::vector<std::string> found;
  for (std::sregex_iterator at(code.begin(), code.end(), declaration), end; at != end; ++at) {
    const std::string words = at->str();
    const bool function = words.back() == '(' || words.ends_with("operator[");
    if (!function && !std::regex_search(words, constant)) found.push_back(words);
  }
  return found;
}

// The generated part of a kernel's text, which is above its first file.
std::string generated(const KernelSpec& spec) {
  const std::string text = generate_source(spec, KILN_DEVICE_CUDA);
  const std::size_t files = text.find("// ---- ");
  BOOST_REQUIRE(files != std::string::npos);
  return text.substr(0, files);
}

void check(const std::string& name, const std::string& text) {
  for (const std::string& variable : lasting_variables(text))
    BOOST_ERROR(name << " has a variable that outlives a launch: " << variable);
}

// Problems of every operation and pass, which together reach every engine.
std::vector<Problem> problems(DataType type, kilnTensorFormat_t layout) {
  std::vector<Problem> out;
  for (const char* line :
       {"mb8ic128ih28oc128kh3ph1", "mb8ic128ih28oc128kh1", "mb8ic3ih128oc96kh11",
        "mb8ic3ih224oc64kh7ph3sh2", "g64mb8ic64ih28oc64kh3ph1", "g16mb8ic64ih28oc64kh3ph1",
        "mb8ic64ih56oc2kh3ph1", "mb8ic3ih64oc64kh16sh16", "g3mb8ic72ih28oc72kh3ph1sh2",
        "g9mb8ic9ih28oc9kh3ph1", "mb8ic256ih1oc256kh1"}) {
    const ConvolutionOperands o =
        describe_convolution(parse_convolution_line(line), type, layout, KILN_CROSS_CORRELATION);
    out.emplace_back(make_convolution(o.spec, o.x, o.w, o.y));
    out.emplace_back(make_convolution_wgrad(o.spec, o.x, o.y, o.w));
    out.emplace_back(make_convolution_dgrad(o.spec, o.w, o.y, o.x));
  }
  const ConvolutionOperands o = describe_convolution(
      parse_convolution_line("mb8ic64ih28oc64kh3ph1"), type, layout, KILN_CROSS_CORRELATION);
  out.emplace_back(
      make_convolution(o.spec, o.x, o.w, o.y, {{.kind = EpilogueOperation::Kind::moments}}));
  out.emplace_back(make_convolution_transposed(o.spec, o.y, o.w, o.x,
                                               {{.kind = EpilogueOperation::Kind::gradient,
                                                 .tensor = o.x,
                                                 .activation = {KILN_ACTIVATION_RELU, 0}}}));
  const Tensor& x = o.x;
  PoolingSpec pool;
  pool.spatial = 2;
  pool.window = {3, 3};
  pool.stride = {2, 2};
  Tensor y = x, channels = x, other = x;
  y.dims = pooling_output_dims(pool, x);
  y.strides = dense_strides(layout, 4, y.dims);
  channels.dims = {1, x.dims[1], 1, 1};
  channels.strides = dense_strides(layout, 4, channels.dims);
  other.strides =
      dense_strides(layout == KILN_TENSOR_NCHW ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW, 4, x.dims);
  out.emplace_back(make_pooling_forward(pool, x, y));
  out.emplace_back(make_pooling_backward(pool, y, &x, x));
  for (kilnSoftmaxMode_t mode : {KILN_SOFTMAX_MODE_CHANNEL, KILN_SOFTMAX_MODE_INSTANCE})
    out.emplace_back(make_softmax_forward(KILN_SOFTMAX_ACCURATE, mode, x, x));
  out.emplace_back(make_activation_forward({KILN_ACTIVATION_GELU_ERF, 0}, x, x));
  out.emplace_back(make_transform(x, other));
  out.emplace_back(make_bias_gradient(x, channels));
  // Locally connected: 8x8 pixels, 16 to 32 channels, 3x3.
  ConvolutionSpec local;
  local.spatial = 2;
  local.pad_before = local.pad_after = {1, 1};
  const auto dense = [&](int rank, const TensorDims& dims, kilnTensorFormat_t format) {
    Tensor tensor = x;
    tensor.rank = rank;
    tensor.dims = dims;
    tensor.strides = dense_strides(format, rank, dims);
    return tensor;
  };
  const Tensor in = dense(4, {4, 16, 8, 8}, layout), made = dense(4, {4, 32, 8, 8}, layout),
               weights = dense(6, {8, 8, 32, 16, 3, 3}, KILN_TENSOR_NCHW);
  out.emplace_back(make_local(local, in, weights, nullptr, made));
  out.emplace_back(make_local_dgrad(local, weights, made, in));
  out.emplace_back(make_local_wgrad(local, in, made, weights));
  out.emplace_back(make_normalization_backward({}, x, nullptr, x, nullptr, x));
  NormalizationSpec rows;
  rows.statistics = KILN_NORMALIZATION_INSTANCE;
  out.emplace_back(make_normalization_backward(rows, x, nullptr, x, nullptr, x));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(device_memory)

BOOST_AUTO_TEST_CASE(a_variable_is_told_from_a_constant_and_a_function) {
  for (const char* text :
       {"__device__ float sums[8];", "static __device__ int turn = 0;", "__managed__ int x;",
        "__device__ __align__(16) float scratch[4];", "device_inline unsigned arrived{0};",
        "__global__ void f() { static int calls; }", "__device__ unsigned\n  tickets;"})
    BOOST_TEST(lasting_variables(text).size() == 1u, text);
  for (const char* text :
       {"__device__ const float table[] = {1, 2};", "static constexpr int N = 3;",
        "__constant__ float table[8];", "device_inline float f(float x) { return x; }",
        "// __device__ float sums[8];\nint x;", "__device__ T operator()(T x) const;",
        "#define device_inline __device__ __forceinline__\nusing i32 = int;",
        "static_assert(N > 0);"})
    BOOST_TEST(lasting_variables(text).empty(), text);
}

BOOST_AUTO_TEST_CASE(no_kernel_file_has_one) {
  BOOST_TEST(embedded_files().size() > 50);
  for (const EmbeddedFile& file : embedded_files())
    if (!file.path.starts_with("host/")) check(std::string(file.path), std::string(file.text));
}

BOOST_AUTO_TEST_CASE(no_generated_text_has_one) {
  std::set<std::string> seen;
  for (DataType type : {KILN_DATA_HALF, KILN_DATA_FLOAT})
    for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC})
      for (const Problem& problem : problems(type, layout))
        for (const Option& option :
             all_candidates(problem, known_architecture("sm_90a"), most_workspace)) {
          if (!seen.insert(option.name.engine).second) continue;
          const Proposal& proposal = option.choice.proposal;
          for (const Step& step : proposal.steps) check(option.name.engine, generated(step.kernel));
        }
  for (const Method* const method : methods())
    BOOST_TEST(seen.count(method->name()) == 1u, "no problem here reaches " << method->name());
}

BOOST_AUTO_TEST_SUITE_END()
