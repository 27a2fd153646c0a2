// Products of matrices in all types, layouts and sizes, with epilogues and batches, by every engine
// that takes them.
#include <boost/test/unit_test.hpp>

#include "core/error.hpp"
#include "engines/choice.hpp"
#include "placed_case.hpp"

BOOST_AUTO_TEST_SUITE(matmul)

namespace {

using namespace test;
using Kind = EpilogueOperation::Kind;

struct Product {
  std::int64_t rows, inner, columns, batch = 0;  // 0: no batch
  DataType type = KILN_DATA_FLOAT;
  // Which of the matrices lie column by column.
  bool a_columns = false, b_columns = false, d_columns = false;
  kilnMathMode_t math = KILN_MATH_DEFAULT;
  std::int64_t alignment = 16;
};

Tensor matrix(const Product& p, std::int64_t rows, std::int64_t columns, bool by_columns) {
  Tensor out;
  out.type = p.type;
  out.rank = p.batch > 0 ? 3 : 2;
  const int last = out.rank - 1;
  if (p.batch > 0) out.dims[0] = p.batch, out.strides[0] = rows * columns;
  out.dims[last - 1] = rows, out.dims[last] = columns;
  out.strides[last - 1] = by_columns ? 1 : columns;
  out.strides[last] = by_columns ? rows : 1;
  return out;
}

struct Matrices {
  Tensor a, b, d;
  explicit Matrices(const Product& p)
      : a(matrix(p, p.rows, p.inner, p.a_columns)),
        b(matrix(p, p.inner, p.columns, p.b_columns)),
        d(matrix(p, p.rows, p.columns, p.d_columns)) {}
};

Problem problem_of(const Product& p, const Matrices& m, const EpilogueList& list = {}) {
  return make_matmul({p.math, p.alignment}, m.a, m.b, m.d, list);
}
Problem problem_of(const Product& p) { return problem_of(p, Matrices(p)); }

// The engines that take a problem without workspace.
std::vector<std::string> engines_of(const Problem& problem) {
  std::vector<std::string> names;
  for (const EngineRefusal& answer : ask_engines(problem, device()->description())) {
    if (!answer.reason.empty()) continue;
    std::vector<EngineRefusal> refusals;
    try {
      choose(problem, device()->description(), {.only_engine = answer.engine}, refusals);
      names.push_back(answer.engine);
    } catch (const Error& error) {
      BOOST_TEST(error.status() == KILN_STATUS_NOT_SUPPORTED);
    }
  }
  BOOST_TEST(!names.empty());
  return names;
}

// Checks integers that are so small that all sums are exact, in f16 and bf16 too.
void check_exactly(const Problem& problem, const Scalars& scalars = {}) {
  OperationCase item(problem);
  item.scalars = scalars;
  item.fill_integers(3, 1);
  const auto elements = item.expected_elements();
  for (const std::string& engine : engines_of(problem))
    BOOST_TEST(item.exact_fault(item.run_plan(engine), elements) == "",
               engine << ": " << text_of(problem));
}

void check_chosen(const Problem& problem, const Scalars& scalars = {}) {
  OperationCase item(problem);
  item.scalars = scalars;
  item.fill_uniform(7);
  BOOST_TEST(check(item) == "");
}

// Calls body() for each of the eight layouts of three matrices.
template <class Body>
void for_each_layout(Product product, const Body& body) {
  for (int layout = 0; layout < 8; ++layout) {
    product.a_columns = layout & 1, product.b_columns = layout & 2, product.d_columns = layout & 4;
    body(product);
  }
}

EpilogueList biased(const Tensor& d, kilnActivationMode_t mode, const Tensor* z) {
  Tensor bias = d;
  std::fill_n(bias.dims.begin(), d.rank - 1, 1);
  bias.strides = dense_strides(KILN_TENSOR_NCHW, bias.rank, bias.dims);
  EpilogueList list{{.kind = Kind::bias, .tensor = bias}};
  if (z != nullptr) list.push_back({.kind = Kind::residual, .tensor = *z});
  list.push_back({.kind = Kind::activation, .activation = {mode, 0}});
  return list;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_engine_and_layout) {
  auto share = share_of_cases(8);
  for (const DataType type : all_types)
    for_each_layout({.rows = 24, .inner = 48, .columns = 40, .type = type}, [&](const Product& p) {
      if (share.takes(type, p.a_columns, p.b_columns, p.d_columns)) check_exactly(problem_of(p));
    });
}

BOOST_AUTO_TEST_CASE(the_chosen_kernels_with_random_data) {
  auto share = share_of_cases();
  for (const DataType type : all_types)
    for_each_layout({.rows = 50, .inner = 72, .columns = 56, .type = type}, [&](const Product& p) {
      if (share.takes(type, p.a_columns, p.b_columns, p.d_columns))
        check_chosen(problem_of(p), {.alpha = -0.5, .beta = p.a_columns ? 0.25 : 0});
    });
}

BOOST_AUTO_TEST_CASE(tf32_and_strict) {
  for (const kilnMathMode_t math : {KILN_MATH_TF32, KILN_MATH_STRICT})
    for_each_layout({.rows = 64, .inner = 32, .columns = 72, .math = math},
                    [&](const Product& p) { check_chosen(problem_of(p)); });
}

BOOST_AUTO_TEST_CASE(bias_residual_and_activation) {
  auto share = share_of_cases(3);
  for (const DataType type : all_types)
    for_each_layout({.rows = 20, .inner = 32, .columns = 24, .type = type}, [&](const Product& p) {
      if (!share.takes(type, p.a_columns, p.b_columns, p.d_columns)) return;
      Matrices m(p);
      Product other = p;
      other.d_columns = p.a_columns;
      const Tensor z = Matrices(other).d;
      check_chosen(problem_of(p, m, biased(m.d, KILN_ACTIVATION_GELU_TANH, &z)),
                   {.alpha = 0.5, .beta = -1});
    });
}

BOOST_AUTO_TEST_CASE(a_result_of_f32) {
  for_each_layout({.rows = 48, .inner = 64, .columns = 32, .type = KILN_DATA_HALF},
                  [&](const Product& p) {
                    Matrices m(p);
                    m.d.type = KILN_DATA_FLOAT;
                    check_exactly(problem_of(p, m));
                  });
}

// One row, one column, one product, sizes of no multiple, and many rows.
BOOST_AUTO_TEST_CASE(sizes) {
  constexpr std::int64_t all[][3] = {{1, 1, 1},   {1, 200, 37}, {37, 200, 1},  {3, 1, 5},
                                     {13, 17, 9}, {129, 65, 7}, {300, 40, 48}, {0, 5, 3}};
  for (const auto& [rows, inner, columns] : all)
    for (const DataType type : {KILN_DATA_FLOAT, KILN_DATA_HALF})
      for (const bool b_columns : {false, true})
        check_chosen(problem_of({.rows = rows,
                                 .inner = inner,
                                 .columns = columns,
                                 .type = type,
                                 .b_columns = b_columns}));
}

// Few rows by the weights of a layer, which have engines of their own.
BOOST_AUTO_TEST_CASE(few_rows) {
  auto share = share_of_cases(3);
  for (const DataType type : {KILN_DATA_FLOAT, KILN_DATA_HALF, KILN_DATA_BFLOAT16}) {
    const std::string engine = type == KILN_DATA_FLOAT ? "few_rows_fma" : "few_rows_mma";
    const std::int64_t most = type == KILN_DATA_FLOAT ? 8 : 16;
    for (const auto& [inner, columns] : {std::pair{8, 5}, {264, 40}, {1096, 33}})
      for (std::int64_t rows = 1; rows <= most; ++rows) {
        if (!share.takes(type, inner, rows)) continue;
        const Product p{
            .rows = rows, .inner = inner, .columns = columns, .type = type, .b_columns = true};
        const Matrices m(p);
        OperationCase item(problem_of(p, m, biased(m.d, KILN_ACTIVATION_SILU, &m.d)));
        item.scalars = {.alpha = -0.5, .beta = 2};
        item.fill_uniform(static_cast<unsigned>(rows));
        BOOST_TEST(check(item, engine) == "");
      }
  }
  // Rows and filters that are apart, and a result by columns.
  Matrices apart({.rows = 7, .inner = 64, .columns = 20, .type = KILN_DATA_HALF});
  apart.a.strides = {80, 1};
  apart.b.strides = {1, 72};
  apart.d.strides = {2, 15};
  OperationCase item(make_matmul({}, apart.a, apart.b, apart.d));
  item.fill_integers(3, 1);
  BOOST_TEST(item.exact_fault(item.run_plan("few_rows_mma")) == "");
}

// Every number of rows runs the right kernel, and numbers that are near each other the same one.
BOOST_AUTO_TEST_CASE(rows_share_kernels) {
  const auto engine_and_tile = [](std::int64_t rows) {
    const Product p{
        .rows = rows, .inner = 1024, .columns = 1024, .type = KILN_DATA_HALF, .b_columns = true};
    std::vector<EngineRefusal> refusals;
    DeviceDescription h200 = device()->description();
    h200.kind = KILN_DEVICE_CUDA;
    h200.arch = "sm_90a";
    h200.compute_capability = 90;
    h200.multiprocessors = 132;
    const Proposal proposal = choose(problem_of(p), h200, {}, refusals);
    return cat(proposal.first().kernel.engine, " ", proposal.first().kernel.tile);
  };
  BOOST_TEST(engine_and_tile(8100) == engine_and_tile(8192));
  BOOST_TEST(engine_and_tile(8192) != engine_and_tile(128));
}

BOOST_AUTO_TEST_CASE(batches) {
  auto share = share_of_cases(4);
  for (const DataType type : all_types)
    for_each_layout({.rows = 20, .inner = 32, .columns = 24, .batch = 3, .type = type},
                    [&](const Product& p) {
                      if (!share.takes(type, p.a_columns, p.b_columns, p.d_columns)) return;
                      check_chosen(problem_of(p), {.alpha = 2, .beta = -1});
                      check_exactly(problem_of(p));
                    });
}

// Several tiles of each matrix by the dense kernel, as they lie, shared, and with an epilogue.
BOOST_AUTO_TEST_CASE(dense_batches) {
  const std::string engine = "dense_nhwc_wgmma";
  for (const DataType type : {KILN_DATA_HALF, KILN_DATA_BFLOAT16, KILN_DATA_FLOAT})
    for (const bool b_columns : {true, false}) {
      if (type == KILN_DATA_FLOAT && !b_columns) continue;
      const Product p{.rows = 150,
                      .inner = 136,
                      .columns = 200,
                      .batch = 3,
                      .type = type,
                      .b_columns = b_columns,
                      .math = KILN_MATH_TF32};
      const Matrices m(p);
      OperationCase plain(problem_of(p, m));
      plain.fill_integers(5, 1);
      BOOST_TEST(plain.exact_fault(plain.run_plan(engine)) == "");
      OperationCase fused(problem_of(p, m, biased(m.d, KILN_ACTIVATION_TANH, &m.d)));
      fused.scalars = {.alpha = 0.5, .beta = -1};
      fused.fill_uniform(8);
      BOOST_TEST(check(fused, engine) == "");
      Matrices shared(p);
      shared.a.strides[0] = 0;
      shared.d.strides[0] = 256 * 208;
      shared.d.strides[1] = 208;
      OperationCase one(problem_of(p, shared));
      one.scalars.beta = 1;
      one.fill_integers(6, 1);
      BOOST_TEST(one.exact_fault(one.run_plan(engine)) == "");
      shared = Matrices(p);
      shared.b.dims[0] = 1;
      OperationCase other(problem_of(p, shared));
      other.fill_integers(7, 1);
      BOOST_TEST(other.exact_fault(other.run_plan(engine)) == "");
    }
}

// One matrix for all, matrices beside each other, matrices in any order, and a bias for all.
BOOST_AUTO_TEST_CASE(batches_that_lie_anywhere) {
  const Product p{.rows = 20, .inner = 32, .columns = 24, .batch = 5, .type = KILN_DATA_HALF};
  Matrices shared(p);
  shared.a.strides[0] = 0;
  check_exactly(problem_of(p, shared));
  shared = Matrices(p);
  shared.b.dims[0] = 1;
  check_exactly(problem_of(p, shared));
  Matrices heads(p);
  heads.a.strides = {32, 160, 1};
  heads.b.strides = {32, 1, 160};
  heads.d.strides = {24, 120, 1};
  check_exactly(problem_of(p, heads));
  check_chosen(problem_of(p, heads, biased(heads.d, KILN_ACTIVATION_RELU, &heads.d)), {.beta = 1});
  Matrices odd(p);
  odd.a.strides = {3, 700, 20};
  odd.d.strides = {2, 10, 201};
  check_exactly(problem_of(p, odd));
}

// Operands that are only aligned to their elements, which the problem announces.
BOOST_AUTO_TEST_CASE(alignment_of_an_element) {
  for (const DataType type : {KILN_DATA_FLOAT, KILN_DATA_HALF})
    for (const std::int64_t batch : {0, 2}) {
      const Product p{.rows = 32,
                      .inner = 32,
                      .columns = 32,
                      .batch = batch,
                      .type = type,
                      .b_columns = true,
                      .alignment = static_cast<std::int64_t>(size_of(type))};
      OperationCase item(problem_of(p));
      item.fill_integers(4, 1);
      BOOST_TEST(item.exact_fault(run_shifted(item, 1)) == "");
    }
}

BOOST_AUTO_TEST_CASE(elements_far_apart) {
  constexpr std::int64_t beyond = (std::int64_t{1} << 31) + 640;  // elements
  for (const std::int64_t batch : {0, 2}) {
    const Product p{.rows = 3, .inner = 4, .columns = 5, .batch = batch, .type = KILN_DATA_HALF};
    OperationCase item(problem_of(p));
    item.fill_integers(6, 1);
    for (Tensor Matrices::*const tensor : {&Matrices::a, &Matrices::b, &Matrices::d}) {
      Matrices far(p);
      (far.*tensor).strides[0] = beyond;
      const Problem wide = problem_of(p, far);
      BOOST_TEST(item.exact_fault(run_wide(item, wide)) == "", text_of(wide));
    }
  }
}

BOOST_AUTO_TEST_CASE(infinities_and_nan) {
  for_each_layout({.rows = 20, .inner = 32, .columns = 24}, [&](const Product& p) {
    OperationCase item(problem_of(p));
    item.fill_uniform(2);
    item["a"].at(40) = std::numeric_limits<double>::infinity();
    item["b"].at(77) = std::nan("");
    BOOST_TEST(check(item) == "");
  });
}

BOOST_AUTO_TEST_SUITE_END()
