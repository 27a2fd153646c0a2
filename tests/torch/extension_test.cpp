// The extension against a PyTorch that is not there: what it registers, serves, leaves to PyTorch,
// and gives back. Results are compared with a sum by definition, in double precision.
#define BOOST_TEST_MODULE torch_extension
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "fake_libtorch.hpp"
#include "kiln/kiln.h"
#include "torch/control.h"

using fake::Tensor;
using kiln::torch::Kernel;
using kiln::torch::Value;

namespace {

struct Geometry {
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1, output_padding = 0;
  bool transposed = false;
};

Tensor random(std::vector<std::int64_t> sizes, bool channels_last = false) {
  static std::mt19937 generator(std::random_device{}());
  std::normal_distribution<float> normal;
  Tensor out = fake::make(std::move(sizes), channels_last);
  for (std::size_t i = 0; i < out.storage->size() * 2; ++i)
    out.data<float>()[i] = normal(generator);
  return out;
}

double at(const Tensor& t, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  return t.data<float>()[n * t.strides[0] + c * t.strides[1] + h * t.strides[2] + w * t.strides[3]];
}

// Calls f(n, k, c of the group, c, output place, input place, tap) for every product of the
// convolution whose larger side is `in` and whose other side is `out`.
template <class F>
void for_products(const Tensor& in, const Tensor& w, const Tensor& out, const Geometry& g, F f) {
  const auto per_group_out = w.sizes[0] / g.groups;
  for (std::int64_t n = 0; n < in.sizes[0]; ++n)
    for (std::int64_t k = 0; k < w.sizes[0]; ++k)
      for (std::int64_t c = 0; c < w.sizes[1]; ++c)
        for (std::int64_t p = 0; p < out.sizes[2]; ++p)
          for (std::int64_t q = 0; q < out.sizes[3]; ++q)
            for (std::int64_t r = 0; r < w.sizes[2]; ++r)
              for (std::int64_t s = 0; s < w.sizes[3]; ++s) {
                const auto y = p * g.stride - g.padding + r * g.dilation;
                const auto x = q * g.stride - g.padding + s * g.dilation;
                if (y < 0 || x < 0 || y >= in.sizes[2] || x >= in.sizes[3]) continue;
                f(n, k, c, k / per_group_out * w.sizes[1] + c, p, q, y, x, r, s);
              }
}

using Sums = std::vector<double>;  // NCHW, dense
std::size_t flat(const std::vector<std::int64_t>& sizes, std::int64_t n, std::int64_t c,
                 std::int64_t h, std::int64_t w) {
  return static_cast<std::size_t>(((n * sizes[1] + c) * sizes[2] + h) * sizes[3] + w);
}

void check_close(const Tensor& got, const Sums& want) {
  for (std::int64_t n = 0; n < got.sizes[0]; ++n)
    for (std::int64_t c = 0; c < got.sizes[1]; ++c)
      for (std::int64_t h = 0; h < got.sizes[2]; ++h)
        for (std::int64_t w = 0; w < got.sizes[3]; ++w) {
          const double expected = want[flat(got.sizes, n, c, h, w)];
          BOOST_REQUIRE_SMALL(at(got, n, c, h, w) - expected, 1e-4 * (1 + std::abs(expected)));
        }
}

Sums zeros(const std::vector<std::int64_t>& sizes) {
  return Sums(static_cast<std::size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]));
}

void put(Value* stack, const Geometry& g) {
  stack[0] = fake::give_list({g.stride, g.stride});
  stack[1] = fake::give_list({g.padding});  // one stands for all
  stack[2] = fake::give_list({g.dilation, g.dilation});
  stack[3] = g.transposed;
  stack[4] = fake::give_list({g.output_padding, g.output_padding});
  stack[5] = static_cast<Value>(g.groups);
}

Tensor forward(const Tensor& x, const Tensor& w, const Tensor* bias, const Geometry& g) {
  Value stack[9] = {fake::give(x), fake::give(w), fake::give_optional(bias)};
  put(stack + 3, g);
  fake::torch().kernels.at("aten::convolution CPU")(stack, 9, 1);
  return fake::take(stack[0]);
}

std::array<Tensor, 3> backward(const Tensor& dy, const Tensor& x, const Tensor& w,
                               const Geometry& g, const std::vector<std::int64_t>& mask) {
  Value stack[11] = {fake::give(dy), fake::give(x), fake::give(w), 0};
  put(stack + 4, g);
  stack[10] = fake::give_list(mask);
  fake::torch().kernels.at("aten::convolution_backward CPU")(stack, 11, 3);
  return {fake::take(stack[0]), fake::take(stack[1]), fake::take(stack[2])};
}

// What kiln_torch::native_convolution owns, of a call without bias.
void drop_forward_arguments(const Value* stack) {
  fake::take(stack[0]);
  fake::take(stack[1]);
  BOOST_REQUIRE_EQUAL(stack[2], 0);
  for (const int i : {3, 4, 5, 7}) {
    delete reinterpret_cast<std::vector<Value>*>(stack[i]);
    --fake::torch().lists;
  }
}

nlohmann::json report() { return nlohmann::json::parse(kilnTorchReport()); }

struct Enabled {
  Enabled() {
    BOOST_REQUIRE_EQUAL(kilnTorchLoad(), "");
    BOOST_REQUIRE_EQUAL(kilnTorchEnable("CPU"), "");
    kilnTorchSetFlags(1, 0, 0, 1);
    kilnTorchSetPolicy(0);
    kilnTorchClear();
    fake::torch().operators.clear();
    fake::torch().calls.clear();
  }
  ~Enabled() {
    kilnTorchDisable("CPU");
    BOOST_CHECK_EQUAL(fake::torch().tensors, 0);
    BOOST_CHECK_EQUAL(fake::torch().lists, 0);
  }
};

void check_convolution(const Geometry& g, bool channels_last) {
  const Tensor x = random({2, 4, 7, 6}, channels_last);
  const Tensor w = random({g.transposed ? 4 : 6, g.transposed ? 6 / g.groups : 4 / g.groups, 3, 3});
  const Tensor bias = random({6});
  const Tensor y = forward(x, w, &bias, g);
  const Tensor dy = random(y.sizes);
  const auto [dx, dw, db] = backward(dy, x, w, g, {1, 1, 1});
  BOOST_CHECK_EQUAL(y.strides[1] == 1, channels_last);
  BOOST_CHECK_EQUAL(dx.strides[1] == 1, channels_last);
  BOOST_CHECK_EQUAL(dw.strides[1] == 1, channels_last);
  Sums y_sum = zeros(y.sizes), dx_sum = zeros(x.sizes), dw_sum = zeros(w.sizes);
  std::vector<double> db_sum(6);
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t k = 0; k < 6; ++k)
      for (std::int64_t h = 0; h < y.sizes[2]; ++h)
        for (std::int64_t v = 0; v < y.sizes[3]; ++v) {
          y_sum[flat(y.sizes, n, k, h, v)] = bias.data<float>()[k];
          db_sum[k] += at(dy, n, k, h, v);
        }
  const bool t = g.transposed;
  for_products(
      t ? y : x, w, t ? x : y, g,
      [&](auto n, auto k, auto cg, auto c, auto p, auto q, auto i, auto j, auto r, auto s) {
        const double weight = at(w, k, cg, r, s);
        const std::size_t tap = flat(w.sizes, k, cg, r, s);
        if (t) {
          y_sum[flat(y.sizes, n, c, i, j)] += at(x, n, k, p, q) * weight;
          dx_sum[flat(x.sizes, n, k, p, q)] += at(dy, n, c, i, j) * weight;
          dw_sum[tap] += at(dy, n, c, i, j) * at(x, n, k, p, q);
        } else {
          y_sum[flat(y.sizes, n, k, p, q)] += at(x, n, c, i, j) * weight;
          dx_sum[flat(x.sizes, n, c, i, j)] += at(dy, n, k, p, q) * weight;
          dw_sum[tap] += at(dy, n, k, p, q) * at(x, n, c, i, j);
        }
      });
  check_close(y, y_sum);
  check_close(dx, dx_sum);
  check_close(dw, dw_sum);
  for (std::size_t k = 0; k < 6; ++k) BOOST_CHECK_SMALL(db.data<float>()[k] - db_sum[k], 1e-3);
}

}  // namespace

BOOST_AUTO_TEST_CASE(registers_once) {
  BOOST_REQUIRE_EQUAL(kilnTorchLoad(), "");
  BOOST_CHECK_EQUAL(kilnTorchEnable("CUDA"), "");
  BOOST_CHECK_EQUAL(kilnTorchEnable("CUDA"), "");
  BOOST_CHECK(fake::torch().kernels.contains("aten::convolution CUDA"));
  BOOST_CHECK(fake::torch().kernels.contains("aten::convolution_backward CUDA"));
  BOOST_CHECK_EQUAL(kilnTorchDisable("CUDA"), "");
  // A kernel that is taken back would be deleted under the threads that execute it.
  BOOST_CHECK(fake::torch().kernels.contains("aten::convolution CUDA"));
  BOOST_CHECK_EQUAL(kilnTorchDisable("CUDA"), "");
}

// A disabled extension and a recorded thread hand calls over, without a row in the report.
BOOST_FIXTURE_TEST_CASE(hands_calls_over, Enabled) {
  const Tensor x = random({1, 2, 5, 5}), w = random({3, 2, 3, 3});
  fake::torch().operators["native forward"] = [](Value* stack) {
    stack[0] = fake::give(random({1, 3, 3, 3}));
    return 0;
  };
  kilnTorchDisable("CPU");
  forward(x, w, nullptr, {});
  kilnTorchEnable("CPU");
  BOOST_CHECK_EQUAL(kilnTorchSetRecorded(1), 0);
  forward(x, w, nullptr, {});
  std::thread([&] { forward(x, w, nullptr, {}); }).join();  // which is not recorded
  BOOST_CHECK_EQUAL(kilnTorchSetRecorded(0), 1);
  BOOST_CHECK_EQUAL(fake::torch().calls["native forward"], 2);
  const nlohmann::json rows = report();
  BOOST_REQUIRE_EQUAL(rows.size(), 1);
  BOOST_CHECK_EQUAL(rows[0]["served"], 1);
  BOOST_CHECK_EQUAL(rows[0]["native"], 0);
}

BOOST_FIXTURE_TEST_CASE(results_and_gradients, Enabled) {
  check_convolution({.stride = 2, .padding = 1, .groups = 2}, false);
  check_convolution({.padding = 1, .dilation = 2}, true);
  check_convolution(
      {.stride = 2, .padding = 1, .groups = 2, .output_padding = 1, .transposed = true}, false);
  for (const auto& row : report()) BOOST_CHECK_EQUAL(row["native"], 0);
}

BOOST_FIXTURE_TEST_CASE(only_what_the_mask_asks_for, Enabled) {
  const Tensor x = random({1, 2, 5, 5}), w = random({2, 2, 3, 3}), dy = random({1, 2, 3, 3});
  const auto [dx, dw, db] = backward(dy, x, w, {}, {0, 1, 0});
  BOOST_CHECK(!dx.defined);
  BOOST_CHECK(dw.defined);
  BOOST_CHECK(!db.defined);
}

BOOST_FIXTURE_TEST_CASE(operands_that_lie_otherwise_are_copied, Enabled) {
  Tensor x = random({1, 3, 6, 6}), w = random({2, 3, 3, 3}), dy = random({1, 2, 4, 4});
  Tensor turned = x;  // its height and width exchanged
  std::swap(turned.strides[2], turned.strides[3]);
  const Tensor y = forward(turned, w, nullptr, {});
  Sums want = zeros(y.sizes);
  for_products(
      turned, w, y, {},
      [&](auto n, auto k, auto cg, auto c, auto p, auto q, auto i, auto j, auto r, auto s) {
        want[flat(y.sizes, n, k, p, q)] += at(turned, n, c, i, j) * at(w, k, cg, r, s);
      });
  check_close(y, want);
}

BOOST_FIXTURE_TEST_CASE(what_is_not_served_is_native_and_told, Enabled) {
  const Tensor x = random({1, 2, 5, 5}), w = random({2, 2, 3, 3});
  const Tensor answer = random({1, 2, 3, 3});
  fake::torch().operators["native forward"] = [&](Value* stack) {
    stack[0] = fake::give(answer);
    return 0;
  };
  fake::torch().operators["kiln_torch::native_convolution"] = [&](Value* stack) {
    drop_forward_arguments(stack);
    kilnTorchSetNativeError("PyTorch's own words");
    stack[0] = fake::give(answer);
    return 0;
  };
  kilnTorchSetPolicy(3);
  BOOST_CHECK(forward(x, w, nullptr, {}).storage == answer.storage);
  BOOST_CHECK_EQUAL(fake::torch().calls["native forward"], 1);
  kilnTorchSetThreadPolicy(0);
  BOOST_CHECK(forward(x, w, nullptr, {}).storage != answer.storage);
  kilnTorchSetThreadPolicy(-1);
  // Bad input: PyTorch says what is wrong.
  BOOST_CHECK_EXCEPTION(
      {
        const Tensor narrow = random({1, 3, 5, 5});
        forward(narrow, w, nullptr, {});
      },
      std::runtime_error,
      [](const auto& error) { return std::strcmp(error.what(), "PyTorch's own words") == 0; });
  bool told = false;
  for (const auto& row : report())
    told = told || row["why"] == "input and weight differ in their channels";
  BOOST_CHECK(told);
}

BOOST_FIXTURE_TEST_CASE(background_is_native_until_the_kernel_is_there, Enabled) {
  const Tensor x = random({1, 2, 9, 9}), w = random({3, 2, 3, 3}), answer = random({1, 3, 7, 7});
  fake::torch().operators["native forward"] = [&](Value* stack) {
    stack[0] = fake::give(answer);
    return 0;
  };
  kilnTorchSetPolicy(1);
  forward(x, w, nullptr, {});
  kilnTorchWait();
  BOOST_CHECK(forward(x, w, nullptr, {}).storage != answer.storage);
  // Both are timed, and one stays.
  kilnTorchSetPolicy(2);
  forward(x, w, nullptr, {});
  const auto rows = report();
  BOOST_REQUIRE_EQUAL(rows.size(), 1);
  BOOST_CHECK_GT(rows[0]["kiln_us"].get<double>(), 0);
  BOOST_CHECK_GT(rows[0]["native_us"].get<double>(), 0);
}

// The file of choices of a test, deleted at its end.
struct ChoicesFile {
  std::string path = std::filesystem::temp_directory_path() /
                     ("kiln_choices_" + std::to_string(std::random_device()()));
  ~ChoicesFile() {
    kilnTorchUseChoices("", 0, "");
    std::filesystem::remove(path);
  }
  std::string text() const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Replaces what was measured, as another process finds it.
  void set_ways(const std::string& ways) const {
    const std::string key = text().substr(0, text().rfind('\t'));
    std::ofstream(path) << key << '\t' << ways << '\n';
    kilnTorchClear();
    kilnTorchUseChoices(path.c_str(), 0, "a context");
  }
};

BOOST_FIXTURE_TEST_CASE(all_gradients_of_a_call_are_measured_together, Enabled) {
  const Tensor x = random({1, 2, 8, 8}), w = random({3, 2, 3, 3}), dy = random({1, 3, 6, 6});
  std::vector<std::string> masks;  // of native calls
  fake::torch().operators["native backward"] = [&](Value* stack) {
    masks.emplace_back();
    for (int i = 0; i < 3; ++i) {
      masks.back() += stack[i] != 0 ? '1' : '0';
      Tensor undefined;
      undefined.defined = false;
      stack[i] = fake::give(stack[i] == 0 ? undefined : i == 0 ? x : w);
    }
    return 0;
  };
  const auto call = [&] {
    masks.clear();
    const auto [dx, dw, db] = backward(dy, x, w, {}, {1, 1, 0});
    BOOST_CHECK(dx.sizes == x.sizes);
    BOOST_CHECK(dw.sizes == w.sizes);
    return masks;
  };
  using Masks = std::vector<std::string>;
  const ChoicesFile file;
  kilnTorchUseChoices(file.path.c_str(), 1, "a context");
  kilnTorchSetPolicy(2);
  BOOST_CHECK(call() == Masks{"110"});  // nothing is compiled yet
  kilnTorchWait();
  const Masks measuring = call();
  for (const char* const mask : {"110", "100", "010"})
    BOOST_CHECK_GE(std::ranges::count(measuring, mask), 6);
  for (const auto& row : report()) BOOST_CHECK_GT(row["kiln_us"].get<double>(), 0);
  BOOST_CHECK_NE(file.text().find("data gradient"), std::string::npos);

  const auto with = [&](const std::string& ways) {
    file.set_ways(ways);
    call();
    kilnTorchWait();
    return call();
  };
  BOOST_CHECK(with("0:10/1 3:20/1 1:30/1 2:30/1").empty());
  BOOST_CHECK(with("0:20/1 3:10/1 1:30/1 2:30/1") == Masks{"110"});
  BOOST_CHECK(with("0:20/1 3:30/1 1:10/1 2:30/1") == Masks{"100"});
  BOOST_CHECK(with("0:20/1 3:30/1 1:30/1 2:10/1") == Masks{"010"});
  // A stream that is busy hides the host's time, but for a hair.
  BOOST_CHECK(with("0:100/90 3:99/10 1:100/100 2:100/100") == Masks{"110"});
  BOOST_CHECK(with("0:100/10 3:99/90 1:100/100 2:100/100").empty());
  // A damaged line is none: the call is measured.
  BOOST_CHECK_GT(with("0:20/1 9:10/1").size(), 6);
  BOOST_CHECK_GT(with("0:20/1 3:-1/1").size(), 6);
}

BOOST_FIXTURE_TEST_CASE(a_call_whose_measuring_fails_is_served, Enabled) {
  const Tensor x = random({1, 2, 8, 8}), w = random({3, 2, 3, 3}), answer = random({1, 3, 6, 6});
  bool fails = false;
  fake::torch().operators["native forward"] = [&](Value* stack) {
    if (fails) return 1;
    stack[0] = fake::give(answer);
    return 0;
  };
  int tries = 0;
  fake::torch().operators["kiln_torch::native_convolution"] = [&](Value* stack) {
    ++tries;
    drop_forward_arguments(stack);
    kilnTorchSetNativeError("out of memory");
    stack[0] = fake::give(answer);
    return 0;
  };
  kilnTorchSetPolicy(2);
  forward(x, w, nullptr, {});
  kilnTorchWait();
  fails = true;
  for (int i = 0; i < 3; ++i) BOOST_CHECK(forward(x, w, nullptr, {}).storage != answer.storage);
  BOOST_CHECK_EQUAL(tries, 1);
  BOOST_CHECK_EQUAL(report()[0]["served"], 3);
}

BOOST_FIXTURE_TEST_CASE(threads_share_the_plans_of_a_bounded_table, Enabled) {
  kilnTorchSetCapacity(2);
  std::vector<Tensor> inputs;
  const Tensor w = random({2, 2, 1, 1});
  for (std::int64_t n = 1; n <= 4; ++n) inputs.push_back(random({n, 2, 3, 3}));
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round)
        for (const Tensor& x : inputs) {
          const Tensor y = forward(x, w, nullptr, {});
          const double want =
              at(x, 0, 0, 2, 1) * at(w, 1, 0, 0, 0) + at(x, 0, 1, 2, 1) * at(w, 1, 1, 0, 0);
          right += std::abs(at(y, 0, 1, 2, 1) - want) < 1e-4;
        }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_CHECK_EQUAL(right, 4 * 20 * 4);
  BOOST_CHECK_LE(report().size(), 2);
  kilnTorchSetCapacity(4096);
}

BOOST_FIXTURE_TEST_CASE(no_memory_is_an_exception, Enabled) {
  fake::torch().out_of_memory = true;
  BOOST_CHECK_THROW(forward(random({1, 2, 5, 5}), random({2, 2, 3, 3}), nullptr, {}),
                    std::runtime_error);
  fake::torch().out_of_memory = false;
}
