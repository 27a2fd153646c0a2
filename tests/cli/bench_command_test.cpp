// kiln bench: its command line and a small run on the host device; and, on measurements made up for
// the purpose, statistics, turns, table, CSV and JSON.
#include <array>
#include <boost/test/unit_test.hpp>

#include "cli/bench/lowered_product.hpp"
#include "cli/bench/measurement.hpp"
#include "cli/bench/peer.hpp"
#include "cli/bench/row.hpp"
#include "core/error.hpp"
#include "problem/line/problem_line.hpp"
#include "reference/reference.hpp"
#include "run_kiln.hpp"

namespace bench = kiln::cli::bench;
using bench::Contestant;
using bench::Row;
using kiln_test::Finished;
using kiln_test::Kiln;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

Row made_up(const std::string& contestant, double median) {
  Row row;
  row.suite = "paper";
  row.layer = "L2";
  row.operation = "conv";
  row.direction = "fwd";
  row.type = "f32";
  row.layout = "nchw";
  row.math = "default";
  row.batch = 128;
  row.contestant = contestant;
  row.kernel = "engine 8x8, 4 stages";
  row.times = bench::Times{median, median / 2, 2 * median, 9};
  row.flops = 4e12;
  row.bytes = 2e9;
  row.problem = "conv g1mb128";
  return row;
}

const bench::Machine machine{{"date", "2026-01-02"}, {"device", "a chip"}};

}  // namespace

BOOST_AUTO_TEST_SUITE(bench_command)

BOOST_AUTO_TEST_CASE(help_names_the_flags) {
  const Finished finished = Kiln()({"bench", "--help"});
  BOOST_TEST(finished.status == 0);
  for (const char* flag : {"--suite", "--layers", "--dir", "--dt", "--layout", "--math", "--mb",
                           "--against", "--samples", "--csv", "--json", "--list"})
    BOOST_TEST(contains(finished.out, flag));
}

BOOST_AUTO_TEST_CASE(list_needs_no_gpu) {
  const Kiln kiln;
  const Finished finished = kiln({"bench", "--list"});
  BOOST_TEST_INFO(finished.out << finished.err);
  BOOST_TEST(finished.status == 0);
  // Five layers, two batch sizes, three directions.
  BOOST_TEST(count(finished.out, "\npaper  ") + finished.out.starts_with("paper  ") == 30);
  BOOST_TEST(contains(finished.out, "paper  L5  default  conv --dir wgrad g1mb16_ic128ih13"));
  BOOST_TEST(contains(finished.out, "memory  max pool 3x3/2 96x118x118  pool "));
  BOOST_TEST(contains(finished.out, "latency  small convolution"));

  // As many as the file has layers.
  BOOST_TEST(kiln({"bench", "--list", "--suite", "resnet50"}).lines().size() == 24u);
  BOOST_TEST(kiln({"bench", "--list", "--suite", "vgg16"}).lines().size() == 10u);
  // The mode is of f32 alone.
  const Finished few =
      kiln({"bench", "--list", "--suite", "paper", "--layers", "L2,L3", "--mb", "32", "--dir",
            "dgrad", "--dt", "f32,f64", "--math", "strict,tf32", "--layout", "nhwc"});
  BOOST_TEST_INFO(few.out << few.err);
  const auto lines = few.lines();
  BOOST_REQUIRE(lines.size() == 7u);
  BOOST_TEST(lines[0].starts_with(
      "paper  L2  strict  conv --dir dgrad --layout nhwc --math strict g1mb32_"));
  BOOST_TEST(lines[3].starts_with("paper  L3  tf32  "));
  BOOST_TEST(lines[4].starts_with("paper  L2  default  conv --dir dgrad --dt f64 "));
  BOOST_TEST(lines[6] == "6 cases");
}

BOOST_AUTO_TEST_CASE(wrong_command_lines) {
  const Kiln kiln;
  const std::string bad = kiln.directory.write("bad", "# a comment\nic3ih6oc4kh9\n");
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--suite", "alexnet"}, "alexnet"},
      {{"--dt", "f8"}, "f8"},
      {{"--math", "fast"}, "fast"},
      {{"--against", "onednn"}, "onednn"},
      {{"--samples", "0"}, "--samples"},
      {{"--mb", "-1"}, "--mb"},
      {{"--list", "--layers", "L9", "--suite", "paper"}, "no case is left"},
      {{"--list", "--batch", "/nonexistent"}, "/nonexistent"},
      {{"--list", "--batch", bad}, bad + ":2: "},
  };
  for (const auto& [arguments, expected] : cases) {
    std::vector<std::string> all{"bench"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Finished finished = kiln(all);
    BOOST_TEST_INFO(finished.out << finished.err);
    BOOST_TEST(finished.status == 2);
    BOOST_TEST(contains(finished.err, expected));
    BOOST_TEST(finished.out == "");
  }
}

BOOST_AUTO_TEST_CASE(no_gpu_is_a_sentence) {
  Kiln kiln;
  kiln.environment["CUDA_VISIBLE_DEVICES"] = "";
  const Finished finished = kiln({"bench", "--against", "cudnn,cublas"});
  BOOST_TEST(finished.status == 2);
  BOOST_TEST(finished.err.starts_with("kiln: no GPU ("));
}

BOOST_AUTO_TEST_CASE(a_run_on_the_host_device) {
  const Kiln kiln;
  const std::string layers =
      kiln.directory.write("layers", "mb2ic3ih6oc4kh3ph1n\"one\"\nmb2ic4ih6oc4kh3ph1g2n\"two\"\n");
  const std::string csv = kiln.directory / "out.csv", json = kiln.directory / "out.json";
  const Finished finished =
      kiln({"bench", "--device", "host", "--batch", layers, "--suite", "latency", "--samples", "3",
            "--warm-up", "0", "--against", "cudnn", "--csv", csv, "--json", json});
  BOOST_TEST_INFO(finished.out << finished.err);
  BOOST_TEST(finished.status == 0);
  BOOST_TEST(contains(finished.out, "cudnn: none: not on the host device"));
  BOOST_TEST(contains(finished.out, "3 of 3 cases"));
  const std::string text = kiln_test::read(csv);
  BOOST_TEST(count(text, "\nbatch,") == 4);  // kiln and the ceiling, twice
  BOOST_TEST(contains(text, "\nbatch,one,2,conv,fwd,f32,nchw,default,kiln,"));
  for (const char* what : {"\"plan, compiled\"", "\"plan, from memory\"",
                           "\"kernel from the disk cache, loaded\"", "call"})
    BOOST_TEST(contains(text, std::string("\nlatency,") + what));
  const auto parsed = nlohmann::json::parse(kiln_test::read(json));
  bool seen = false;
  for (const auto& row : parsed["rows"])
    if (row["layer"] == "one" && row["contestant"] == "kiln") {
      seen = true;
      BOOST_TEST(row["time_us"]["samples"] == 3);
      BOOST_TEST(row["errors"]["relative_rms"].get<double>() < 1e-6);
      BOOST_TEST(row["errors"]["relative_rms"].get<double>() > 0);
      BOOST_TEST(row["note"] == "");
    }
  BOOST_TEST(seen);
}

// Every case that comes after the limit is told of.
BOOST_AUTO_TEST_CASE(time_limit) {
  const Kiln kiln;
  const std::string layers = kiln.directory.write("layers", "mb2ic3ih6oc4kh3ph1\n");
  const Finished finished =
      kiln({"bench", "--device", "host", "--batch", layers, "--time-limit", "0.000001"});
  BOOST_TEST(finished.status == 0);
  BOOST_TEST(contains(finished.out, "0 of 1 cases"));
  BOOST_TEST(contains(finished.out, "left out at --time-limit"));
}

BOOST_AUTO_TEST_CASE(a_peer_that_is_not_there) {
  const auto device = kiln::open_host_device();
  const auto says = [](const std::string& part) {
    return [part](const kiln::Error& error) {
      return error.status() == KILN_STATUS_NO_DEVICE && contains(error.what(), part);
    };
  };
  BOOST_CHECK_EXCEPTION(bench::open_cudnn(*device, "/nonexistent/libcudnn.so"), kiln::Error,
                        says("--cudnn is /nonexistent/libcudnn.so, which cannot be opened"));
  BOOST_CHECK_EXCEPTION(bench::open_cublas(*device, "/nonexistent/libcublas.so"), kiln::Error,
                        says("--cublas is /nonexistent/libcublas.so, which cannot be opened"));
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
  selection.layers = {"gelu", "relu 64"};
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

BOOST_AUTO_TEST_CASE(medians) {
  const bench::Times odd = bench::times_of({5, 1, 9});
  BOOST_TEST(odd.median == 5);
  BOOST_TEST(odd.min == 1);
  BOOST_TEST(odd.max == 9);
  BOOST_TEST(odd.samples == 3);
  BOOST_TEST(bench::times_of({4, 1, 9, 2}).median == 3);
  BOOST_TEST(bench::times_of({7}).median == 7);
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

BOOST_AUTO_TEST_CASE(rates) {
  const Row row = made_up("kiln", 100e3);  // a tenth of a second
  BOOST_TEST(row.teraflops() == 40, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(row.gigabytes() == 20, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(row.rate() == "40.0 TFLOP/s");
  Row bytes = row;
  bytes.flops = 0;
  BOOST_TEST(bytes.rate() == "20.0 GB/s");
  bytes.times.reset();
  BOOST_TEST(bytes.rate() == "");
  BOOST_TEST(bytes.gigabytes() == 0);
}

BOOST_AUTO_TEST_CASE(csv_fields) {
  Row refused = made_up("cudnn legacy zero", 1);
  refused.times.reset();
  refused.note = "cudnnConvolutionForward: \"no\",\nreally";
  Row checked = made_up("kiln", 100e3);
  checked.relative_rms = 1.5e-7;
  checked.workspace = 4096;
  const std::string text = bench::csv_text(machine, {checked, refused});
  BOOST_TEST(text.starts_with("# date: 2026-01-02\n# device: a chip\nsuite,layer,batch,"));
  BOOST_TEST(contains(text,
                      "\npaper,L2,128,conv,fwd,f32,nchw,default,kiln,\"engine 8x8, 4 stages\","
                      "device,100000,50000.0,200000,9,40.0000,20.0000,4000000000000,2000000000,"
                      "4096,1.500e-07,,,conv g1mb128\n"));
  BOOST_TEST(contains(text, ",\"cudnnConvolutionForward: \"\"no\"\",\nreally\",conv g1mb128\n"));
  // Every row has the header's number of fields.
  const std::string header = bench::csv_header();
  Row plain = made_up("kiln", 1);
  plain.kernel = "one";
  BOOST_TEST(count(bench::csv_line(plain), ",") == count(header, ","));
}

BOOST_AUTO_TEST_CASE(json_text) {
  Row refused = made_up("cublas gemm", 1);
  refused.times.reset();
  refused.note = "groups is 2";
  const auto json = bench::json_of(machine, {made_up("kiln", 100e3), refused});
  BOOST_TEST(json["machine"]["device"] == "a chip");
  BOOST_REQUIRE(json["rows"].size() == 2u);
  BOOST_TEST(json["rows"][0]["time_us"]["min"] == 50e3);
  BOOST_TEST(json["rows"][0]["clock"] == "device");
  BOOST_TEST(!json["rows"][0].contains("errors"));
  BOOST_TEST(!json["rows"][1].contains("time_us"));
  BOOST_TEST(json["rows"][1]["note"] == "groups is 2");
}

BOOST_AUTO_TEST_CASE(table_lines) {
  const Row kiln = made_up("kiln", 100e3);
  Row peer = made_up("cudnn legacy any", 125e3);
  peer.workspace = 3 << 20;
  peer.relative_rms = 2e-7;
  BOOST_TEST(bench::table_headline(kiln) == "paper L2 N=128 fwd f32 nchw default\n");
  const std::string own = bench::table_line(kiln, &kiln), other = bench::table_line(peer, &kiln);
  BOOST_TEST(contains(own, "40.0 TFLOP/s"));
  BOOST_TEST(!contains(own, "1.00x"));
  BOOST_TEST(contains(other, "32.0 TFLOP/s"));
  BOOST_TEST(contains(other, "1.25x"));
  BOOST_TEST(contains(other, "rel 2.0e-07"));
  BOOST_TEST(contains(other, "+3.0 MiB"));
  // A ceiling does another amount of work: rates are compared, not times.
  Row ceiling = made_up("fma peak", 1e3);
  ceiling.flops = 6e10;
  BOOST_TEST(contains(bench::table_line(ceiling, &kiln), "0.67x"));
  peer.times.reset();
  peer.note = "no algorithm takes it\nand more";
  BOOST_TEST(bench::table_line(peer, &kiln) == "  cudnn legacy any  no algorithm takes it\n");
  peer.note = std::string(1000, 'x');
  BOOST_TEST(bench::table_line(peer, &kiln).size() < 200);
}

BOOST_AUTO_TEST_SUITE_END()
