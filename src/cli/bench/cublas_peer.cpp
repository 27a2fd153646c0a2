// cuBLAS on lowered matrices: the matrix product of a convolution whose image has already been
// lowered (im2col). A convolution that could lower it at no cost would be as fast. Of products of
// matrices it computes the product itself.
#include <algorithm>
#include <array>
#include <limits>

#include "cli/bench/lowered_product.hpp"
#include "cli/bench/peer.hpp"
#include "cli/format.hpp"
#include "core/error.hpp"

namespace kiln::cli::bench {
namespace {

// The part of cuBLAS's C interface that is called here. Enumerations are passed as int.
using Handle = void*;
struct Api {
  int (*create)(Handle*);
  int (*destroy)(Handle);
  int (*version)(Handle, int*);
  const char* (*status_name)(int);
  int (*gemm)(Handle, int transa, int transb, int m, int n, int k, const void* alpha, const void* a,
              int a_type, int lda, const void* b, int b_type, int ldb, const void* beta, void* c,
              int c_type, int ldc, int compute_type, int algorithm);
  int (*batched)(Handle, int transa, int transb, int m, int n, int k, const void* alpha,
                 const void* a, int a_type, int lda, long long stride_a, const void* b, int b_type,
                 int ldb, long long stride_b, const void* beta, void* c, int c_type, int ldc,
                 long long stride_c, int batch, int compute_type, int algorithm);
};
constexpr int keep = 0, transpose = 1;             // cublasOperation_t
constexpr int compute_f32 = 68, compute_f64 = 70;  // cublasComputeType_t
constexpr int compute_tf32 = 77;
constexpr int default_algorithm = -1;  // cublasGemmAlgo_t

int type_number(DataType type) {  // cudaDataType
  switch (type) {
    case KILN_DATA_FLOAT: return 0;
    case KILN_DATA_DOUBLE: return 1;
    case KILN_DATA_HALF: return 2;
    case KILN_DATA_BFLOAT16: return 14;
  }
  return -1;
}

class Cublas final : public Peer {
 public:
  Cublas(Device& device, const std::string& path)
      : device_(device),
        library_(path, {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"}, "--cublas") {
    library_.find(api_.create, "cublasCreate_v2");
    library_.find(api_.destroy, "cublasDestroy_v2");
    library_.find(api_.version, "cublasGetVersion_v2");
    library_.find(api_.status_name, "cublasGetStatusName");
    library_.find(api_.gemm, "cublasGemmEx");
    library_.find(api_.batched, "cublasGemmStridedBatchedEx");
    check(api_.create(&handle_), "cublasCreate");
  }
  ~Cublas() override { api_.destroy(handle_); }

  const char* name() const override { return "cublas"; }

  std::string version() const override {
    int number = 0;
    check(api_.version(handle_, &number), "cublasGetVersion");
    return cat(number / 10000, ".", number / 100 % 100, ".", number % 100, " (", library_.path(),
               ")");
  }

  std::vector<Contestant> contestants(const Case& item, Operands&, RandomPool& pool) override {
    const std::vector<std::string> roles{"cublas gemm"};
    memory_.reset();
    if (const auto* const product = std::get_if<MatmulProblem>(&item.problem))
      return {of_product(*product)};
    const auto* const problem = std::get_if<ConvolutionProblem>(&item.problem);
    if (problem == nullptr) return {};
    if (problem->groups != 1)
      return {refusal(roles, cat("groups is ", problem->groups, "; one product serves 1 alone"))};
    const LoweredProduct product = lowered_product(*problem, item.layout == "nhwc");
    for (const std::int64_t size : {product.m, product.n, product.k})
      if (size > std::numeric_limits<int>::max())
        return {refusal(roles, "a matrix has more than 2^31 - 1 rows")};
    const std::size_t size = size_of(problem->type());
    const auto aligned = [](std::size_t bytes) { return (bytes + 255) / 256 * 256; };
    const std::int64_t crs = problem->in_channels * problem->taps();
    const std::int64_t pixels = problem->batch * problem->out_pixels();
    const std::array<std::size_t, 3> bytes{aligned(crs * problem->out_channels * size),
                                           aligned(crs * pixels * size),
                                           aligned(problem->out_channels * pixels * size)};
    const std::size_t set_bytes = bytes[0] + bytes[1] + bytes[2];
    if (set_bytes > static_cast<std::size_t>(device_.description().memory_bytes) / 3)
      return {refusal(roles, cat("the lowered matrices take ", bytes_text(set_bytes)))};
    // One set is enough if the lowered image is larger than the L2 cache.
    const bool beyond_l2 = set_bytes > 2 * static_cast<std::size_t>(device_.description().l2_bytes);
    const int sets = beyond_l2 ? 1 : sets_of(device_.description(), set_bytes);
    try {
      memory_ = std::make_unique<DeviceBuffer>(device_, set_bytes * sets);
    } catch (const Error& error) {
      return {refusal(roles, cat("no room for the lowered matrices: ", error.what()))};
    }
    pool.fill(memory_->address(), memory_->bytes());

    const int type = type_number(problem->type());
    const int compute = compute_of(problem->type(), item.math == "tf32");
    const bool f64 = problem->type() == KILN_DATA_DOUBLE;
    std::byte* const memory = memory_->address();
    Contestant contestant;
    contestant.roles = roles;
    contestant.kernel = cat("gemm ", product.m, "x", product.n, "x", product.k);
    contestant.solves = false;
    contestant.bytes = static_cast<double>(set_bytes);
    contestant.execute = [=, this](const BufferSet& set) {
      std::byte* const first = memory + set.index % sets * set_bytes;
      std::byte* const matrices[] = {first, first + bytes[0], first + bytes[0] + bytes[1]};
      static constexpr float one_f = 1, zero_f = 0;
      static constexpr double one_d = 1, zero_d = 0;
      const void* const one = f64 ? static_cast<const void*>(&one_d) : &one_f;
      const void* const zero = f64 ? static_cast<const void*>(&zero_d) : &zero_f;
      check(api_.gemm(handle_, product.transpose_a ? transpose : keep,
                      product.transpose_b ? transpose : keep, static_cast<int>(product.m),
                      static_cast<int>(product.n), static_cast<int>(product.k), one,
                      matrices[product.a], type, static_cast<int>(product.lda), matrices[product.b],
                      type, static_cast<int>(product.ldb), zero, matrices[product.c], type,
                      static_cast<int>(product.ldc), compute, default_algorithm),
            "cublasGemmEx");
    };
    return {contestant};
  }

 private:
  static int compute_of(DataType type, bool tf32) {
    return type == KILN_DATA_DOUBLE          ? compute_f64
           : type == KILN_DATA_FLOAT && tf32 ? compute_tf32
                                             : compute_f32;
  }

  // cuBLAS's matrices lie column by column, so it is asked for d transposed = b transposed times a
  // transposed, where d lies row by row.
  Contestant of_product(const MatmulProblem& p) {
    const std::vector<std::string> roles{"cublas"};
    if (p.epilogue != ConvolutionEpilogue{})
      return refusal(roles, "an epilogue, which is not part of cuBLAS's call");
    // The leading dimension of a matrix that lies row by row, and whether it lies column by column.
    struct Lies {
      std::int64_t leading = 0;
      int columns = keep;
    };
    const auto lies = [](const MatrixStrides& m, std::int64_t rows, std::int64_t columns) {
      if (columns < 2 || m.column == 1) return Lies{std::max(rows > 1 ? m.row : 0, columns), keep};
      if (rows < 2 || m.row == 1) return Lies{std::max(m.column, rows), transpose};
      return Lies{};
    };
    const Lies a = lies(p.a, p.rows, p.inner), b = lies(p.b, p.inner, p.columns),
               d = lies(p.d, p.rows, p.columns);
    for (const Lies& each : {a, b, d})
      if (each.leading == 0 || each.leading > std::numeric_limits<int>::max())
        return refusal(roles, "a matrix lies neither row by row nor column by column");
    if (std::max({p.batch, p.rows, p.columns, p.inner}) > std::numeric_limits<int>::max())
      return refusal(roles, "a size of more than 2^31 - 1");
    const auto size = [](std::int64_t value) { return static_cast<int>(value); };
    const int type = type_number(p.type), d_type = type_number(p.d_type),
              compute = compute_of(p.type, p.math == KILN_MATH_TF32);
    const bool f64 = p.type == KILN_DATA_DOUBLE, turned = d.columns == transpose;
    Contestant contestant;
    contestant.roles = roles;
    contestant.kernel = cat("gemm ", p.rows, "x", p.columns, "x", p.inner);
    contestant.execute = [=, this](const BufferSet& set) {
      static constexpr float one_f = 1, zero_f = 0;
      static constexpr double one_d = 1, zero_d = 0;
      const void* const one = f64 ? static_cast<const void*>(&one_d) : &one_f;
      const void* const zero = f64 ? static_cast<const void*>(&zero_d) : &zero_f;
      // The left operand of what cuBLAS computes is b, or a where d lies column by column.
      const auto call = [&](int left, const Lies& of_left, std::int64_t left_batch, int right,
                            const Lies& of_right, std::int64_t right_batch, std::int64_t m,
                            std::int64_t n) {
        const auto flag = [&](const Lies& each) {
          return (each.columns == transpose) != turned ? transpose : keep;
        };
        check(api_.batched(handle_, flag(of_left), flag(of_right), size(m), size(n), size(p.inner),
                           one, set.operands[left], type, size(of_left.leading), left_batch,
                           set.operands[right], type, size(of_right.leading), right_batch, zero,
                           set.operands.back(), d_type, size(d.leading), p.d.batch, size(p.batch),
                           compute, default_algorithm),
              "cublasGemmStridedBatchedEx");
      };
      if (turned)
        call(0, a, p.a.batch, 1, b, p.b.batch, p.rows, p.columns);
      else
        call(1, b, p.b.batch, 0, a, p.a.batch, p.columns, p.rows);
    };
    return contestant;
  }

  void check(int status, const char* call) const {
    if (status != 0)
      fail(KILN_STATUS_EXECUTION_FAILED, call, ": ", api_.status_name(status), " (", status, ")");
  }

  Device& device_;
  SharedLibrary library_;
  Api api_{};
  Handle handle_ = nullptr;
  std::unique_ptr<DeviceBuffer> memory_;
};

}  // namespace

std::unique_ptr<Peer> open_cublas(Device& device, const std::string& path) {
  return std::make_unique<Cublas>(device, path);
}

}  // namespace kiln::cli::bench
