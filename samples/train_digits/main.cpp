// Trains a LeNet-style network on pictures of digits, with Kiln alone.
//
//   train_digits                  rendered digits, on the first GPU if there is one; else a small
//                                 network on the host device, which takes some seconds
//   train_digits --mnist FOLDER   MNIST's IDX files
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <random>

#include "common/digits.hpp"
#include "network.hpp"
#include "picture.hpp"

namespace {

struct Options {
  std::string device, mnist, png = "digits.png";
  std::size_t train = 20000, test = 2000;
  int epochs = 6;
  double rate = 0.02, momentum = 0.9, expected = 0;
  std::uint64_t seed = 1;
  NetworkSizes sizes;
};

// Where --device says; without it on a GPU, if there is one.
std::string chosen_device(int argc, char** argv) {
  CLI::App app;
  std::string device;
  app.set_help_flag();
  app.allow_extras();
  app.add_option("--device", device);
  app.parse(argc, argv);
  if (!device.empty()) return device;
  try {
    const kiln::Handle handle(KILN_DEVICE_CUDA);
    return "cuda";
  } catch (const std::exception& error) {
    std::printf("on the host device, for want of a GPU (%s)\n", error.what());
    return "host";
  }
}

// The host device is no fast one: a small network, and no more digits than it needs.
Options defaults_of(const std::string& device) {
  Options options;
  options.device = device;
  if (device != "host") return options;
  options.sizes = {.batch = 20, .filters1 = 4, .filters2 = 8, .hidden = 32, .simple_engines = true};
  options.train = 1000;
  options.test = 300;
  options.epochs = 4;
  options.rate = 0.03;
  return options;
}

Options read_options(int argc, char** argv, CLI::App& app) {
  Options options = defaults_of(chosen_device(argc, argv));
  app.add_option("--device", options.device, "cuda or host; the defaults below are for this one")
      ->check(CLI::IsMember({"cuda", "host"}))
      ->capture_default_str();
  app.add_option("--mnist", options.mnist, "Folder of MNIST's IDX files; else digits are rendered");
  app.add_option("--train", options.train, "Pictures to train on")->capture_default_str();
  app.add_option("--test", options.test, "Pictures to test on")->capture_default_str();
  app.add_option("--epochs", options.epochs, "Times through them")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--batch", options.sizes.batch, "Pictures a step")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--filters1", options.sizes.filters1)
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--filters2", options.sizes.filters2)
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--hidden", options.sizes.hidden)
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--lr", options.rate, "Learning rate")->capture_default_str();
  app.add_option("--momentum", options.momentum)->capture_default_str();
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_option("--png", options.png, "Where the picture goes")->capture_default_str();
  app.add_option("--expect", options.expected, "Fail below this test accuracy (0 to 1)")
      ->capture_default_str();
  app.parse(argc, argv);
  return options;
}

void show_progress(int epoch, const Options& options, std::size_t done, double loss) {
  if (!isatty(STDOUT_FILENO)) return;
  const int filled = static_cast<int>(30 * done / options.train);
  std::printf("\repoch %d/%d [%-30.*s] loss %.4f ", epoch, options.epochs, filled,
              "##############################", loss);
  std::fflush(stdout);
}

// One time through the training set; the mean loss of its last quarter.
double train_epoch(Network& network, const Digits& digits, const Options& options, int epoch,
                   double rate, std::mt19937_64& random, std::vector<double>& losses) {
  std::vector<std::size_t> order = numbers(digits.count());
  std::shuffle(order.begin(), order.end(), random);
  const auto batch = static_cast<std::size_t>(options.sizes.batch);
  double recent = 0, sum = 0;
  std::size_t summed = 0;
  for (std::size_t begin = 0; begin < digits.count(); begin += batch) {
    const Batch data(digits, order, begin, batch);
    const std::vector<float> p = network.train(data.pictures, data.labels, rate, options.momentum);
    const double loss = mean_loss(p, data.labels);
    losses.push_back(loss);
    recent = begin == 0 ? loss : 0.9 * recent + 0.1 * loss;
    if (begin >= digits.count() * 3 / 4) sum += loss, ++summed;
    show_progress(epoch, options, std::min(begin + batch, digits.count()), recent);
  }
  return summed > 0 ? sum / static_cast<double>(summed) : recent;
}

int run(const Options& options) {
  const kilnDeviceKind_t kind = options.device == "host" ? KILN_DEVICE_HOST : KILN_DEVICE_CUDA;
  const kiln::Handle handle(kind);
  const std::unique_ptr<Memory> memory = Memory::open(kind);
  const bool mnist = !options.mnist.empty();
  const Digits train = mnist ? read_mnist(options.mnist, "train", options.train)
                             : render_digits(options.train, options.seed);
  const Digits test = mnist ? read_mnist(options.mnist, "t10k", options.test)
                            : render_digits(options.test, options.seed + 1000003);
  if (train.count() == 0 || test.count() == 0) throw std::runtime_error("there are no pictures");

  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  Network network(handle, *memory, options.sizes, options.seed);
  std::printf("%zu pictures to train on, %zu to test; plans ready after %.2f s\n", train.count(),
              test.count(), seconds());

  std::mt19937_64 random(options.seed);
  Training training;
  training.epochs = options.epochs;
  double reached = 0;
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    // The last third with a tenth of the rate.
    const double rate = 3 * epoch > 2 * options.epochs + 1 ? options.rate / 10 : options.rate;
    const double loss = train_epoch(network, train, options, epoch, rate, random, training.losses);
    training.predictions =
        predictions([&](const std::vector<float>& pictures) { return network.predict(pictures); },
                    test, static_cast<std::size_t>(options.sizes.batch));
    reached = accuracy(training.predictions, test);
    std::printf("%sepoch %d/%d  loss %.4f  test accuracy %.2f%%  %.1f s\n",
                isatty(STDOUT_FILENO) ? "\r\033[K" : "", epoch, options.epochs, loss, 100 * reached,
                seconds());
    std::fflush(stdout);
  }

  const std::map<std::string, int> origins = network.kernel_origins();
  std::printf("kernels: %d compiled, %d from the cache on disk, %d shared within the process\n",
              origins.at("compiled"), origins.at("disk"), origins.at("memory"));
  std::array<char, 200> title{};
  std::snprintf(title.data(), title.size(),
                "%s: %.2f%% of %zu test digits are right after %d epochs of %zu digits, %.1f s",
                kind == KILN_DEVICE_HOST ? "Host device" : "GPU", 100 * reached, test.count(),
                options.epochs, train.count(), seconds());
  training.title = title.data();
  training.filters = network.first_filters();
  write_picture(options.png, training, test);
  std::printf("picture: %s\n", options.png.c_str());
  if (reached < options.expected) {
    std::printf("test accuracy %.4f; expected at least %.4f\n", reached, options.expected);
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a network on pictures of digits, with Kiln alone.");
  try {
    return run(read_options(argc, argv, app));
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_digits: %s\n", error.what());
    return 1;
  }
}
