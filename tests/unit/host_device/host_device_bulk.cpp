// The host device's copy engine: boxes have the same places and swizzle as on a GPU, and a kernel
// that lacks a wait, a byte or an ordering gives a wrong result or an error.
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <functional>
#include <numeric>
#include <tuple>

#include "unit/host_device/host_device_support.hpp"

namespace kiln::test {
namespace {

using Element = std::uint16_t;
constexpr Element poison = 0xffff;

// Defects of the kernel of these tests.
enum Defect : int {
  none,
  no_wait,
  wrong_phase,
  too_few_bytes,
  too_many_bytes,
  used_again_too_early,
  store_not_waited_for,
  source_changed,
  misaligned,
  other_count
};

struct MapParams {
  alignas(64) std::array<std::byte, tensor_map_bytes> from, to;
  void* out;
  std::array<int, 5> at;
  std::array<int, 3> tap;
  int bytes;
  int defect;
};

// Loads a box, copies its bytes from shared memory to p.out, then stores the box.
constexpr std::string_view copies = R"(
#include "target/bulk_copy.cuh"
#include "target/warpgroup.cuh"
struct MapParams {
  TensorMap from, to;
  unsigned short* out;
  int at[5];
  int tap[3];
  int bytes;
  int defect;
};
KILN_KERNEL(test, 64, 1, MapParams, p) {
  enum { NONE, NO_WAIT, WRONG_PHASE, TOO_FEW, TOO_MANY, AGAIN, NOT_WAITED, CHANGED, MISALIGNED,
         OTHER_COUNT };
  unsigned short* const box = shared_array<unsigned short, 8192>(0);
  Mbarrier& barrier = *shared_array<Mbarrier, 1>(16384);
  const auto load = [&] {
    barrier.arrive_and_expect(p.bytes + (p.defect == TOO_MANY ? 16 : p.defect == TOO_FEW ? -16 : 0));
    void* const place = box + (p.defect == MISALIGNED ? 64 : 0);
    if constexpr (IM2COL && RANK == 5) {
      bulk_load_im2col(place, p.from, barrier, p.at, p.tap);
    } else if constexpr (IM2COL) {
      const int at[4] = {p.at[0], p.at[1], p.at[2], p.at[3]}, tap[2] = {p.tap[0], p.tap[1]};
      bulk_load_im2col(place, p.from, barrier, at, tap);
    } else if constexpr (RANK == 5) {
      bulk_load(place, p.from, barrier, p.at);
    } else {
      const int at[2] = {p.at[0], p.at[1]};
      bulk_load(place, p.from, barrier, at);
    }
  };
  if (thread_x() == 0) {
    barrier.init(1);
    mbarriers_are_made();
  }
  block_barrier();
  if (thread_x() == 0) load();
  if (p.defect != NO_WAIT) barrier.wait(p.defect == WRONG_PHASE ? 1 : 0);
  if (p.defect == AGAIN && thread_x() == 0) load();
  for (int i = thread_x(); i < p.bytes / 2; i += 64) p.out[i] = box[i];
  if (p.defect == AGAIN) barrier.wait(1);
  if (p.defect == OTHER_COUNT && thread_x() < 32) named_barrier<96>(1);
  if (p.defect == OTHER_COUNT && thread_x() >= 32) named_barrier<64>(1);
  if (p.defect != OTHER_COUNT) named_barrier<64>(1);
  show_to_copy_engine();
  block_barrier();
  if (thread_x() != 0) return;
  if constexpr (IM2COL && RANK == 5) {
    bulk_store_im2col(p.to, box, p.at);
  } else if constexpr (IM2COL) {
    const int at[4] = {p.at[0], p.at[1], p.at[2], p.at[3]};
    bulk_store_im2col(p.to, box, at);
  } else if constexpr (RANK == 5) {
    bulk_store(p.to, box, p.at);
  } else {
    const int at[2] = {p.at[0], p.at[1]};
    bulk_store(p.to, box, at);
  }
  bulk_commit();
  if (p.defect == CHANGED) box[0] = 7;
  if (p.defect != NOT_WAITED) bulk_wait_read<0>();
})";

std::unique_ptr<Kernel> copying_kernel(int rank, bool im2col) {
  return load_kernel(
      cat("constexpr int RANK = ", rank, "; constexpr bool IM2COL = ", im2col ? 1 : 0, ";"), copies,
      16384 + 8);
}

struct Copied {
  std::vector<Element> box;     // without the swizzle
  std::vector<Element> stored;  // the second tensor
  std::string failure;
};

struct Case {
  TensorMapSpec from, to;
  std::array<int, 5> at{};
  std::array<int, 3> tap{};
  std::size_t elements;
};

Copied run(const Kernel& kernel, const Case& item, Defect defect = none) {
  std::vector<Element> tensor(item.elements);
  std::iota(tensor.begin(), tensor.end(), Element{1});
  const Buffer<Element> in(tensor), second(std::vector<Element>(item.elements, 0));
  const auto count = static_cast<std::size_t>(item.from.box_elements());
  const Buffer<Element> out(count);
  const auto device = open_host_device();
  MapParams params{};
  device->encode_map(item.from, params.from);
  device->encode_map(item.to, params.to);
  device->set_map_address(params.from.data(), in.get());
  device->set_map_address(params.to.data(), second.get());
  params.out = out.get();
  params.at = item.at;
  params.tap = item.tap;
  params.bytes = static_cast<int>(count * sizeof(Element));
  params.defect = defect;
  LaunchShape shape;
  shape.block = {64, 1, 1};
  shape.shared_memory = 16384 + 8;
  Copied copied;
  try {
    kernel.launch(shape, std::as_bytes(std::span(&params, 1)), nullptr);
  } catch (const Error& error) {
    copied.failure = error.what();
  }
  const std::vector<Element> raw = out.read();
  copied.box.resize(count);
  const auto line = static_cast<std::size_t>(item.from.box[0]);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t row = i / line, place = i % line / 8;
    copied.box[i] = raw[row * line + ((place ^ (row * line / 64 % (line / 8))) * 8) + i % 8];
  }
  copied.stored = second.read();
  return copied;
}

// A matrix of 40 rows of 72 elements, and boxes of 24 rows of `line` elements.
Case matrix_case(int column, int row, int line = 64) {
  Case item;
  item.from.rank = 2;
  item.from.sizes = {72, 40};
  item.from.strides = {144};
  item.from.box = {line, 24};
  item.to = item.from;
  item.at = {column, row};
  item.elements = std::size_t{72} * 40;
  return item;
}

// Images {C 72, W 5, H 4, N 3}; a filter of width 3 and height 2, padding 1, strides 2 and 1.
Case image_case() {
  Case item;
  item.from.mode = TensorMapSpec::Mode::im2col;
  item.from.rank = 4;
  item.from.sizes = {72, 5, 4, 3};
  item.from.strides = {144, 5 * 144, 20 * 144};
  item.from.box = {64, 40};
  item.from.lower = {-1, -1};
  item.from.upper = {-1, 0};
  item.from.steps = {2, 1};
  item.to = item.from;
  item.to.lower = item.to.upper = {0, 0};
  item.to.steps = {1, 1};
  item.at = {8, 1, 0, 1};
  item.tap = {2, 1};
  item.elements = std::size_t{72} * 60;
  return item;
}

// Volumes {C 72, W 4, H 3, D 3, N 2}; a filter of 2 x 2 x 2, padding 1 before, strides 1, 2 and 1.
Case volume_case() {
  Case item;
  item.from.mode = TensorMapSpec::Mode::im2col;
  item.from.rank = 5;
  item.from.sizes = {72, 4, 3, 3, 2};
  item.from.strides = {144, 4 * 144, 12 * 144, 36 * 144};
  item.from.box = {64, 40};
  item.from.lower = {-1, -1, -1};
  item.from.upper = {-1, -1, -1};
  item.from.steps = {1, 2, 1};
  item.to = item.from;
  item.to.lower = item.to.upper = {0, 0, 0};
  item.to.steps = {1, 1, 1};
  item.at = {8, 2, -1, 0, 0};
  item.tap = {1, 1, 0};
  item.elements = std::size_t{72} * 72;
  return item;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(host_device_bulk)

BOOST_AUTO_TEST_CASE(tiled_boxes_and_what_lies_outside) {
  const auto kernel = copying_kernel(2, false);
  for (const auto& [column, row, line] :
       {std::tuple(0, 0, 64), {8, 16, 64}, {-16, -5, 64}, {40, 30, 64}, {8, 3, 32}, {56, 30, 16}}) {
    const Copied copied = run(*kernel, matrix_case(column, row, line));
    BOOST_TEST(copied.failure == "");
    std::vector<Element> expected, stored(72 * 40, 0);
    for (int i = 0; i < 24; ++i)
      for (int j = 0; j < line; ++j) {
        const int r = row + i, c = column + j;
        const bool inside = r >= 0 && r < 40 && c >= 0 && c < 72;
        expected.push_back(inside ? static_cast<Element>(r * 72 + c + 1) : Element{0});
        if (inside) stored[static_cast<std::size_t>(r * 72 + c)] = expected.back();
      }
    BOOST_TEST(copied.box == expected, boost::test_tools::per_element());
    BOOST_TEST(copied.stored == stored, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(im2col_walks_rows_and_images) {
  const auto kernel = copying_kernel(4, true);
  const Case item = image_case();
  const Copied copied = run(*kernel, item);
  BOOST_TEST(copied.failure == "");
  std::vector<Element> expected, stored(item.elements, 0);
  // The load visits positions w = -1, 1, 3 of rows h = -1 to 3, beginning at (1, 0) of image 1.
  int w = 1, h = 0, n = 1;
  for (int pixel = 0; pixel < 40; ++pixel) {
    for (int j = 0; j < 64; ++j) {
      const int x = w + 2, y = h + 1, c = 8 + j;
      const bool inside = x >= 0 && x < 5 && y >= 0 && y < 4 && n < 3;
      expected.push_back(inside ? static_cast<Element>(((n * 4 + y) * 5 + x) * 72 + c + 1)
                                : Element{0});
    }
    w += 2;
    if (w > 3) w = -1, ++h;
    if (h > 3) h = -1, ++n;
  }
  BOOST_TEST(copied.box == expected, boost::test_tools::per_element());
  // The store writes 40 consecutive pixels from the same position on. Pixels beyond the end are
  // dropped.
  for (std::size_t pixel = 0, at = 20 + 1; pixel < 40 && at < 60; ++pixel, ++at)
    for (std::size_t j = 0; j < 64; ++j) stored[at * 72 + 8 + j] = expected[pixel * 64 + j];
  BOOST_TEST(copied.stored == stored, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(im2col_walks_planes) {
  const auto kernel = copying_kernel(5, true);
  const Case item = volume_case();
  const Copied copied = run(*kernel, item);
  BOOST_TEST(copied.failure == "");
  std::vector<Element> expected, stored(item.elements, 0);
  // The load visits positions w = -1 to 2 of rows h = -1, 1 of planes d = -1 to 1, beginning at
  // (2, -1, 0).
  int w = 2, h = -1, d = 0, n = 0;
  for (int pixel = 0; pixel < 40; ++pixel) {
    for (int j = 0; j < 64; ++j) {
      const int x = w + 1, y = h + 1, z = d, c = 8 + j;
      const bool inside = x >= 0 && x < 4 && y >= 0 && y < 3 && z >= 0 && z < 3 && n < 2;
      expected.push_back(inside ? static_cast<Element>((((n * 3 + z) * 3 + y) * 4 + x) * 72 + c + 1)
                                : Element{0});
    }
    if (++w > 2) w = -1, h += 2;
    if (h > 1) h = -1, ++d;
    if (d > 1) d = -1, ++n;
  }
  BOOST_TEST(copied.box == expected, boost::test_tools::per_element());
  // The store begins at another position, above the first row, and continues to rows and planes
  // inside.
  int at_w = 2, at_h = -1, at_d = 0, at_n = 0;
  for (std::size_t pixel = 0; pixel < 40; ++pixel) {
    if (at_h >= 0 && at_n < 2)
      for (std::size_t j = 0; j < 64; ++j)
        stored[static_cast<std::size_t>(((at_n * 3 + at_d) * 3 + at_h) * 4 + at_w) * 72 + 8 + j] =
            expected[pixel * 64 + j];
    if (++at_w > 3) at_w = 0, ++at_h;
    if (at_h > 2) at_h = 0, ++at_d;
    if (at_d > 2) at_d = 0, ++at_n;
  }
  BOOST_TEST(copied.stored == stored, boost::test_tools::per_element());
}

// A tensor {C 72, W 4, H 3, D 3, N 2} in boxes of 64 x 3 x 2 x 2 x 1.
BOOST_AUTO_TEST_CASE(tiled_boxes_of_five_dimensions) {
  const auto kernel = copying_kernel(5, false);
  Case item = volume_case();
  item.from.mode = TensorMapSpec::Mode::tiled;
  item.from.box = {64, 3, 2, 2, 1};
  item.to = item.from;
  item.at = {8, 2, -1, 2, 1};
  const Copied copied = run(*kernel, item);
  BOOST_TEST(copied.failure == "");
  std::vector<Element> expected, stored(item.elements, 0);
  for (int z = 2; z < 4; ++z)
    for (int y = -1; y < 1; ++y)
      for (int x = 2; x < 5; ++x)
        for (int c = 8; c < 72; ++c) {
          const bool inside = x < 4 && y >= 0 && z < 3;
          const int place = (((3 + z) * 3 + y) * 4 + x) * 72 + c;
          expected.push_back(inside ? static_cast<Element>(place + 1) : Element{0});
          if (inside) stored[static_cast<std::size_t>(place)] = expected.back();
        }
  BOOST_TEST(copied.box == expected, boost::test_tools::per_element());
  BOOST_TEST(copied.stored == stored, boost::test_tools::per_element());
}

// Offsets beyond the bits of the instruction are errors.
BOOST_AUTO_TEST_CASE(offsets_of_im2col_copies) {
  const auto failure = [](Case item, int offset) {
    item.tap[1] = offset;
    return run(*copying_kernel(item.from.rank, true), item).failure;
  };
  const auto tells = [](const std::string& text, std::string_view words) {
    BOOST_TEST((text.find(words) != std::string::npos), text);
  };
  BOOST_TEST(failure(image_case(), 255) == "");
  tells(failure(image_case(), 256), "an im2col copy's offset is 256; expected 0 to 255");
  tells(failure(image_case(), -1), "an im2col copy's offset is -1; expected 0 to 255");
  BOOST_TEST(failure(volume_case(), 31) == "");
  tells(failure(volume_case(), 32), "an im2col copy's offset is 32; expected 0 to 31");
}

BOOST_AUTO_TEST_CASE(what_is_not_waited_for_is_no_number) {
  const auto kernel = copying_kernel(2, false);
  for (const Defect defect : {no_wait, wrong_phase, used_again_too_early}) {
    const Copied copied = run(*kernel, matrix_case(0, 0), defect);
    BOOST_TEST(std::ranges::count(copied.box, poison) > 0, defect);
  }
  BOOST_TEST(run(*kernel, matrix_case(0, 0), source_changed).stored[0] == 7);
}

BOOST_AUTO_TEST_CASE(defects_are_told) {
  const auto kernel = copying_kernel(2, false);
  const auto failure = [&](Defect defect, int column) {
    return run(*kernel, matrix_case(column, 0), defect).failure;
  };
  const auto tells = [&](Defect defect, std::string_view words, int column = 0) {
    const std::string text = failure(defect, column);
    BOOST_TEST((text.find(words) != std::string::npos), text);
  };
  tells(no_wait, "while bulk copies of 3072 bytes are on their way to it");
  tells(too_few_bytes, "copies of 3072 bytes come to an mbarrier that was told of 3056");
  tells(too_many_bytes, "an mbarrier was told of 3088 bytes, and copies have 3072");
  tells(store_not_waited_for, "ends while 1 of its bulk stores read shared memory");
  tells(misaligned, "expected a multiple of 1024 bytes");
  tells(other_count, "threads wait at named barrier 1");
  for (const int column : {1, -1, 4, 73}) tells(none, "a bulk copy begins at byte ", column);
}

BOOST_AUTO_TEST_CASE(maps_that_a_driver_refuses) {
  const auto refused = [](const std::function<void(TensorMapSpec&)>& change) {
    TensorMapSpec spec = image_case().from;
    change(spec);
    std::array<std::byte, tensor_map_bytes> map;
    try {
      open_host_device()->encode_map(spec, map);
    } catch (const Error& error) {
      return error.status() == KILN_STATUS_EXECUTION_FAILED;
    }
    return false;
  };
  BOOST_TEST(!refused([](TensorMapSpec&) {}));
  BOOST_TEST(refused([](TensorMapSpec& spec) { spec.strides[0] = 136; }));
  BOOST_TEST(refused([](TensorMapSpec& spec) { spec.lower[0] = -129; }));
  BOOST_TEST(refused([](TensorMapSpec& spec) {
    spec = volume_case().from;
    spec.upper[2] = 16;
  }));
  BOOST_TEST(refused([](TensorMapSpec& spec) {
    spec = volume_case().from;
    spec.steps[2] = 9;
  }));
  BOOST_TEST(refused([](TensorMapSpec& spec) { spec.box[1] = 1025; }));
  BOOST_TEST(refused([](TensorMapSpec& spec) { spec.box[0] = 48; }));
  BOOST_TEST(refused([](TensorMapSpec& spec) { spec.steps[0] = 9; }));
  BOOST_TEST(refused([](TensorMapSpec& spec) { spec.rank = 6; }));
  BOOST_TEST(refused([](TensorMapSpec& spec) { spec.sizes[2] = 0; }));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::test
