// kiln doctor: its findings in programs, its messages for other files, and malicious files.
#include <sys/stat.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/doctor/cudnn_use.hpp"
#include "cli/usage_error.hpp"
#include "run_kiln.hpp"
#include "support/elf_program.hpp"

using kiln_test::ElfProgram;
using kiln_test::Finished;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Fixture {
  kiln_test::Kiln kiln;

  Finished ask(const ElfProgram& program, const std::string& option = "") const {
    std::vector<std::string> arguments{"doctor", kiln.directory.write("program", program.bytes())};
    if (!option.empty()) arguments.push_back(option);
    return kiln(arguments);
  }

  // The message for a file that is not a program.
  std::string refusal(const std::string& path) const {
    const Finished finished = kiln({"doctor", path});
    BOOST_TEST(finished.status == 2);
    BOOST_TEST(finished.out == "");
    BOOST_TEST(has(finished.err, path), finished.err);
    return finished.err;
  }

  // Runs the C++ compiler in the directory.
  void compile(const std::string& arguments) const {
    const std::string command =
        "cd " + kiln.directory / "" + " && " + KILN_TEST_CXX + " -fPIC -o " + arguments;
    BOOST_TEST_REQUIRE(std::system(command.c_str()) == 0, command);
  }
};

// "served    cudnnCreate" of each line that has such a beginning.
std::map<std::string, std::string> lines_of(const Finished& finished) {
  std::map<std::string, std::string> lines;
  for (const std::string& line : finished.lines()) {
    if (!line.starts_with("  ")) continue;
    const std::size_t name = line.find_first_not_of(' ', line.find(' ', 2));
    const std::size_t end = std::min(line.find(' ', name), line.size());
    lines[line.substr(name, end - name)] = line;
  }
  return lines;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(doctor, Fixture)

BOOST_AUTO_TEST_CASE(all_served) {
  const Finished finished = ask({.called = {"cudnnCreate", "cudnnConvolutionForward", "malloc"},
                                 .libraries = {"libc.so.6", "libcudnn.so.9"}});
  BOOST_TEST(finished.status == 0);
  BOOST_TEST(finished.err == "");
  BOOST_TEST(finished.out == kiln.directory / "program" +
                                 "\n"
                                 "  served     cudnnConvolutionForward\n"
                                 "  served     cudnnCreate\n"
                                 "2 of 2 functions are served\n");
}

BOOST_AUTO_TEST_CASE(what_is_not_served_has_a_reason) {
  const Finished finished =
      ask({.called = {"cudnnCreate", "cudnnDropoutForward", "cudnnSetRNNDescriptor_v5",
                      "cudnnNoSuchThing", "cudnnScaleTensor@libcudnn.so.9"},
           .texts = {"cudnnDestroy", "cudnnRNNForward", "cudnnCreate", "cudnnAddTensor(x) failed",
                     "cudnnHandle_t", "mycudnnSetStream"}});
  BOOST_TEST(finished.status == 1);
  auto lines = lines_of(finished);
  BOOST_TEST(lines.size() == 7u, finished.out);
  BOOST_TEST(lines["cudnnCreate"] == "  served     cudnnCreate");
  BOOST_TEST(lines["cudnnScaleTensor"] == "  served     cudnnScaleTensor");
  BOOST_TEST(lines["cudnnDestroy"] == "  served     cudnnDestroy              named as text");
  BOOST_TEST(lines["cudnnDropoutForward"] ==
             "  refused    cudnnDropoutForward       refused, unless KILN_CUDNN_FORWARD is set; "
             "Kiln has no dropout");
  BOOST_TEST(lines["cudnnRNNForward"] ==
             "  refused    cudnnRNNForward           named as text; refused, unless "
             "KILN_CUDNN_FORWARD is set; Kiln has no recurrent network");
  BOOST_TEST(lines["cudnnSetRNNDescriptor_v5"] ==
             "  refused    cudnnSetRNNDescriptor_v5  Kiln has no recurrent network");
  BOOST_TEST(lines["cudnnNoSuchThing"].starts_with("  unknown    cudnnNoSuchThing"), finished.out);
  BOOST_TEST(finished.out.ends_with("3 of 7 functions are served\n"), finished.out);
}

// Names of a C program's own, called and carried.
BOOST_AUTO_TEST_CASE(names_that_only_begin_so) {
  const Finished finished =
      ask({.called = {"cudnnCreate", "cudnn_check_error", "cudnn"}, .carried = {"cudnn_handle"}});
  BOOST_TEST(finished.status == 0, finished.out);
  BOOST_TEST(finished.out.ends_with("1 of 1 functions are served\n"), finished.out);
}

BOOST_AUTO_TEST_CASE(one_object_a_program) {
  const Finished finished = ask({.called = {"cudnnRNNForward", "cudnnCreate"},
                                 .texts = {"cudnnDestroy"},
                                 .libraries = {"libcudnn.so.8"}},
                                "--json");
  BOOST_TEST(finished.status == 1);
  BOOST_TEST_REQUIRE(finished.lines().size() == 1u, finished.out);
  const auto json = nlohmann::json::parse(finished.out);
  BOOST_TEST(json["file"] == kiln.directory / "program");
  BOOST_TEST(json["libraries"] == nlohmann::json({"libcudnn.so.8"}));
  BOOST_TEST(!json["all_served"].get<bool>());
  BOOST_TEST(json["carried"].empty());
  BOOST_TEST(json["hindrances"].size() == 1u);
  BOOST_TEST_REQUIRE(json["functions"].size() == 3u);
  const nlohmann::json served{
      {"name", "cudnnCreate"}, {"service", "served"}, {"found_as", "symbol"}};
  BOOST_TEST(json["functions"][0] == served);
  BOOST_TEST(json["functions"][1]["found_as"] == "text");
  BOOST_TEST(json["functions"][2]["service"] == "forwarded");
  BOOST_TEST(json["functions"][2]["why"] == "Kiln has no recurrent network");
}

BOOST_AUTO_TEST_CASE(other_libraries) {
  const Finished old = ask({.called = {"cudnnCreate"}, .libraries = {"libcudnn.so.7"}});
  BOOST_TEST(old.status == 1);
  BOOST_TEST(has(old.out, "hindered   it asks for libcudnn.so.7"), old.out);
  const Finished part = ask({.called = {"cudnnCreate"}, .libraries = {"libcudnn_ops.so.9"}});
  BOOST_TEST(part.status == 1);
  BOOST_TEST(has(part.out, "asks for libcudnn_ops.so.9"), part.out);

  const Finished carrier =
      ask({.carried = {"cudnnCreate", "cudnnDestroy"}, .texts = {"cudnnCreate"}});
  BOOST_TEST(carrier.status == 1);
  BOOST_TEST(!has(carrier.out, "named as text"), carrier.out);
  BOOST_TEST(has(carrier.out, "it has 2 functions of cuDNN itself, as cudnnCreate"), carrier.out);
  BOOST_TEST(ask({.carried = {"cudnnCreate"}, .is_dynamic = false}).status == 1);
}

BOOST_AUTO_TEST_CASE(nothing_of_cudnn) {
  const Finished none = ask({.called = {"malloc"}, .texts = {"cudnnHandle_t"}});
  BOOST_TEST(none.status == 0);
  BOOST_TEST(has(none.out, "it neither calls nor names a function of cuDNN; a library"), none.out);
  const Finished fixed = ask({.is_dynamic = false, .type = ET_EXEC});
  BOOST_TEST(fixed.status == 0);
  BOOST_TEST(has(fixed.out, "it is linked statically and has no function of cuDNN"), fixed.out);
}

BOOST_AUTO_TEST_CASE(what_a_compiler_and_a_linker_make) {
  kiln.directory.write("calls.cpp",
                       "extern \"C\" { int cudnnCreate(void**); int cudnnRNNForward(); }\n"
                       "const char* name() { return \"cudnnSetStream\"; }\n"
                       "extern \"C\" { __attribute__((used)) static void cudnnMine() {} }\n"
                       "int call() { void* h; return cudnnCreate(&h) + cudnnRNNForward(); }\n");
  kiln.directory.write("empty.cpp", "");
  compile("libcudnn.so -shared -Wl,-soname,libcudnn.so.9 empty.cpp");
  compile("calls.so -shared calls.cpp -Wl,--no-as-needed -L. -lcudnn");
  for (const char* file : {"calls.so", "calls.o"}) {
    BOOST_TEST_CONTEXT(file) {
      if (std::string(file) == "calls.o") compile("calls.o -c calls.cpp");
      const Finished finished = kiln({"doctor", kiln.directory / file, "--json"});
      BOOST_TEST(finished.status == 1, finished.err);
      const auto json = nlohmann::json::parse(finished.out);
      BOOST_TEST(json["libraries"].size() == (std::string(file) == "calls.so" ? 1u : 0u));
      BOOST_TEST(json["carried"].size() == (std::string(file) == "calls.so" ? 0u : 1u));
      BOOST_TEST_REQUIRE(json["functions"].size() == 3u, finished.out);
      BOOST_TEST(json["functions"][0]["name"] == "cudnnCreate");
      BOOST_TEST(json["functions"][1]["name"] == "cudnnSetStream");
      BOOST_TEST(json["functions"][1]["found_as"] == "text");
      BOOST_TEST(json["functions"][2]["name"] == "cudnnRNNForward");
    }
  }
}

// Names that cross the border between two pieces that are read, at every position.
BOOST_AUTO_TEST_CASE(a_text_of_any_place_is_found_once_whole) {
  constexpr std::size_t piece = std::size_t{1} << 20;
  for (std::size_t before = piece - 40; before < piece + 3; before += 7) {
    ElfProgram program;
    program.texts = {std::string(before, 'x'), "cudnnConvolutionForward",
                     std::string(piece - 300, 'y') + "cudnnSetStream"};
    const std::string path = kiln.directory.write("large", program.bytes());
    const kiln::cli::CudnnUse use = kiln::cli::cudnn_use_of(path);
    BOOST_TEST(use.named == std::set<std::string>{"cudnnConvolutionForward"},
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_program) {
  const auto written = [&](const std::string& content) {
    return refusal(kiln.directory.write("file", content));
  };
  BOOST_TEST(has(written(""), "is empty"));
  BOOST_TEST(has(written("hello"), "is no ELF file; expected a program or a shared library"));
  BOOST_TEST(has(written("#!/bin/sh\n"), "is a script"));
  BOOST_TEST(has(written("!<arch>\nlibx.o/"), "is an archive"));
  BOOST_TEST(has(written("\177ELF"), "is an ELF file cut short"));
  const std::string sound = ElfProgram{.called = {"cudnnCreate"}}.bytes();
  const auto changed = [&](std::size_t at, char value) {
    std::string file = sound;
    file[at] = value;
    return written(file);
  };
  BOOST_TEST(has(changed(EI_CLASS, ELFCLASS32), "is an ELF file of 32 bits"));
  BOOST_TEST(has(changed(EI_DATA, ELFDATA2MSB), "is a big-endian ELF file"));
  BOOST_TEST(has(changed(offsetof(Elf64_Ehdr, e_shentsize), 65), "section headers have 65 bytes"));
  BOOST_TEST(has(changed(offsetof(Elf64_Ehdr, e_shnum) + 1, 1), "sections, in "));
  BOOST_TEST(has(changed(offsetof(Elf64_Ehdr, e_shoff) + 3, 1), "is cut short or damaged"));
  BOOST_TEST(has(written(sound.substr(0, sound.size() - 1)), "is cut short or damaged"));
  std::string stripped = sound;
  stripped.replace(offsetof(Elf64_Ehdr, e_shoff), sizeof(Elf64_Off), sizeof(Elf64_Off), '\0');
  BOOST_TEST(has(written(stripped), "has no section headers"));

  BOOST_TEST(has(refusal(kiln.directory / ""), "is a folder"));
  BOOST_TEST(has(refusal(kiln.directory / "nowhere"), "cannot read "));
  const std::string fifo = kiln.directory / "fifo";
  BOOST_TEST_REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  BOOST_TEST(has(refusal(fifo), "is no regular file"));
  BOOST_TEST(kiln({"doctor"}).status == 2);
}

// Control characters in a file's names do not reach the terminal.
BOOST_AUTO_TEST_CASE(names_are_printable) {
  const ElfProgram hostile{.called = {"cudnnA\x1b]0;owned\x07"}, .libraries = {"libcudnn\x1b[2J"}};
  const Finished finished = ask(hostile);
  BOOST_TEST(!has(finished.out, "\x1b"));
  BOOST_TEST(has(finished.out, "cudnnA\\x1b]0;owned\\x07"), finished.out);
  BOOST_TEST(!has(ask(hostile, "--json").out, "\x1b"));
}

// A string of 8 MB that is the name of every symbol, and sections that overlap, are handled quickly
// and in little memory.
BOOST_AUTO_TEST_CASE(a_file_that_claims_much) {
  ElfProgram program{.called = std::vector<std::string>(20'000, "cudnnA")};
  program.called.push_back("cudnnA" + std::string(8 << 20, 'x'));
  std::string file = program.bytes();
  const auto header = *reinterpret_cast<const Elf64_Ehdr*>(file.data());
  auto* const sections = reinterpret_cast<Elf64_Shdr*>(file.data() + header.e_shoff);
  auto* const symbols = reinterpret_cast<Elf64_Sym*>(file.data() + sections[2].sh_offset);
  for (std::size_t i = 0; i < 20'000; ++i) symbols[i].st_name = symbols[20'001].st_name;
  const kiln::cli::CudnnUse use = kiln::cli::cudnn_use_of(kiln.directory.write("one", file));
  BOOST_TEST(use.called.size() == 2u);
  for (const std::string& name : use.called) BOOST_TEST(name.size() <= 256u);

  sections[3] = sections[4] = sections[2];
  BOOST_CHECK_EXCEPTION(
      kiln::cli::cudnn_use_of(kiln.directory.write("two", file)), kiln::cli::UsageError,
      [](const std::exception& error) { return has(error.what(), "its sections overlap"); });
}

// A damaged file is read or refused, but never crashes the program.
BOOST_AUTO_TEST_CASE(mutated_files) {
  const std::string sound = ElfProgram{
      .called = {"cudnnCreate", "cudnnRNNForward"},
      .carried = {"cudnnMine"},
      .texts = {"cudnnDestroy"},
      .libraries = {
          "libcudnn.so.9"}}.bytes();
  std::mt19937 random(42);
  int read = 0, refused = 0;
  const auto attempt = [&](const std::string& file) {
    try {
      kiln::cli::cudnn_use_of(kiln.directory.write("mutated", file));
      ++read;
    } catch (const kiln::cli::UsageError&) {
      ++refused;
    }
  };
  for (std::size_t size = 0; size < sound.size(); size += 3) attempt(sound.substr(0, size));
  for (int i = 0; i < 1500; ++i) {
    std::string file = sound;
    for (std::size_t changes = 1 + random() % 4; changes > 0; --changes)
      file[random() % file.size()] = static_cast<char>(random() % 2 == 0 ? random() : 0xff);
    attempt(file);
  }
  BOOST_TEST(read > 100);
  BOOST_TEST(refused > 100);
}

BOOST_AUTO_TEST_SUITE_END()
