// One violation of each check of .clang-tidy, for groups_test.sh, and of nothing compiled: a line
// that violates a check ends with its name.
#include "violations.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using std::shared_ptr;                 // misc-unused-using-decls
namespace unused_alias = std::chrono;  // misc-unused-alias-decls
namespace apart {}

namespace violations {

using namespace apart;  // google-build-using-namespace

namespace {
static int counted = 0;  // readability-static-definition-in-anonymous-namespace
}

struct Text {
  Text() {}  // modernize-use-equals-default
  Text(const Text& other) : first(other.first) {}
  Text& operator=(const Text& other) {  // bugprone-unhandled-self-assignment
    delete held;
    held = new int(*other.held);
    return *this;
  }
  Text(int count) : first(std::to_string(count)) {}  // google-explicit-constructor
  explicit Text(const std::string& given, int) : first(given) {
    Text();  // bugprone-undelegated-constructor
  }
  std::string first;
  int* held = nullptr;
};

struct Parent {
  Parent() = default;
  Parent(const Parent&) = default;
  Parent& operator=(const Parent&) = default;
  virtual ~Parent() = default;
  virtual int value() { return 1; }
  virtual int compute() { return 1; }
  int state = 0;
};
struct Middle : Parent {
  int value() override { return 2; }
  virtual int compite() { return 3; }  // bugprone-virtual-near-miss
};
struct Child : Middle {
  int value() override { return Parent::value(); }  // bugprone-parent-virtual-call
  int more = 0;
};
struct Copied : Parent {
  Copied() = default;
  Copied(const Copied& other) : Parent(), more(other.more) {}  // bugprone-copy-constructor-init
  int more = 0;
};
struct Wide : Parent {
  int more = 0;
};
inline int sliced(const Wide& wide) {
  Parent parent = wide;  // cppcoreguidelines-slicing
  return parent.state;
}

class Open {  // cppcoreguidelines-virtual-class-destructor
 public:
  virtual void work();
  ~Open();
};

struct Forwarded {
  template <typename T>
  explicit Forwarded(T&& value);  // bugprone-forwarding-reference-overload
};

struct Movable {
  Movable(Movable&& other) : text(other.text) {}  // performance-noexcept-move-constructor
  Movable(const Movable&) = default;
  std::string text;
};
struct Copying {
  Copying() = default;
  Copying(const Copying&) = default;
  std::string text;
};
struct Holder {
  Holder(Holder&& other) noexcept : copying(other.copying) {}  // performance-move-constructor-init
  Copying copying;
};

struct Allocating {
  void* operator new(std::size_t size);  // misc-new-delete-overloads
};

template <typename T>
void forwards(T&& value, std::string& out) {
  out = std::move(value);  // bugprone-move-forwarding-reference
}

void named(int rows, int columns);

int* found(const std::string& text);

std::string body(std::vector<std::string> words, bool flag, int count, std::size_t large) {
  named(/*columns=*/1, 2);  // bugprone-argument-comment
  bool* pointer = &flag;
  if (pointer) count++;  // bugprone-bool-pointer-implicit-conversion
  std::vector<int> numbers{1, 2};
  numbers.erase(std::remove(numbers.begin(), numbers.end(), 1));  // bugprone-inaccurate-erase
  const double real = 2.5;
  count += static_cast<int>(real + 0.5);                  // bugprone-incorrect-roundings
  const double ratio = count / 2;                         // bugprone-integer-division
  const long product = static_cast<long>(count * count);  // bugprone-misplaced-widening-cast
  large += sizeof(sizeof(count));                         // bugprone-sizeof-expression
  const std::string repeated('x', 50);                    // bugprone-string-constructor
  int bytes[8];
  std::memset(bytes, '0', sizeof bytes);  // bugprone-suspicious-memset-usage
  const char* list[] = {"one",
                        "two",
                        "three",
                        "four",
                        "five",
                        "six"
                        "seven",
                        "eight",
                        "nine"};                     // bugprone-suspicious-missing-comma
  if (std::strcmp(list[0], list[1]) == -1) count++;  // bugprone-suspicious-string-compare
  do {
    continue;  // bugprone-terminating-continue
  } while (false);
  for (short at = 0; at < count; ++at) large++;  // bugprone-too-small-loop-variable
  std::mutex mutex;
  std::lock_guard<std::mutex>{mutex};     // bugprone-unused-raii
  std::async(std::launch::async, [] {});  // bugprone-unused-return-value
  std::string moved = "text";
  const std::string taken = std::move(moved);
  large += moved.size();  // bugprone-use-after-move
  typedef int* Pointer;
  const Pointer misplaced = &count;     // misc-misplaced-const
  if (count > 1 && count > 1) large++;  // misc-redundant-expression
  try {
    throw std::runtime_error("fault");
  } catch (std::runtime_error fault) {  // misc-throw-by-value-catch-by-reference
    large += std::strlen(fault.what());
  }
  for (const std::string word : words) large += word.size();  // performance-for-range-copy
  const std::map<int, std::string> table;
  for (const std::pair<int, std::string>& entry : table)
    large += entry.second.size();  // performance-implicit-conversion-in-loop
  const std::string constant = "constant";
  const std::string other = std::move(constant);  // performance-move-const-arg
  const std::string copied = words.front();       // performance-unnecessary-copy-initialization
  large += copied.size() + other.size();
  if (words.size() == 0) large++;  // readability-container-size-empty
  int* owned = found(taken);
  if (owned) delete owned;  // readability-delete-null-pointer
  std::unique_ptr<std::string> smart;
  if (smart.get() == nullptr) large++;  // readability-redundant-smartptr-get
  std::string plain = taken.c_str();    // readability-redundant-string-cstr
  const std::string kept = plain;
  counted +=
      static_cast<int>(large + repeated.size()) + *misplaced + static_cast<int>(product + ratio);
  return kept;
}

double sum(const std::vector<double> values) {              // performance-unnecessary-value-param
  return std::accumulate(values.begin(), values.end(), 0);  // bugprone-fold-init-type
}

void keep(std::vector<std::string_view>& views) {
  views.push_back(std::string("gone"));  // bugprone-dangling-handle
}

void waits(int most) {
  int at = 0;
  while (at < most) counted++;  // bugprone-infinite-loop
}

int twice(bool flag) {
  if (flag) {
    if (flag) return 2;  // bugprone-redundant-branch-condition
  }
  return 1;
}

void uses_template(std::string& text, std::string& out) { forwards(text, out); }

void swapped(int number, double real) {}
void swaps(int number, double real) { swapped(real, number); }  // bugprone-swapped-arguments

std::string moves(const std::string& given) {
  const std::string text = given + "x";
  return text;  // performance-no-automatic-move
}

void returns(int count) {
  counted += count;
  return;  // readability-redundant-control-flow
}

}  // namespace violations
