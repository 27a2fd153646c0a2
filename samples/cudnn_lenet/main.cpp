// Trains LeNet on rendered digits through the cuDNN API.
//
//   cudnn_lenet           on the first GPU
//   cudnn_lenet host      a small network on Kiln's host device
//
// Exit status 0 if more than nine in ten of the test digits are right, 77 where there is no GPU.
#include <cudnn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>

#include "common/digits.hpp"
#include "network.hpp"

namespace {

constexpr int skipped = 77;

struct Options {
  LeNetSizes sizes;
  std::size_t train = 20000, test = 2000;
  int epochs = 3;
  float rate = 0.02f;
};

int run(const Options& options, kilnDeviceKind_t kind) {
  const std::unique_ptr<Memory> memory = Memory::open(kind);
  cudnnHandle_t handle = nullptr;
  CUDNN_CALL(cudnnCreate(&handle));
  double reached = 0;
  {
    const Digits train = render_digits(options.train, 1), test = render_digits(options.test, 2);
    LeNet network(handle, *memory, options.sizes, 1);
    const auto batch = static_cast<std::size_t>(options.sizes.batch);
    std::vector<std::size_t> order = numbers(train.count());
    std::mt19937_64 random(1);
    for (int epoch = 1; epoch <= options.epochs; ++epoch) {
      std::shuffle(order.begin(), order.end(), random);
      const float rate = epoch == options.epochs ? options.rate / 10 : options.rate;
      double loss = 0;
      for (std::size_t begin = 0; begin + batch <= train.count(); begin += batch) {
        const Batch each(train, order, begin, batch);
        const std::vector<float> p = network.train(each.pictures, each.labels, rate, 0.9f);
        loss += mean_loss(p, each.labels) * static_cast<double>(batch);
      }
      const auto predict = [&](const std::vector<float>& pictures) {
        return network.predict(pictures);
      };
      reached = accuracy(predictions(predict, test, batch), test);
      std::printf("epoch %d/%d  loss %.4f  test accuracy %.2f%%\n", epoch, options.epochs,
                  loss / static_cast<double>(train.count()), 100 * reached);
      std::fflush(stdout);
    }
  }
  CUDNN_CALL(cudnnDestroy(handle));
  if (reached > 0.9) return 0;
  std::printf("test accuracy %.4f; expected more than 0.9\n", reached);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 1 && std::string(argv[1]) == "host") {
      setenv("KILN_CUDNN_DEVICE", "host", 1);
      return run({.sizes = {.batch = 20, .filters1 = 4, .filters2 = 8, .hidden = 32},
                  .train = 800,
                  .test = 300,
                  .epochs = 3,
                  .rate = 0.03f},
                 KILN_DEVICE_HOST);
    }
    try {
      Memory::open(KILN_DEVICE_CUDA);
    } catch (const std::exception& error) {
      std::printf("skipped: %s\n", error.what());
      return skipped;
    }
    return run({}, KILN_DEVICE_CUDA);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cudnn_lenet: %s\n", error.what());
    return 1;
  }
}
