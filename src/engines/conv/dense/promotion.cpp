#include "engines/conv/dense/promotion.hpp"

namespace kiln {

namespace {

// Products between two promotions. The tensor cores round sums toward zero: sums of numbers of one
// sign lose 3e-3 over 401408 products, so 1.2e-4 over this many, a quarter of the rounding of f16
// and TF32.
constexpr std::int64_t dense_run = 16384;

}  // namespace

std::int64_t dense_promotion(std::int64_t channels) { return dense_run / channels; }

void add_dense_promotion(std::vector<Constant>& constants, std::int64_t steps,
                         std::int64_t channels) {
  const std::int64_t run = dense_promotion(channels);
  constants.push_back(
      {"PROMOTE", steps > run ? run : 0, "steps of the reduction between promotions"});
  constants.push_back({"PROMOTE_LOCAL", steps > run, ""});
}

}  // namespace kiln
