// Checks that the suites of the wgmma engines share.
#pragma once

#include <cmath>
#include <limits>
#include <span>

#include "engines/conv/halo/recipe.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "ops/conv/tensor_core_case.hpp"

namespace test {

// All arithmetics except the first one, 3xTF32.
inline constexpr std::span<const Arithmetic> whole = std::span(arithmetics).subspan(1);
inline constexpr ConvolutionPass passes[] = {ConvolutionPass::fprop, ConvolutionPass::dgrad};

// Checks a tile at a split count against the result `want`.
inline void check_tile(const RecipeEngine<HaloWgmmaTile>& engine, const HaloWgmmaTile& tile,
                       int parts, const OperationCase& item, const HostTensor& want) {
  const auto& problem = std::get<ConvolutionProblem>(item.problem);
  const Proposal proposal = engine.propose(tile, problem, device()->description(), {parts});
  const std::string fault = difference(run_proposal(item, proposal), want);
  BOOST_TEST(fault.empty(), text_of(item.problem)
                                << ", " << describe(tile) << ", " << parts << " parts: " << fault);
}

// Checks every second tile with strips, in both passes of each line. Returns the number of tiles.
inline int check_strips(const RecipeEngine<HaloWgmmaTile>& engine,
                        std::initializer_list<const char*> lines, kilnTensorFormat_t layout,
                        std::span<const Arithmetic> all) {
  int turn = 0, checked = 0;
  for (const char* line : lines)
    for (const ConvolutionPass pass : passes) {
      const ConvolutionProblem problem =
          problem_in(line, all[static_cast<std::size_t>(turn) % all.size()], layout, pass,
                     turn % 2 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION);
      const OperationCase item = integers_of(problem);
      const HostTensor want = item.expected();
      int number = ++turn;
      for (const HaloWgmmaTile& tile : engine.tiles(problem, device()->description())) {
        if (tile.shape.strips == 0 || ++number % 2 == 0) continue;
        check_tile(engine, tile, 1, item, want);
        ++checked;
      }
    }
  return checked;
}

// Checks a residual with other strides, an odd number of filters, and beta times the previous
// output. elements: operands are only aligned to their elements.
inline void check_epilogues(const RecipeEngine<HaloWgmmaTile>& engine, kilnTensorFormat_t layout,
                            bool elements, std::span<const Arithmetic> all) {
  for (const Arithmetic& arithmetic : all)
    for (const kilnTensorFormat_t z_layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
      ConvolutionProblem problem =
          fused_in("mb2ic24ih14iw15oc21kh3ph1", arithmetic, layout, z_layout);
      if (elements) problem.alignment = static_cast<std::int64_t>(size_of(problem.type()));
      OperationCase item = integers_of(problem);
      item.scalars = {.alpha = 2, .beta = -1};
      check_integers(item, engine.name());

      OperationCase accumulated(
          problem_in("mb2ic40ih14iw15oc24kh3ph1", arithmetic, layout, ConvolutionPass::dgrad));
      accumulated.scalars = {.alpha = -2, .beta = 3};
      accumulated.fill_integers(7, 2);
      check_integers(accumulated, engine.name());
    }
}

// Checks that a NaN reaches exactly the outputs that read it, and not those of the next row or
// image, which shares padding with the one before.
inline void check_nan_and_infinity(const RecipeEngine<HaloWgmmaTile>& engine,
                                   kilnTensorFormat_t layout,
                                   std::initializer_list<const char*> lines,
                                   std::span<const Arithmetic> all) {
  for (const char* line : lines)
    for (const Arithmetic& arithmetic : all) {
      OperationCase item = integers_of(problem_in(line, arithmetic, layout), 5);
      item["x"].at(20) = std::nan("");
      item["x"].at(800) = std::numeric_limits<double>::infinity();
      item["x"].at(item["x"].values.size() - 1) = -std::numeric_limits<double>::infinity();
      replace_zeros(item);
      check_integers(item, engine.name());
    }
}

}  // namespace test
