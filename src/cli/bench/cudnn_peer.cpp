#include "cli/bench/cudnn_api.hpp"
#include "core/error.hpp"

namespace kiln::cli::bench {
namespace cudnn {

Api::Api(const SharedLibrary& library) {
#define KILN_FIND(name, parameters) library.find(name, #name);
  KILN_CUDNN_FUNCTIONS(KILN_FIND)
#undef KILN_FIND
  library.find(cudnnGetVersion, "cudnnGetVersion");
  library.find(cudnnGetErrorString, "cudnnGetErrorString");
}

void Api::check(int status, const char* call) const {
  if (status == 0) return;
  const std::string name = cudnnGetErrorString(status);
  const bool unsupported = name.find("NOT_SUPPORTED") != std::string::npos;
  fail(unsupported ? KILN_STATUS_NOT_SUPPORTED : KILN_STATUS_EXECUTION_FAILED, call, ": ", name,
       " (", status, ")");
}

int type_number(DataType type) {
  switch (type) {
    case KILN_DATA_FLOAT: return 0;
    case KILN_DATA_DOUBLE: return 1;
    case KILN_DATA_HALF: return 2;
    case KILN_DATA_BFLOAT16: return 9;
  }
  return -1;
}

const void* Context::scalar(DataType type, double value) {
  struct Scalar {
    double as_double;
    float as_float;
  };
  static constexpr Scalar known[] = {{0, 0}, {1, 1}, {-1, -1}};
  for (const Scalar& scalar : known)
    if (scalar.as_double == value)
      return type == KILN_DATA_DOUBLE ? static_cast<const void*>(&scalar.as_double)
                                      : &scalar.as_float;
  fail(KILN_STATUS_NOT_SUPPORTED, "a scalar is ", value, "; expected -1, 0 or 1");
}

Shared Context::tensor(const Operand& operand, const std::string& layout) const {
  auto owned = std::make_shared<const Owned>(api, api.cudnnCreateTensorDescriptor,
                                             api.cudnnDestroyTensorDescriptor,
                                             "cudnnCreateTensorDescriptor");
  const Dims& dims = operand.dims;
  if (dims[2] != 1) fail(KILN_STATUS_NOT_SUPPORTED, "three dimensions of space");
  const bool tells = dims[1] > 1 && dims[3] * dims[4] > 1;
  const bool channels_last = tells ? operand.strides[1] == 1 : layout == "nhwc";
  const auto size = [&](int axis) { return static_cast<int>(dims[axis]); };
  api.check(
      api.cudnnSetTensor4dDescriptor(owned->get(), channels_last ? nhwc : nchw,
                                     type_number(operand.type), size(0), size(1), size(3), size(4)),
      "cudnnSetTensor4dDescriptor");
  return owned;
}

void Context::need_workspace(std::size_t bytes) {
  if (bytes == 0 || (workspace && workspace->bytes() >= bytes)) return;
  workspace.reset();
  workspace = std::make_unique<DeviceBuffer>(device, bytes);
}

namespace {

class Cudnn final : public Peer {
 public:
  Cudnn(Device& device, const std::string& path)
      : library_(path, {"libcudnn.so.9", "libcudnn.so.8"}, "--cudnn"),
        api_(library_),
        context_{device, api_, nullptr, nullptr, nullptr} {
    api_.check(api_.cudnnCreate(&context_.handle), "cudnnCreate");
  }
  ~Cudnn() override { api_.cudnnDestroy(context_.handle); }

  const char* name() const override { return "cudnn"; }

  std::string version() const override {
    const std::size_t number = api_.cudnnGetVersion();
    // 90100 is 9.1.0, 8907 is 8.9.7.
    const std::size_t major = number >= 90000 ? number / 10000 : number / 1000;
    const std::size_t rest = number >= 90000 ? number % 10000 : number % 1000;
    return cat(major, ".", rest / 100, ".", rest % 100, " (legacy algorithm interface, ",
               library_.path(), ")");
  }

  std::vector<Contestant> contestants(const Case& item, Operands& operands, RandomPool&) override {
    context_.saved.reset();
    const auto* const problem = std::get_if<ConvolutionProblem>(&item.problem);
    try {
      if (problem != nullptr) return convolution_contestants(context_, item, *problem, operands);
      return memory_bound_contestants(context_, item, operands);
    } catch (const Error& error) {
      const std::vector<std::string> roles =
          problem == nullptr ? std::vector<std::string>{"cudnn legacy"}
                             : std::vector<std::string>{"cudnn legacy zero", "cudnn legacy any"};
      return {refusal(roles, error.what())};
    }
  }

 private:
  SharedLibrary library_;
  Api api_;
  Context context_;
};

}  // namespace
}  // namespace cudnn

std::unique_ptr<Peer> open_cudnn(Device& device, const std::string& path) {
  return std::make_unique<cudnn::Cudnn>(device, path);
}

}  // namespace kiln::cli::bench
