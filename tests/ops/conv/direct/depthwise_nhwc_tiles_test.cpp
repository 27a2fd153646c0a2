// Every tile of the depthwise engine of channels-last tensors: the large ones, and those for layers
// that would leave multiprocessors idle.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>
#include <tuple>

#include "engines/conv/direct/depthwise_nhwc_fma.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "ops/conv/channels_last_case.hpp"

BOOST_AUTO_TEST_SUITE(depthwise_nhwc_tiles)

namespace {

using namespace test;

const RecipeEngine engine(depthwise_nhwc_fma);

std::vector<Candidate> candidates_of(const Problem& problem) {
  return std::get<std::vector<Candidate>>(engine.candidates(problem, device()->description()));
}

}  // namespace

BOOST_AUTO_TEST_CASE(all_are_right) {
  // Whether it is the large tile; rows and columns of pixels of a thread.
  std::set<std::tuple<bool, std::int64_t, std::int64_t>> seen;
  std::size_t turn = 0;
  for (const char* line : {"g72mb1ic72ih9iw11oc72kh3ph1", "g48mb1ic48ih14iw13oc48kh7ph3",
                           "g40mb2ic40ih9iw10oc40kh5ph2sh2sw2", "g12mb1ic48ih9iw11oc48kh3ph1",
                           "g24mb1ic24ih7iw6oc24kh3ph2dh1dw1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      OperationCase item = integers_of(nhwc(line, all_types[turn++ % std::size(all_types)], pass));
      item.scalars = {.alpha = 2, .beta = -1};
      item.fill_integers(7, 2);
      const HostTensor want = item.expected();
      const std::vector<DepthwiseNhwcTile> tiles =
          engine.tiles(std::get<ConvolutionProblem>(item.problem), device()->description());
      for (const Candidate& candidate : candidates_of(item.problem)) {
        const DepthwiseNhwcTile& tile = tiles.at(static_cast<std::size_t>(candidate.kernel));
        seen.insert({candidate.kernel == 0, tile.p, tile.q});
        const Proposal proposal = engine.make(item.problem, device()->description(), candidate);
        const std::string fault = difference(run_proposal(item, proposal), want);
        BOOST_TEST(fault.empty(), line << ", " << proposal.first().kernel.tile << ": " << fault);
      }
    }
  for (const auto& [large, p, q] :
       {std::tuple(true, 2, 4), std::tuple(true, 1, 8), std::tuple(false, 2, 4),
        std::tuple(false, 1, 4), std::tuple(false, 1, 2), std::tuple(false, 1, 1)})
    BOOST_TEST(seen.contains({large, p, q}), p << "x" << q);
}

// Layers that fill the chip have one tile; a single image has smaller ones, of which one is chosen.
BOOST_AUTO_TEST_CASE(small_layers_alone_have_small_tiles) {
  const DeviceDescription chip = known_architecture("h200");
  const auto tiles = [&](const char* line) {
    const Problem problem = nhwc(line, KILN_DATA_HALF);
    return std::get<std::vector<Candidate>>(engine.candidates(problem, chip));
  };
  BOOST_TEST(tiles("g384mb64ic384ih14oc384kh7ph3").size() == 1U);
  const std::vector<Candidate> of_one_image = tiles("g384mb1ic384ih14oc384kh7ph3");
  BOOST_TEST(of_one_image.size() > 1U);
  const auto least = std::min_element(
      of_one_image.begin(), of_one_image.end(),
      [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
  BOOST_TEST(least->kernel != of_one_image.front().kernel);
}

BOOST_AUTO_TEST_SUITE_END()
