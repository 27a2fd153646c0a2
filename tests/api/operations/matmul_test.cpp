// Products of matrices: what they compute, and what they refuse.
#include "operation_check.hpp"

using namespace test;

namespace {

using Kind = EpilogueOperation::Kind;

struct ProductDesc : Object<kilnMatmulDescriptor_t, kilnDestroyMatmulDescriptor> {
  ProductDesc() : Object(kilnCreateMatmulDescriptor) {}
};
struct ListDesc : Object<kilnEpilogueDescriptor_t, kilnDestroyEpilogueDescriptor> {
  ListDesc() : Object(kilnCreateEpilogueDescriptor) {}
};

struct Matrices {
  Tensor a, b, d;
  explicit Matrices(DataType type)
      : a(tensor(type, {6, 10})), b(tensor(type, {10, 8})), d(tensor(type, {6, 8})) {}
};

// Of a list of a residual and a bias, in this order, or of none.
void check_product(const Matrices& m, bool listed) {
  const auto a = describe(m.a), b = describe(m.b), d = describe(m.d);
  const int rank = m.d.rank;
  Sizes sizes(static_cast<std::size_t>(rank), 1);
  sizes.back() = m.d.dims[rank - 1];
  const Tensor bias = tensor(m.d.type, sizes);
  const auto of_bias = describe(bias);
  const auto list = std::make_shared<ListDesc>();
  succeeds(kilnAddEpilogueResidual(*list, *d));
  succeeds(kilnAddEpilogueBias(*list, *of_bias));
  const kilnEpilogueDescriptor_t epilogue =
      listed ? static_cast<kilnEpilogueDescriptor_t>(*list) : nullptr;
  const int count = listed ? 2 : 0;
  Calls calls{.operation = "Matmul", .names = {"a", "b"}};
  if (listed) calls.names.insert(calls.names.end(), {"operands[0]", "operands[1]"});
  if (listed) calls.in_place = {"operands[0]"};
  calls.names.emplace_back("d");
  const auto operands = [=](const Arguments& x) {
    return listed ? std::vector<const void*>{x.at[2], x.at[3]} : std::vector<const void*>{};
  };
  calls.create = [=](kilnHandle_t h, kilnPlan_t* plan) {
    return kilnCreateMatmulPlan(h, nullptr, *a, *b, epilogue, *d, plan);
  };
  calls.execute = [=](kilnHandle_t h, kilnPlan_t plan, const Arguments& x) {
    return kilnExecuteMatmul(h, plan, x.alpha, x.at[0], x.at[1], x.beta, count, operands(x).data(),
                             x.at.back());
  };
  calls.immediate = [=, keep = list](kilnHandle_t h, const Arguments& x) {
    return kilnMatmul(h, nullptr, x.alpha, *a, x.at[0], *b, x.at[1], x.beta, epilogue, count,
                      operands(x).data(), *d, x.at.back());
  };
  EpilogueList own;
  if (listed) own = {{.kind = Kind::residual, .tensor = m.d}, {.kind = Kind::bias, .tensor = bias}};
  check(make_matmul({}, m.a, m.b, m.d, own), calls);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(matmul)

BOOST_AUTO_TEST_CASE(layers_and_gradients) {
  check_product(Matrices(KILN_DATA_FLOAT), false);
  Matrices layer(KILN_DATA_HALF);
  layer.b.strides = {1, 10};
  check_product(layer, true);
  Matrices gradient(KILN_DATA_DOUBLE);
  gradient.a.strides = {1, 6};
  check_product(gradient, false);
  gradient.d.type = KILN_DATA_DOUBLE;
  gradient.d.strides = {1, 7};
  check_product(gradient, false);
}

BOOST_AUTO_TEST_CASE(batches) {
  Matrices m(KILN_DATA_BFLOAT16);
  m.a = tensor(m.a.type, {3, 6, 10});
  m.b = tensor(m.b.type, {1, 10, 8});
  m.d = tensor(m.d.type, {3, 6, 8});
  check_product(m, true);
  check_product(m, false);
}

BOOST_AUTO_TEST_CASE(descriptor) {
  const ProductDesc product;
  kilnMathMode_t math{};
  std::int64_t alignment = 0;
  succeeds(kilnGetMatmulDescriptor(product, &math, &alignment));
  BOOST_TEST(math == KILN_MATH_DEFAULT);
  BOOST_TEST(alignment == 16);
  succeeds(kilnSetMatmulDescriptor(product, KILN_MATH_TF32, 4));
  succeeds(kilnGetMatmulDescriptor(product, nullptr, nullptr));
  succeeds(kilnGetMatmulDescriptor(product, &math, &alignment));
  BOOST_TEST(math == KILN_MATH_TF32);
  BOOST_TEST(alignment == 4);
  bad_param(kilnSetMatmulDescriptor(product, KILN_MATH_TF32, 3), {"alignment is 3; expected a "});
  bad_param(kilnSetMatmulDescriptor(product, static_cast<kilnMathMode_t>(7), 4), {"mathMode is "});
  bad_param(kilnSetMatmulDescriptor(nullptr, KILN_MATH_TF32, 4), {"descriptor is null"});
  bad_param(kilnGetMatmulDescriptor(nullptr, &math, &alignment), {"descriptor is null"});
  bad_param(kilnCreateMatmulDescriptor(nullptr), {"descriptor is null"});
  succeeds(kilnDestroyMatmulDescriptor(nullptr));
}

BOOST_AUTO_TEST_CASE(refusals) {
  const TestHandle handle;
  const Matrices m(KILN_DATA_FLOAT);
  const auto a = describe(m.a), b = describe(m.b), d = describe(m.d);
  kilnPlan_t plan = nullptr;
  bad_param(kilnCreateMatmulPlan(handle, nullptr, nullptr, *b, nullptr, *d, &plan),
            {"kilnCreateMatmulPlan: aDesc is null"});
  bad_param(kilnCreateMatmulPlan(handle, nullptr, *b, *a, nullptr, *d, &plan),
            {"bDesc has sizes 6x10, so 6 rows; expected 8, the columns of aDesc"});
  const auto wrong =
      reinterpret_cast<kilnMatmulDescriptor_t>(static_cast<kilnTensorDescriptor_t>(*a));
  bad_param(kilnCreateMatmulPlan(handle, wrong, *a, *b, nullptr, *d, &plan),
            {"matmulDesc is not a matrix product's descriptor"});
  const ListDesc list;
  succeeds(kilnAddEpilogueMoments(list));
  fails(kilnCreateMatmulPlan(handle, nullptr, *a, *b, list, *d, &plan), KILN_STATUS_NOT_SUPPORTED,
        {"operation 0 of the epilogue is moments"});
  const float one = 1;
  float element = 0;
  void* const p = &element;
  succeeds(kilnCreateMatmulPlan(handle, nullptr, *a, *b, nullptr, *d, &plan));
  succeeds(kilnFinalizePlan(plan));
  const void* const operands[] = {p};
  bad_param(kilnExecuteMatmul(handle, plan, &one, p, p, &one, 1, operands, p),
            {"operandCount is 1; expected 0"});
  succeeds(kilnDestroyPlan(plan));
}

// Addresses of less than 16 bytes' alignment, for a plan that knows and one that does not.
BOOST_AUTO_TEST_CASE(alignment) {
  const TestHandle handle;
  const auto a = describe(tensor(KILN_DATA_HALF, {64, 64})),
             b = describe(tensor(KILN_DATA_HALF, {64, 64}, Sizes{1, 64})),
             d = describe(tensor(KILN_DATA_HALF, {64, 64}));
  Buffer<std::uint16_t> x(std::vector<std::uint16_t>(64 * 64 + 8)), y(x.read()), z(x.read());
  const float one = 1, zero = 0;
  const ProductDesc product;
  succeeds(kilnSetMatmulDescriptor(product, KILN_MATH_DEFAULT, 2));
  succeeds(kilnMatmul(handle, product, &one, *a, x.data() + 1, *b, y.data() + 1, &zero, nullptr, 0,
                      nullptr, *d, z.data() + 1));
  bad_param(kilnMatmul(handle, nullptr, &one, *a, x.data() + 1, *b, y.data(), &zero, nullptr, 0,
                       nullptr, *d, z.data()),
            {"a is at ", "as the matrix product's alignment has it (kilnSetMatmulDescriptor)"});
}

BOOST_AUTO_TEST_SUITE_END()
