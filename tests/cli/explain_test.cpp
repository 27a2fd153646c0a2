// kiln cache verify, prune, why, extract; kiln bundle; manifests and descriptions of devices.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "run_kiln.hpp"

using kiln_test::Finished;
using kiln_test::Kiln;

namespace {

const std::string tiny = "mb2_ic3ih6_oc4_kh3ph1";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Fixture {
  Kiln kiln;
  bool has_nvrtc = !contains(kiln({"info"}).out, "nvrtc                none");

  // A bundle of these problems, made in a cache of its own.
  std::string bundle_of(const std::string& name, const std::string& lines,
                        const std::string& arch = "host") {
    const std::string path = kiln.directory / name;
    const std::string file = kiln.directory.write(name + ".txt", lines);
    const Finished made = kiln({"prewarm", file, "--arch", arch, "--bundle", path});
    BOOST_TEST_REQUIRE(made.status == 0, made.out + made.err);
    return path;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(explain, Fixture)

BOOST_AUTO_TEST_CASE(why_names_the_field_that_differs) {
  BOOST_TEST(contains(kiln({"cache", "why", "conv " + tiny, "--arch", "host"}).out,
                      "nearest        none"));
  bundle_of("one", tiny + "\n");
  const Finished hit = kiln({"cache", "why", "conv " + tiny, "--arch", "host"});
  BOOST_TEST(hit.status == 0);
  BOOST_TEST(contains(hit.out, "hit            in the user's cache, made by "), hit.out);

  const Finished source = kiln({"cache", "why", "conv mb2_ic5ih6_oc4_kh3ph1", "--arch", "host"});
  BOOST_TEST(contains(source.out, "miss           absent"), source.out);
  BOOST_TEST(contains(source.out, "differs in     source, first in line "), source.out);
  BOOST_TEST(!contains(source.out, "differs in     options"));

  // The same content from another build of the compiler.
  const std::string script = kiln.directory.write(
      "other-c++",
      "#!/bin/sh\n[ \"$1\" = --version ] && { echo other 1.0; exit; }\nexec c++ \"$@\"\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  kiln.environment["KILN_HOST_CXX"] = script;
  const Finished producer = kiln({"cache", "why", "conv " + tiny, "--arch", "host"});
  BOOST_TEST(contains(producer.out, "differs in     producer"), producer.out);
  BOOST_TEST(contains(producer.out, "wanted       other 1.0"));
  BOOST_TEST(!contains(producer.out, "differs in     source"));
  BOOST_TEST(kiln({"cache", "why", "conv ic3ih6oc4kq3"}).status == 2);
}

BOOST_AUTO_TEST_CASE(why_tells_architectures_apart) {
  if (!has_nvrtc) {
    BOOST_TEST_MESSAGE("skipped: no NVRTC");
    return;
  }
  const std::string alike = "ic3ih6oc1kh1";  // whose source is the same for both
  bundle_of("one", alike + "\n", "sm_80");
  const Finished arch = kiln({"cache", "why", "conv " + alike, "--arch", "sm_86"});
  BOOST_TEST(contains(arch.out, "differs in     architecture\n  wanted       sm_86\n"), arch.out);
  BOOST_TEST(!contains(arch.out, "differs in     source"));
}

BOOST_AUTO_TEST_CASE(extracted_kernels_are_files_for_other_tools) {
  const std::string arch = has_nvrtc ? "sm_80" : "host";
  const std::string bundle = bundle_of("one", tiny + "\n", arch);
  const std::string folder = kiln.directory / "folder";
  const Finished by_problem =
      kiln({"cache", "extract", "conv " + tiny, "--arch", arch, "-o", folder});
  BOOST_TEST_REQUIRE(by_problem.status == 0, by_problem.err);
  const std::string binary = by_problem.lines().at(0);
  BOOST_TEST(binary.ends_with(has_nvrtc ? ".sm_80.cubin" : ".host.so"));
  BOOST_TEST(
      kiln_test::read(binary).starts_with("\x7f"
                                          "ELF"));
  if (has_nvrtc) BOOST_TEST(contains(kiln_test::read(by_problem.lines().at(1)), ".target sm_80"));

  const std::string key = kiln({"cache", "ls"}).out.substr(0, 12);
  const std::string other = kiln.directory / "other";
  BOOST_TEST(kiln({"cache", "extract", key, "-o", other}).status == 0);
  BOOST_TEST(kiln({"bundle", "extract", bundle, key, "-o", other}).status == 0);
  BOOST_TEST(kiln({"cache", "extract", "ffffffffffff"}).status == 1);
  BOOST_TEST(kiln({"bundle", "extract", bundle, "ffff", "-o", other}).status == 1);
  BOOST_TEST(kiln({"cache", "extract", "conv ic9ih6oc4kh3", "--arch", arch}).status == 1);
}

BOOST_AUTO_TEST_CASE(damage_is_found_and_removed) {
  bundle_of("one", tiny + "\nic4ih6oc4kh3\n");
  BOOST_TEST(kiln({"cache", "verify"}).out == "2 entries are sound, 0 are not\n");
  std::string path;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kiln.directory / "cache"))
    if (entry.path().extension() == ".kiln") path = entry.path();
  std::filesystem::resize_file(path, 5000);
  const Finished found = kiln({"cache", "verify"});
  BOOST_TEST(found.status == 1);
  BOOST_TEST(contains(found.out, path));
  BOOST_TEST(contains(found.out, "1 entries are sound, 1 are not\n"));
  BOOST_TEST(contains(kiln({"cache", "ls"}).out, "(corrupt)"));
  BOOST_TEST(kiln({"cache", "verify", "--remove"}).status == 1);
  BOOST_TEST(kiln({"cache", "verify"}).out == "1 entries are sound, 0 are not\n");

  BOOST_TEST(contains(kiln({"cache", "prune"}).out, "removed 0 entries"));
  BOOST_TEST(contains(kiln({"cache", "prune", "--days", "1"}).out, "removed 0 entries"));
  BOOST_TEST(contains(kiln({"cache", "prune", "--max-size", "1K"}).out, "removed 1 entries"));
  BOOST_TEST(kiln({"cache", "prune", "--max-size", "much"}).status == 2);
}

// The commands' output as JSON: the same facts under stable names.
BOOST_AUTO_TEST_CASE(the_cache_as_json) {
  const auto json = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "cache");
    arguments.emplace_back("--json");
    const Finished finished = kiln(arguments);
    BOOST_TEST_INFO(finished.out << finished.err);
    BOOST_REQUIRE(!finished.out.empty());
    return nlohmann::json::parse(finished.lines().back());
  };
  const std::string place = kiln.directory / "cache";
  BOOST_TEST(json({"path"})["directory"] == place);
  const auto missed = json({"why", tiny, "--arch", "host"});
  BOOST_TEST(!missed["hit"].get<bool>());
  BOOST_TEST(missed["miss"] == "absent");
  BOOST_TEST(missed["nearest"].is_null());

  bundle_of("one", tiny + "\nic4ih6oc4kh3\n");
  const auto stat = json({"stat"});
  BOOST_TEST(stat["directory"] == place);
  BOOST_TEST(stat["entries"] == 2);
  BOOST_TEST(stat["limit_bytes"] == std::int64_t{4} << 30);
  BOOST_TEST(stat["counted"]["compiled"] == 2);
  BOOST_TEST(kiln({"cache", "ls", "--json"}).lines().size() == 2u);
  const auto entry = json({"ls"});
  BOOST_TEST(entry["architecture"] == "host");
  BOOST_TEST(entry["bytes"].get<int>() > 1000);
  const auto hit = json({"why", tiny, "--arch", "host"});
  BOOST_TEST(hit["hit"].get<bool>());
  BOOST_TEST(hit["found_in"] == "cache");
  const auto other = json({"why", "ic5ih6oc4kh3", "--arch", "host"});
  BOOST_TEST(other["nearest"]["differences"][0]["field"] == "source");
  BOOST_TEST(other["nearest"]["differences"][0]["wanted"] !=
             other["nearest"]["differences"][0]["there"]);
  const auto files = json({"extract", tiny, "--arch", "host", "-o", kiln.directory / "extracted"});
  BOOST_TEST(files["files"].size() == 2u);
  BOOST_TEST(std::filesystem::exists(files["files"][0].get<std::string>()));

  std::string path;
  for (const auto& file : std::filesystem::recursive_directory_iterator(place))
    if (file.path().extension() == ".kiln") path = file.path();
  std::filesystem::resize_file(path, 5000);
  const auto verified = json({"verify", "--remove"});
  BOOST_TEST(verified["sound"] == 1);
  BOOST_TEST(verified["damaged"][0]["file"] == path);
  BOOST_TEST(verified["removed"].get<bool>());
  const auto pruned = json({"prune", "--max-size", "1K"});
  BOOST_TEST(pruned["removed"] == 1);
  BOOST_TEST(pruned["left"] == 0);
  BOOST_TEST(json({"clear"})["removed"] == 0);
}

BOOST_AUTO_TEST_CASE(counts_of_all_processes) {
  for (int i = 0; i < 3; ++i)
    BOOST_REQUIRE(kiln({"conv", "--device", "host", tiny, tiny}).status == 0);
  const std::string stat = kiln({"cache", "stat"}).out, info = kiln({"info"}).out;
  BOOST_TEST(contains(stat, "compiled               1\n"), stat);
  BOOST_TEST(contains(stat, "hits_disk              2\n"), stat);
  BOOST_TEST(contains(stat, "hits_memory            3\n"), stat);
  BOOST_TEST(contains(stat, "misses_absent          1\n"), stat);
  BOOST_TEST(contains(stat, "limit      4.0 GiB\n"), stat);
  BOOST_TEST(contains(info, "hits_disk 2"), info);
}

BOOST_AUTO_TEST_CASE(bundles_are_listed_compared_and_merged) {
  const std::string a = bundle_of("a", tiny + "\nic4ih6oc4kh3\n"),
                    b = bundle_of("b", tiny + "\npool ic4ih8kh2sh2ph0\n"),
                    all = kiln.directory / "all";
  const Finished list = kiln({"bundle", "ls", a});
  BOOST_TEST(list.status == 0);
  BOOST_TEST(contains(list.out, "library    "));
  BOOST_TEST(contains(list.out, "compiler   "));
  BOOST_TEST(contains(list.out, "kernels    2\n"));
  BOOST_TEST(contains(list.out, "  conv --arch host g1mb2_ic3ih6iw6_oc4oh6ow6"), list.out);

  BOOST_TEST(kiln({"bundle", "diff", a, a}).out == "the same 2 kernels\n");
  const Finished diff = kiln({"bundle", "diff", a, b});
  BOOST_TEST(diff.status == 1);
  BOOST_REQUIRE(diff.lines().size() == 2u);
  BOOST_TEST((diff.lines()[0].starts_with("- ") &&
              contains(diff.lines()[0], "conv --arch host g1mb2_ic4")));
  BOOST_TEST(
      (diff.lines()[1].starts_with("+ ") && contains(diff.lines()[1], "pool --arch host mb2ic4")));

  BOOST_TEST(contains(kiln({"bundle", "merge", a, b, "-o", all}).out, "3 kernels"));
  // Nothing is overwritten, and one bundle is not merged.
  const std::string before = kiln_test::read(a);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"bundle", "merge", a, b},
                                                {"bundle", "merge", a, b, "-o", a},
                                                {"bundle", "merge", a, "-o", all + ".2"}})
    BOOST_TEST(kiln(words).status == 2);
  BOOST_TEST((kiln_test::read(a) == before));
  const auto listed = nlohmann::json::parse(kiln({"bundle", "ls", "--json", all}).out);
  BOOST_TEST(listed["kernels"].size() == 3u);
  BOOST_TEST(listed["manifest"][0].get<std::string>().starts_with("conv --arch host "));
  BOOST_TEST(
      nlohmann::json::parse(kiln({"bundle", "diff", "--json", a, b}).out)["differences"].size() ==
      2u);
  BOOST_TEST(nlohmann::json::parse(kiln({"bundle", "verify", "--json", a}).out)["kernels"] == 2);
  BOOST_TEST(contains(kiln({"bundle", "verify", all}).out, "3 kernels, all sound"));
  const auto merged = kiln({"bundle", "ls", all}).out;
  BOOST_TEST(
      (contains(merged, "pool --arch host mb2ic4") && contains(merged, "manifest   3 problems")));

  const std::string empty = kiln.directory.write("empty", "");
  for (const char* command : {"ls", "verify"}) {
    const Finished refused = kiln({"bundle", command, empty});
    BOOST_TEST(refused.status == 1);
    BOOST_TEST(contains(refused.out + refused.err, "not a complete one"));
  }
  BOOST_TEST(kiln({"bundle"}).status == 2);
  BOOST_TEST(kiln({"bundle", "diff", a}).status == 2);
}

// The same kernels give the same file, in any order and with any number of threads.
BOOST_AUTO_TEST_CASE(bundles_are_reproducible) {
  const std::string first = bundle_of("first", tiny + "\nic4ih6oc4kh3\nic5ih6oc4kh3\n");
  kiln.environment["KILN_CACHE_DIR"] = kiln.directory / "another";
  const std::string again = bundle_of("again", tiny + "\nic4ih6oc4kh3\nic5ih6oc4kh3\n");
  BOOST_TEST((kiln_test::read(first) == kiln_test::read(again)));
}

BOOST_AUTO_TEST_CASE(what_an_application_recorded_is_a_manifest) {
  const std::string record = kiln.directory / "record";
  kiln.environment["KILN_RECORD"] = record;
  BOOST_REQUIRE(kiln({"conv", "--device", "host", tiny, tiny, "ic4ih6oc4kh3"}).status == 0);
  BOOST_REQUIRE(kiln({"softmax", "--dt", "f64", "--device", "host", "2x8x3x3"}).status == 0);
  BOOST_REQUIRE(kiln({"conv", "--device", "host", "--engine", "direct", tiny}).status == 0);
  const std::string lines = kiln_test::read(record);
  BOOST_TEST(std::count(lines.begin(), lines.end(), '\n') == 4, lines);
  BOOST_TEST(lines.starts_with("conv --arch host g1mb2_ic3ih6iw6_oc4oh6ow6_"), lines);
  BOOST_TEST(contains(lines, "\nconv --arch host --engine direct g1mb2_ic3"), lines);
  BOOST_TEST(contains(lines, "\nsoftmax --arch host --dt f64 2x8x3x3\n"), lines);

  kiln.environment.erase("KILN_RECORD");
  BOOST_TEST(kiln({"prewarm", record}).lines().back() == "0 compiled, 4 already there, 0 failed");
  kiln.environment["KILN_CACHE_DIR"] = kiln.directory / "another";
  const Finished made = kiln({"prewarm", record});
  BOOST_TEST(made.lines().back() == "4 compiled, 0 already there, 0 failed");
  BOOST_TEST(contains(made.out, "conv --arch host --engine direct g1mb2_ic3"), made.out);
  const std::string magic =
      kiln.directory.write("magic", "{\"problem\":\"ic4ih6oc4kh3\",\"only_engine\":\"magic\"}\n");
  BOOST_TEST(contains(kiln({"prewarm", magic, "--arch", "host"}).out,
                      "the engine is magic; expected one of "));

  const std::string nowhere = "/dev/null/record";
  kiln.environment["KILN_RECORD"] = nowhere;
  const Finished finished = kiln({"conv", "--device", "host", tiny, "ic4ih6oc4kh3"});
  BOOST_TEST(finished.status == 0);
  BOOST_TEST(contains(finished.err, "KILN_RECORD is /dev/null/record"), finished.err);
}

BOOST_AUTO_TEST_CASE(manifests_of_json) {
  const auto prewarm = [&](const std::string& text, const std::vector<std::string>& more) {
    std::vector<std::string> words{"prewarm", kiln.directory.write("manifest", text)};
    words.insert(words.end(), more.begin(), more.end());
    return kiln(words);
  };
  const Finished lists = prewarm(
      "# two types and two layouts; the batch does not matter to kernels of one tile\n"
      "{\"problem\":\"mb2_ic3ih3_oc4_kh3ph1\",\"dt\":[\"f32\",\"f64\"],\"layout\":[\"nchw\","
      "\"nhwc\"],"
      "\"batch\":[1,2,4],\"architecture\":\"host\"}\n"
      "{\"command\":\"softmax\",\"problem\":\"2x8x3x3\",\"batch\":5,\"architecture\":[\"host\"]"
      "}\n",
      {});
  BOOST_TEST(lists.status == 0, lists.out);
  BOOST_TEST(lists.lines().back() == "5 compiled, 0 already there, 0 failed", lists.out);
  BOOST_TEST(contains(lists.out, "softmax --arch host 5x8x3x3"), lists.out);

  // --json's own output, and problem lines with the command line's choices.
  const Finished json = kiln({"conv", "--json", "--device", "host", tiny});
  BOOST_TEST(prewarm(json.out, {}).lines().back() == "0 compiled, 1 already there, 0 failed");
  const Finished sizes =
      prewarm(tiny +
                  "_n\"mb n 7\"\npool ic4ih8kh2sh2ph0\n"
                  "softmax 2x9x3x3_n\"2x9:2x9\"  # what follows a '#' is a comment\n",
              {"--arch", "host", "--mb", "3,9"});
  BOOST_TEST(sizes.status == 0, sizes.out);
  BOOST_TEST(contains(sizes.out, "pool --arch host mb3ic4"), sizes.out);
  BOOST_TEST(contains(sizes.out, "softmax --arch host 3x9x3x3"), sizes.out);

  const std::pair<const char*, const char*> flaws[] = {
      {"{\"problem\":1,\"architecture\":\"host\"}", "problem is 1; expected a problem line"},
      {"{\"problem\":\"ic3ih6oc4kh3\",\"batch\":-1,\"architecture\":\"host\"}", "batch is -1"},
      {"{\"problem\":\"ic3ih6oc4kh3\",\"dt\":\"f31\",\"architecture\":\"host\"}", "f31"},
      {"{\"problem\":\"ic3ih6", "no JSON object"},
  };
  for (const auto& [line, complaint] : flaws) {
    const Finished flawed = prewarm(line, {"--arch", "host"});
    BOOST_TEST(flawed.status == 1);
    BOOST_TEST(contains(flawed.out, "manifest:1: "), flawed.out);
    BOOST_TEST(contains(flawed.out, complaint), flawed.out);
    BOOST_TEST(flawed.lines().back() == "0 compiled, 0 already there, 1 failed");
  }
  // An architecture that is not known here matters only where nothing is said in its place.
  const std::string unknown = "{\"problem\":\"" + tiny + "\",\"architecture\":\"sm_1\"}";
  BOOST_TEST(contains(prewarm(unknown, {}).out, "architecture is sm_1; expected one of sm_75"));
  BOOST_TEST(prewarm(unknown, {"--arch", "host"}).status == 0);
  const std::string unmade = kiln.directory / "unmade.bundle";
  BOOST_TEST(prewarm("ic3ih6oc4kq3", {"--arch", "host", "--bundle", unmade}).status == 1);
  BOOST_TEST(!std::filesystem::exists(unmade));
}

// An interrupted run is resumed.
BOOST_AUTO_TEST_CASE(prewarming_goes_on_after_an_interruption) {
  std::string problems;
  for (int channels = 1; channels <= 40; ++channels)
    problems += "ic" + std::to_string(channels) + "ih6oc4kh3\n";
  const std::string file = kiln.directory.write("problems", problems);
  const Finished stopped = kiln.interrupted({"prewarm", file, "--arch", "host", "-j", "2"});
  BOOST_REQUIRE(stopped.status == 130);
  const std::size_t made = stopped.lines().size() - 1;
  const Finished resumed = kiln({"prewarm", file, "--arch", "host", "-j", "2"});
  BOOST_TEST(resumed.lines().back() == std::to_string(40 - made) + " compiled, " +
                                           std::to_string(made) + " already there, 0 failed");
}

// Descriptions of devices can be written and read, and lead to the same choices as the chip itself.
BOOST_AUTO_TEST_CASE(descriptions_of_devices) {
  const Finished known = kiln({"info", "--describe-device", "h100-pcie"});
  BOOST_TEST_REQUIRE(known.status == 0, known.err);
  BOOST_TEST(contains(known.out, "\"multiprocessors\": 114"));
  if (!has_nvrtc) return;
  const std::string device = kiln.directory.write("device.json", known.out);
  const std::string file =
      kiln.directory.write("problems",
                           "mb4_ic16ih14oc24kh3ph1\nsoftmax 2x1000x1x1\ntensor --op reduce_sum "
                           "8x64x64x64:1x64x1x1\n");
  const Finished by_name = kiln({"prewarm", file, "--arch", "h100-pcie"});
  BOOST_TEST_REQUIRE(by_name.status == 0, by_name.out);
  BOOST_TEST(kiln({"prewarm", file, "--device", device}).lines().back() ==
             "0 compiled, 3 already there, 0 failed");

  // Descriptions without the counts of clusters were written before these were part of them.
  const std::string counted = kiln({"info", "--describe-device", "h100"}).out;
  BOOST_TEST_REQUIRE(contains(counted, "\"clusters_at_once\": {"));
  const std::string before = counted.substr(0, counted.find(",\n  \"clusters_at_once\"")) + "}";
  const std::string h100 = kiln.directory.write("h100.json", counted);
  BOOST_TEST(kiln({"prewarm", file, "--device", h100}).status == 0);
  BOOST_TEST(kiln({"prewarm", file, "--device", kiln.directory.write("before.json", before)})
                 .lines()
                 .back() == "0 compiled, 3 already there, 0 failed");

  // A chip with fewer multiprocessors gets kernels of its own where its size decides.
  std::string small = known.out;
  small.replace(small.find(": 114"), 5, ": 4");
  const Finished other =
      kiln({"prewarm", file, "--device", kiln.directory.write("small.json", small)});
  BOOST_TEST(other.status == 0);
  BOOST_TEST(!contains(other.out, "\n0 compiled"), other.out);

  for (const char* text : {"", "{}", "[1]", "{\"name\":\"x\",\"compute_capability\":\"90\"}"}) {
    const Finished bad =
        kiln({"prewarm", file, "--device", kiln.directory.write("bad.json", text)});
    BOOST_TEST(bad.status == 2);
    BOOST_TEST(contains(bad.err, "bad.json"), bad.err);
  }
  for (
      const char* counts :
      {"7", "{}", R"({"2":[66]})",
       R"({"2":[1,1,1,1],"3":[1,1,1,1],"4":[1,1,1,1],"5":[1,1,1,1],"6":[1,1,1,1],"8":[1,1,1,1],"16":[1,1,1,-1]})"}) {
    const std::string text =
        known.out.substr(0, known.out.rfind('}')) + ",\"clusters_at_once\":" + counts + "}";
    const Finished bad =
        kiln({"prewarm", file, "--device", kiln.directory.write("bad.json", text)});
    BOOST_TEST(bad.status == 2);
    BOOST_TEST(contains(bad.err, "clusters_at_once is "), bad.err);
  }
  BOOST_TEST(kiln({"info", "--describe-device", "cuda"}).status == 2);  // none here
  BOOST_TEST(contains(kiln({"info", "--describe-device", "sm_1"}).err, "h100-pcie"));
}

BOOST_AUTO_TEST_SUITE_END()
