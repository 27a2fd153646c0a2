#include "engines/conv/tile/line_store.hpp"

#include <algorithm>

#include "core/integer.hpp"

namespace kiln {
namespace {

// Whether runs of `count` rows, or pixels, are contiguous in the output and aligned to their size
// (if the output is aligned).
bool output_runs(const Gather& gather, std::int64_t columns, bool of_rows, std::int64_t count) {
  const Dims& s = gather.out_strides;
  const auto whole = [&](std::int64_t stride) { return stride % count == 0; };
  if (of_rows) return s[1] == 1 && whole(s[0]) && whole(s[3]) && whole(s[4]);
  return s[4] == 1 && whole(columns) && whole(s[0]) && whole(s[1]) && whole(s[3]);
}

// Elements of compute_t in 16 bytes.
int vector_of(const ConvolutionProblem& problem) {
  return static_cast<int>(16 / size_of(compute_type(problem.type())));
}

bool z_alike(const Gather& gather) { return gather.z_strides == gather.out_strides; }

}  // namespace

bool rows_innermost(const Gather& gather) { return gather.out_strides[1] == 1; }

std::int64_t staged_bytes(std::int64_t m, std::int64_t n, bool rows_inner, std::int64_t element) {
  const std::int64_t sum = std::max<std::int64_t>(element, 4);
  const std::int64_t sums = rows_inner ? n * (m + 4) : m * (ceil_div(n, 32) * 32 + 8);
  return (sums + n) * sum;
}

int rows_side_by_side(const Gather& gather, int thread_m) {
  if (!rows_innermost(gather)) return 1;
  return thread_m % 8 == 0 ? 8 : thread_m % 4 == 0 ? 4 : 2;
}

bool stores_vectors(const ConvolutionProblem& problem, const Gather& gather, std::int64_t columns,
                    int run_m, int run_n) {
  const bool along_m = rows_innermost(gather);
  const int most = vector_of(problem);
  return z_alike(gather) &&
         output_runs(gather, columns, along_m, along_m ? std::min(run_m, most) : run_n);
}

void add_line_store_constants(std::vector<Constant>& constants, const ConvolutionProblem& problem,
                              const Gather& gather, std::int64_t columns, int run_m, int run_n) {
  constants.push_back({"LINES_ALONG_M", rows_innermost(gather), ""});
  constants.push_back({"Z_LIKE_OUT", z_alike(gather), ""});
  constants.push_back(
      {"OUTPUT_VECTOR", stores_vectors(problem, gather, columns, run_m, run_n), ""});
}

void add_staged_store_constants(std::vector<Constant>& constants, const ConvolutionProblem& problem,
                                const Gather& gather) {
  // Vectors are stored only along rows: tiles may begin at any column.
  constexpr int single = 1, pair = 2;
  const int store_vector = vector_of(problem);
  add_line_store_constants(constants, problem, gather, single, store_vector, pair);
  constants.push_back(
      {"STORE_VECTOR", std::int64_t{store_vector}, "rows that are stored at a time"});
}

}  // namespace kiln
