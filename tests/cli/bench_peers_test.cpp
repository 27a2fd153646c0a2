// What kiln bench measures beside Kiln: libraries that are missing or refuse, matrix products in
// place of a convolution, and how contestants take turns.
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstring>

#include "cli/bench/lowered_product.hpp"
#include "cli/bench/measurement.hpp"
#include "cli/bench/peer.hpp"
#include "core/error.hpp"
#include "problem/line/problem_line.hpp"
#include "reference/reference.hpp"
#include "support/text.hpp"

namespace bench = kiln::cli::bench;
using bench::Contestant;
using kiln_test::contains;

BOOST_AUTO_TEST_SUITE(bench_peers)

BOOST_AUTO_TEST_CASE(a_peer_that_is_not_there) {
  const auto device = kiln::open_host_device();
  const auto says = [](const std::string& part) {
    return [part](const kiln::Error& error) {
      return error.status() == KILN_STATUS_NO_DEVICE && contains(error.what(), part);
    };
  };
  BOOST_CHECK_EXCEPTION(bench::open_cudnn(*device, "/dev/null/libcudnn.so"), kiln::Error,
                        says("--cudnn is /dev/null/libcudnn.so, which cannot be used"));
  BOOST_CHECK_EXCEPTION(bench::open_cublas(*device, "/dev/null/libcublas.so"), kiln::Error,
                        says("--cublas is /dev/null/libcublas.so, which cannot be used"));
  // Kiln is no peer of Kiln's.
  BOOST_CHECK_EXCEPTION(bench::open_cudnn(*device, KILN_OWN_CUDNN), kiln::Error,
                        says(KILN_OWN_CUDNN " is Kiln's own"));
  // A library, but not that one.
  BOOST_CHECK_EXCEPTION(bench::open_cublas(*device, "libm.so.6"), kiln::Error,
                        says("libm.so.6 has no function cublasCreate_v2"));
}

// Every algorithm is tried; those that work compete for two roles, and what does not work is told.
BOOST_AUTO_TEST_CASE(cudnn_algorithms) {
  const auto device = kiln::open_host_device();
  const auto peer = bench::open_cudnn(*device, KILN_FAKE_CUDNN);
  BOOST_TEST(peer->version().starts_with("9.19.0 (legacy algorithm interface, "));
  bench::Selection selection;
  selection.lines_from = "here";
  selection.lines = "mb2ic3ih6oc4kh3ph1\n";
  selection.directions = {"fwd", "dgrad"};
  const auto cases = bench::cases_of(selection);
  bench::RandomPool pool(*device, 1);
  bench::Operands operands(*device, pool, cases.at(0));
  auto contestants = peer->contestants(cases[0], operands, pool);
  BOOST_REQUIRE(contestants.size() >= 1u);
  std::string zero, any;
  for (const Contestant& contestant : contestants) {
    BOOST_TEST(contestant.refusal == "");
    contestant.execute(operands.set(0));
    float written = 0;
    std::memcpy(&written, operands.set(0).operands[2], sizeof written);
    const bool without = contestant.kernel == "implicit_gemm (fma math)";
    BOOST_TEST(written == (without ? 1 : 2));
    BOOST_TEST(contestant.workspace == (without ? 0u : 4096u));
    if (!without) BOOST_TEST(contestant.kernel == "implicit_precomp_gemm (fma math)");
    for (const std::string& role : contestant.roles) {
      if (role == "cudnn legacy zero") zero += contestant.kernel;
      if (role == "cudnn legacy any") any += contestant.kernel;
    }
  }
  BOOST_TEST(zero == "implicit_gemm (fma math)");
  BOOST_TEST(any != "");

  bench::Operands gradient(*device, pool, cases.at(1));
  contestants = peer->contestants(cases[1], gradient, pool);
  BOOST_REQUIRE(contestants.size() == 1u);
  BOOST_TEST(!contestants[0].execute);
  BOOST_TEST(contestants[0].roles.size() == 2u);
  BOOST_TEST(contains(contestants[0].refusal,
                      "algo_0 (fma math): cudnnGetConvolutionBackwardDataWorkspaceSize: "
                      "CUDNN_STATUS_NOT_SUPPORTED (3000)"));

  // What the legacy interface refuses is a row that says so.
  selection = {};
  selection.suites = {"memory"};
  selection.layers = {"gelu (erf) 64", "relu 64"};
  selection.types = {"f32"};
  selection.layouts = {"nchw"};
  selection.batches = {16};
  const auto memory_bound = bench::cases_of(selection);
  BOOST_REQUIRE(memory_bound.size() == 2u);
  const std::string expected[] = {"cudnnCreateActivationDescriptor: CUDNN_STATUS_NOT_SUPPORTED",
                                  "cuDNN's legacy interface has no gelu"};
  for (int i = 0; i < 2; ++i) {
    bench::Operands own(*device, pool, memory_bound[i]);
    const auto refused = peer->contestants(memory_bound[i], own, pool);
    BOOST_REQUIRE(refused.size() == 1u);
    BOOST_TEST(refused[0].roles[0] == "cudnn legacy");
    BOOST_TEST(contains(refused[0].refusal, expected[i]));
  }
}

// With a filter of one tap the image is its own lowered form, so that the product must give what
// the convolution gives (in NCHW, where an image's channels are apart, of one image).
BOOST_AUTO_TEST_CASE(lowered_products_are_the_convolution) {
  using kiln::cli::bench::LoweredProduct;
  for (const bool nhwc : {false, true})
    for (const int pass : {0, 1, 2}) {
      const auto o = kiln::describe_convolution(
          kiln::parse_convolution_line(nhwc ? "mb3ic5ih4iw2oc7kh1" : "mb1ic5ih4iw3oc7kh1"),
          KILN_DATA_DOUBLE, nhwc ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW, KILN_CROSS_CORRELATION);
      const kiln::ConvolutionProblem problem =
          pass == 0   ? kiln::make_convolution(o.spec, o.x, o.w, o.y)
          : pass == 1 ? kiln::make_convolution_dgrad(o.spec, o.w, o.y, o.x)
                      : kiln::make_convolution_wgrad(o.spec, o.x, o.y, o.w);
      const LoweredProduct product = bench::lowered_product(problem, nhwc);
      // By LoweredProduct::Matrix.
      std::array<std::vector<double>, 3> matrices;
      matrices[LoweredProduct::filter].resize(kiln::span_elements(o.w));
      matrices[LoweredProduct::lowered].resize(kiln::span_elements(o.x));
      matrices[LoweredProduct::image].resize(kiln::span_elements(o.y));
      double value = 0.1;
      for (auto& matrix : matrices)
        for (double& element : matrix) element = value = 3.7 * value * (1 - value);
      std::vector<double>& a = matrices[product.a];
      std::vector<double>& b = matrices[product.b];
      std::vector<double> c(matrices[product.c].size());
      BOOST_REQUIRE(product.m * product.n == static_cast<std::int64_t>(c.size()));
      for (std::int64_t i = 0; i < product.m; ++i)
        for (std::int64_t j = 0; j < product.n; ++j)
          for (std::int64_t l = 0; l < product.k; ++l)
            c.at(i + j * product.ldc) +=
                a.at(product.transpose_a ? l + i * product.lda : i + l * product.lda) *
                b.at(product.transpose_b ? j + l * product.ldb : l + j * product.ldb);

      std::vector<const void*> operands;
      const auto add = [&](LoweredProduct::Matrix matrix) {
        operands.push_back(matrices[matrix].data());
      };
      if (pass != 1) add(LoweredProduct::lowered);
      if (pass != 2) add(LoweredProduct::filter);
      if (pass != 0) add(LoweredProduct::image);
      add(product.c);
      const kiln::Operand result = kiln::operands_of(problem).back();
      std::vector<std::int64_t> indices(result.count());
      for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
      const auto expected = kiln::reference::expect(problem, {}, operands, indices);
      for (std::size_t i = 0; i < indices.size(); ++i)
        BOOST_TEST(c[result.offset(indices[i])] == expected[i].value,
                   boost::test_tools::tolerance(1e-12));
    }
}

// Samples alternate, a sample lasts as long as it must, and one that fails stops nobody.
BOOST_AUTO_TEST_CASE(contestants_take_turns) {
  const auto device = kiln::open_host_device();
  std::string turns;
  const auto contestant = [&](char name, int failing_after) {
    Contestant made;
    made.execute = [&turns, name, failing_after, executed = 0](const bench::BufferSet&) mutable {
      if (executed++ == failing_after) kiln::fail(KILN_STATUS_EXECUTION_FAILED, "status 7");
      turns += name;
    };
    return made;
  };
  const std::vector<Contestant> all{contestant('a', -1), contestant('b', 3), contestant('c', -1),
                                    bench::refusal({"d"}, "not today")};
  int sets = 0;
  // No warm-up and a sample of no length: one execution each.
  const auto measured = bench::measure(*device, all,
                                       [&] {
                                         return bench::BufferSet{sets++, {}};
                                       },
                                       {4, 0, 0});
  BOOST_REQUIRE(measured.size() == 4u);
  BOOST_TEST(measured[0].failure == "");
  BOOST_TEST(measured[0].times.samples == 4);
  BOOST_TEST(measured[1].failure == "status 7");
  BOOST_TEST(measured[2].times.samples == 4);
  BOOST_TEST(measured[3].failure == "not today");
  BOOST_TEST(contains(turns, "abcabcacac"));
  BOOST_TEST(sets == static_cast<int>(turns.size()) + 1);  // and the one that failed

  int executions = 0;
  Contestant quick;
  quick.execute = [&](const bench::BufferSet&) { ++executions; };
  const auto long_samples =
      bench::measure(*device, std::array{quick}, [] { return bench::BufferSet{}; }, {3, 1, 2});
  BOOST_TEST(executions > 1000);
  BOOST_TEST(long_samples[0].times.median < 1);  // microseconds of one
}

BOOST_AUTO_TEST_SUITE_END()
