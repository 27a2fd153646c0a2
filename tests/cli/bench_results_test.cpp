// What kiln bench makes of its measurements, on rows made up for the purpose: statistics, rates,
// table, CSV and JSON.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "cli/bench/measurement.hpp"
#include "cli/bench/row.hpp"
#include "support/text.hpp"

namespace bench = kiln::cli::bench;
using bench::Row;
using kiln_test::contains;
using kiln_test::count_of;

namespace {

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

BOOST_AUTO_TEST_SUITE(bench_results)

BOOST_AUTO_TEST_CASE(medians) {
  const bench::Times odd = bench::times_of({5, 1, 9});
  BOOST_TEST(odd.median == 5);
  BOOST_TEST(odd.min == 1);
  BOOST_TEST(odd.max == 9);
  BOOST_TEST(odd.samples == 3);
  BOOST_TEST(bench::times_of({4, 1, 9, 2}).median == 3);
  BOOST_TEST(bench::times_of({7}).median == 7);
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
  BOOST_TEST(count_of(bench::csv_line(plain), ",") == count_of(header, ","));
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
