// The canonical matrix product, its line, and the convolutions that it is.
#include "problem/matmul.hpp"

#include <boost/test/unit_test.hpp>

#include "engines/choice.hpp"
#include "engines/rewrite/product_views.hpp"
#include "problem/problem.hpp"
#include "problem_support.hpp"

namespace {

using namespace kiln;
using namespace test;
using Kind = EpilogueOperation::Kind;

Tensor columns(Tensor t) {
  t.strides[t.rank - 2] = 1;
  t.strides[t.rank - 1] = t.dims[t.rank - 2];
  return t;
}

const Tensor a = tensor(2, {6, 10}), b = tensor(2, {10, 4}), d = tensor(2, {6, 4});
const Tensor as = tensor(3, {3, 6, 10}), bs = tensor(3, {3, 10, 4}), ds = tensor(3, {3, 6, 4});

std::string view_text(const ProductView& view) {
  return cat(view.exchanged ? "b a " : "a b ", to_line(view.problem));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(matrix_products)

BOOST_AUTO_TEST_CASE(one_product) {
  const MatmulProblem problem = make_matmul({}, a, b, d);
  BOOST_TEST(problem.rows == 6);
  BOOST_TEST(problem.columns == 4);
  BOOST_TEST(problem.inner == 10);
  BOOST_TEST(problem.flops() == 2.0 * 6 * 4 * 10);
  BOOST_TEST(work_of(problem, false).flops == 480);
  BOOST_TEST(work_of(problem, true).bytes == 4.0 * (60 + 40 + 48));
  BOOST_TEST(text_of(Problem(problem)) == "matmul 6x10:10x4");
  BOOST_TEST(names_of(operands_of(problem)) == "a b d!");
}

BOOST_AUTO_TEST_CASE(lines_say_what_differs) {
  const EpilogueList list{{.kind = Kind::bias, .tensor = tensor(2, {1, 4})},
                          {.kind = Kind::residual, .tensor = columns(d)},
                          {.kind = Kind::activation, .activation = {KILN_ACTIVATION_RELU, 0}}};
  const MatmulProblem problem = make_matmul({KILN_MATH_TF32, 4}, a, columns(b), d, list);
  BOOST_TEST(to_line(problem) ==
             "--math tf32 --align 4 --bias --residual --act relu --b-layout column "
             "--z-layout column 6x10:10x4");
  BOOST_TEST(names_of(operands_of(problem)) == "a b z bias d!");
  Tensor far = a;
  far.strides = {100, 3};
  BOOST_TEST(to_line(make_matmul({}, far, b, d)) == "--a-strides 100:3 6x10:10x4");
  BOOST_TEST(to_line(make_matmul({}, columns(as), bs, ds)) == "--a-layout column 3x6x10:3x10x4");
}

BOOST_AUTO_TEST_CASE(one_matrix_for_a_batch) {
  Tensor one = tensor(3, {1, 10, 4});
  const MatmulProblem shared = make_matmul({}, as, one, ds);
  BOOST_TEST(shared.b.batch == 0);
  BOOST_TEST(to_line(shared) == "--b-strides 0:4:1 3x6x10:3x10x4");
  Tensor broadcast = bs;
  broadcast.strides[0] = 0;
  BOOST_TEST((make_matmul({}, as, broadcast, ds) == shared));
}

BOOST_AUTO_TEST_CASE(strides_of_one_element_do_not_count) {
  Tensor row = tensor(2, {10, 1}), result = tensor(2, {6, 1});
  row.strides[1] = 77;
  result.strides[1] = 5;
  BOOST_TEST((make_matmul({}, a, row, result) ==
              make_matmul({}, a, tensor(2, {10, 1}), tensor(2, {6, 1}))));
}

BOOST_AUTO_TEST_CASE(refusals_speak_of_matrices) {
  const auto fault = [](const Tensor& x, const Tensor& y, const Tensor& z,
                        const EpilogueList& list = {}) {
    return fault_of([&] { make_matmul({}, x, y, z, list); });
  };
  BOOST_TEST(fault(a, d, d) ==
             "bDesc has sizes 6x4, so 6 rows; expected 10, the columns of aDesc, whose sizes are "
             "6x10");
  BOOST_TEST(fault(a, b, a) ==
             "dDesc has sizes 6x10; the product of aDesc, 6x10, and bDesc, 10x4, has 6 rows and 4 "
             "columns");
  BOOST_TEST(fault(a, bs, d) ==
             "bDesc has 3 dimensions; expected 2, rows and columns, as aDesc has");
  BOOST_TEST(fault(tensor(4, {1, 1, 6, 10}), b, d) ==
             "aDesc has 4 dimensions; expected 2, rows and columns, or 3 with a batch before them");
  BOOST_TEST(fault(as, tensor(3, {2, 10, 4}), ds) ==
             "bDesc: dims[0] is 2; expected 3, as dDesc has, or 1, for one matrix that all share");
  BOOST_TEST(fault(a, tensor(2, {10, 4}, KILN_TENSOR_NCHW, KILN_DATA_HALF), d) ==
             "bDesc has data type f16; expected f32, as aDesc has");
  BOOST_TEST(fault(a, b, tensor(2, {6, 4}, KILN_TENSOR_NCHW, KILN_DATA_HALF)) ==
             "dDesc has data type f16; expected f32, as aDesc has");
  Tensor overlapping = d;
  overlapping.strides = {1, 1};
  BOOST_TEST(fault(a, b, overlapping).starts_with("dDesc: strides are 1:1 for sizes 6x4; "));
  BOOST_TEST(fault(a, b, d, {{.kind = Kind::bias, .tensor = tensor(2, {1, 6})}}) ==
             "biasDesc has sizes 1x6; expected 1x4, one element a column of dDesc");
  BOOST_TEST(fault(a, b, d, {{.kind = Kind::residual, .tensor = a}}) ==
             "zDesc has sizes 6x10; expected 6x4, as dDesc has");
  BOOST_TEST(fault(a, b, d, {{.kind = Kind::moments}}) ==
             "operation 0 of the epilogue is moments; a matrix product takes a bias, a residual "
             "and an activation");
}

// What a linear layer and its gradients are.
BOOST_AUTO_TEST_CASE(views) {
  const auto texts = [](const Tensor& x, const Tensor& y, const Tensor& z) {
    std::string text;
    for (const ProductView& view : product_views(make_matmul({}, x, y, z)))
      text += view_text(view) + "\n";
    return text;
  };
  const char* const nwc = "_kw1_sw1_pw0_dw0\n";
  BOOST_TEST(texts(a, columns(b), d) == cat("a b g1mb6_ic10iw1_oc4ow1", nwc));
  BOOST_TEST(texts(a, b, d).starts_with(cat("b a --dir dgrad g1mb6_ic4iw1_oc10ow1", nwc)));
  const std::string of_filter = texts(columns(a), b, d);
  BOOST_TEST(of_filter.ends_with(cat("b a --dir wgrad g1mb10_ic4iw1_oc6ow1", nwc)));
  const std::string both = texts(columns(a), columns(b), d);
  BOOST_TEST(both.ends_with(cat("a b --dir dgrad --y-strides 40:1:10 g1mb1_ic6iw4_oc10ow4", nwc)),
             both);
}

// A tuning winner is found again in the view that it was measured in.
BOOST_AUTO_TEST_CASE(winners_of_every_view) {
  const DeviceDescription device = known_architecture("h200");
  const auto matrix = [](std::int64_t rows, std::int64_t columns_of) {
    return tensor(2, {rows, columns_of}, KILN_TENSOR_NCHW, KILN_DATA_HALF);
  };
  const Problem product =
      make_matmul({}, columns(matrix(256, 512)), matrix(512, 128), matrix(256, 128));
  std::size_t views = 0;
  for (const std::string_view view : {"columns as pixels", "d as filter", "threads"}) {
    for (const Option& option : all_candidates(product, device)) {
      if (option.name.tile.find(view) == std::string::npos) continue;
      std::vector<EngineRefusal> refusals;
      const Choice choice = choose(product, device, {}, refusals, &option.name);
      BOOST_TEST(choice.tuned);
      BOOST_TEST(choice.proposal.first().kernel.tile == option.name.tile);
      ++views;
      break;
    }
  }
  BOOST_TEST(views == 3u);
}

BOOST_AUTO_TEST_SUITE_END()
