#include "problem/line/problem_line.hpp"

#include <array>
#include <charconv>
#include <optional>

#include "core/error.hpp"
#include "problem/line/notation.hpp"

namespace kiln {
namespace {

constexpr std::array<const char*, 3> axis_names{"depth", "height", "width"};

// The largest size of a problem line. Together with checked products it keeps all arithmetic here
// within 64 bits.
constexpr std::int64_t largest = std::int64_t{1} << 40;

using Value = std::optional<std::int64_t>;

struct Entries {
  Value groups, batch, in_channels, out_channels;
  std::array<std::array<Value, 3>, kinds> sizes;  // [kind][axis]
  std::string name;
};

template <class... Parts>
[[noreturn]] void fail_at(std::size_t column, const Parts&... parts) {
  fail(KILN_STATUS_BAD_PARAM, "column ", column, ": ", parts...);
}

class Reader {
 public:
  explicit Reader(std::string_view line) : line_(trim_end(line)) {
    while (at_ < line_.size() && is_space(line_[at_])) ++at_;
  }

  Entries read() {
    Entries entries;
    while (at_ < line_.size()) {
      if (line_[at_] == '_') {
        ++at_;
      } else if (line_[at_] == 'n') {
        entries.name = unquoted(line_.substr(at_ + 1));
        break;
      } else {
        read_entry(entries);
      }
    }
    return entries;
  }

  std::size_t column() const { return at_ + 1; }

 private:
  void read_entry(Entries& entries) {
    const std::size_t start = column();
    std::int64_t least = 1;
    std::string_view key;
    Value& slot = find_slot(entries, key, least);
    at_ += key.size();
    const std::int64_t value = read_value(key);
    if (value < least || value > largest) {
      fail_at(start, key, " is ", value, "; expected ", least, " to ", largest);
    }
    if (slot && *slot != value) {
      fail_at(start, key, " is ", value, ", but was ", *slot, " before; expected it once");
    }
    slot = value;
  }

  // The slot of the entry that begins here. Sets its key and its least value.
  Value& find_slot(Entries& entries, std::string_view& key, std::int64_t& least) const {
    const std::string_view rest = line_.substr(at_);
    const auto begins = [&](std::string_view candidate) {
      if (!rest.starts_with(candidate)) return false;
      key = rest.substr(0, candidate.size());
      return true;
    };
    if (begins("g")) return entries.groups;
    if (begins("ic")) return entries.in_channels;
    if (begins("oc")) return entries.out_channels;
    if (begins("mb")) {
      least = 0;
      return entries.batch;
    }
    if (rest.size() >= 2) {
      const std::size_t kind = kind_letters.find(rest[0]), axis = axis_letters.find(rest[1]);
      if (kind != kind_letters.npos && axis != axis_letters.npos) {
        key = rest.substr(0, 2);
        least = kind == pad ? -largest : kind == dilation ? 0 : 1;
        return entries.sizes[kind][axis];
      }
    }
    if (is_space(rest[0])) fail_at(column(), "a blank; expected the next entry or the line's end");
    fail_at(column(), "\"", word(), "\" begins no entry; expected g, mb, ic, oc, n\"name\", or one",
            " of i o k s p d followed by d, h or w, such as ih or kw");
  }

  std::int64_t read_value(std::string_view key) {
    const char* const begin = line_.data() + at_;
    const char* const end = line_.data() + line_.size();
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error == std::errc::invalid_argument) {
      const std::string found = at_ == line_.size() ? "the end of the line" : cat('"', word(), '"');
      fail_at(column(), key, " is followed by ", found, "; expected a whole number");
    }
    if (error == std::errc::result_out_of_range) {
      fail_at(column(), key, " is ", std::string_view(begin, stop - begin), "; expected at most ",
              largest);
    }
    at_ += stop - begin;
    return value;
  }

  // The text from here to the next number or separator, for error messages.
  std::string_view word() const {
    std::size_t end = at_ + 1;
    while (end < line_.size() && end < at_ + 12 && !is_digit(line_[end]) && line_[end] != '_' &&
           !is_space(line_[end])) {
      ++end;
    }
    return line_.substr(at_, end - at_);
  }

  std::string_view line_;
  std::size_t at_ = 0;
};

// Whether the line has this dimension: if any of its entries differs from the default. As in
// benchdnn, `pd0` or `sd1` alone do not make a problem three-dimensional.
bool is_given(const Entries& entries, int axis) {
  const auto at = [&](Kind kind) { return entries.sizes[kind][axis]; };
  return at(in) || at(out) || at(filter) || at(stride).value_or(1) != 1 ||
         at(pad).value_or(0) != 0 || at(dilation).value_or(0) != 0;
}

std::int64_t checked_product(std::int64_t a, std::int64_t b, const char* what, int axis) {
  std::int64_t product;
  if (__builtin_mul_overflow(a, b, &product) || product > (std::int64_t{1} << 60)) {
    fail(KILN_STATUS_BAD_PARAM, "the ", what, " in ", axis_names[axis], " is ", a, " * ", b,
         ", too large; expected less than 2^60");
  }
  return product;
}

// One spatial dimension of the line from its entries and from the dimension above it.
//
// As in benchdnn, a dimension whose input and filter sizes are given gets defaults for all other
// values. In any other dimension, missing values are those of the dimension above.
class Axis {
 public:
  Axis(const Entries& entries, int axis, const Axis* above) : axis_(axis) {
    for (int kind = 0; kind < kinds; ++kind) own_[kind] = entries.sizes[kind][axis];
    sizes_ = own_;
    if (above && !(own_[in] && own_[filter])) above_ = above;
    if (above_) {
      for (Kind kind : {in, filter, stride, dilation}) {
        if (!sizes_[kind]) sizes_[kind] = above_->sizes_[kind];
      }
    }
    if (!sizes_[in]) fail_missing("size", 'i');
    if (!sizes_[filter]) fail_missing("filter size", 'k');
    if (!sizes_[stride]) sizes_[stride] = 1;
    if (!sizes_[dilation]) sizes_[dilation] = 0;
    resolve_padding_and_output();
  }

  std::int64_t operator[](Kind kind) const { return *sizes_[kind]; }

  // The padding behind the input that the output size implies.
  std::int64_t pad_after() const { return implied_padding() - *sizes_[pad]; }

 private:
  std::int64_t extent() const {  // of the filter with its dilation
    return checked_product(*sizes_[filter] - 1, *sizes_[dilation] + 1, "extent of the filter",
                           axis_) +
           1;
  }

  // The padding of both sides together that the output size implies.
  std::int64_t implied_padding() const {
    return checked_product(*sizes_[out] - 1, *sizes_[stride], "input that the output needs",
                           axis_) -
           *sizes_[in] + extent();
  }

  // Whether all given entries equal those of the dimension above. Then the others are the same too.
  bool repeats_above() const {
    if (!above_) return false;
    for (Kind kind : {in, filter, stride, dilation}) {
      if (sizes_[kind] != above_->sizes_[kind]) return false;
    }
    for (Kind kind : {out, pad}) {
      if (sizes_[kind] && sizes_[kind] != above_->sizes_[kind]) return false;
    }
    return true;
  }

  void resolve_padding_and_output() {
    if (repeats_above()) {
      sizes_[out] = above_->sizes_[out];
      sizes_[pad] = above_->sizes_[pad];
      return;
    }
    if (sizes_[out]) {
      // Rounded toward zero, as in benchdnn: the smaller half of an odd total is before the input.
      if (!sizes_[pad]) sizes_[pad] = within(implied_padding() / 2, "padding");
      return;
    }
    if (!sizes_[pad]) sizes_[pad] = nearest_given_padding().value_or(0);
    const std::int64_t room = *sizes_[in] + 2 * *sizes_[pad] - extent();
    if (room < 0) {
      fail(KILN_STATUS_BAD_PARAM, "the filter spans ", extent(), " in ", axis_names[axis_], " (k",
           axis_letters[axis_], *sizes_[filter], ", d", axis_letters[axis_], *sizes_[dilation],
           "); expected at most ", *sizes_[in] + 2 * *sizes_[pad], ", the ", *sizes_[in], " of i",
           axis_letters[axis_], " with padding ", *sizes_[pad], " on both sides");
    }
    sizes_[out] = within(room / *sizes_[stride] + 1, "output size");
  }

  Value nearest_given_padding() const {
    for (const Axis* axis = above_; axis; axis = axis->above_) {
      if (axis->own_[pad]) return axis->own_[pad];
    }
    return {};
  }

  std::int64_t within(std::int64_t value, const char* what) const {
    if (value < -largest || value > largest) {
      fail(KILN_STATUS_BAD_PARAM, "the ", what, " in ", axis_names[axis_], " comes to ", value,
           "; expected at most ", largest);
    }
    return value;
  }

  [[noreturn]] void fail_missing(const char* what, char letter) const {
    fail(KILN_STATUS_BAD_PARAM, "no ", what, " in ", axis_names[axis_], "; expected an entry ",
         letter, axis_letters[axis_]);
  }

  int axis_;
  const Axis* above_ = nullptr;  // the dimension above, if there is one
  std::array<Value, kinds> own_, sizes_;
};

std::int64_t required_channels(const Value& channels, const char* key, const char* what,
                               std::int64_t groups) {
  if (!channels) {
    fail(KILN_STATUS_BAD_PARAM, "no ", what, " channels; expected an entry ", key);
  }
  if (*channels % groups != 0) {
    fail(KILN_STATUS_BAD_PARAM, key, " is ", *channels, "; expected a multiple of the ", groups,
         " groups (", key, " counts the channels of all of them)");
  }
  return *channels;
}

// A line with the sizes in space and the name.
ConvolutionLine parse_space(const Entries& entries) {
  ConvolutionLine line;
  line.name = entries.name;
  line.batch = entries.batch.value_or(2);
  int first = 0;
  while (first < 3 && !is_given(entries, first)) ++first;
  if (first == 3) {
    fail(KILN_STATUS_BAD_PARAM, "no spatial sizes; expected an entry iw, ih or id, such as ih56");
  }
  line.rank = 3 - first;
  std::array<std::optional<Axis>, 3> axes;
  for (int i = first; i < 3; ++i) {
    const Axis& axis = axes[i].emplace(entries, i, i > first ? &*axes[i - 1] : nullptr);
    line.in[i] = axis[in];
    line.filter[i] = axis[filter];
    line.out[i] = axis[out];
    line.stride[i] = axis[stride];
    line.dilation[i] = axis[dilation] + 1;
    line.pad_before[i] = axis[pad];
    line.pad_after[i] = axis.pad_after();
  }
  return line;
}

}  // namespace

ConvolutionLine parse_convolution_line(std::string_view text) {
  const Entries entries = Reader(text).read();
  const std::int64_t groups = entries.groups.value_or(1);
  const std::int64_t in_channels = required_channels(entries.in_channels, "ic", "input", groups);
  const std::int64_t out_channels = required_channels(entries.out_channels, "oc", "output", groups);
  ConvolutionLine line = parse_space(entries);
  line.groups = groups;
  line.in_channels = in_channels;
  line.out_channels = out_channels;
  return line;
}

ConvolutionLine parse_pooling_line(std::string_view text) {
  const Entries entries = Reader(text).read();
  if (entries.groups || entries.out_channels) {
    fail(KILN_STATUS_BAD_PARAM, entries.groups ? "g" : "oc",
         " is given; pooling has no groups, and as many output channels as ic");
  }
  const std::int64_t channels = required_channels(entries.in_channels, "ic", "input", 1);
  ConvolutionLine line = parse_space(entries);
  line.in_channels = line.out_channels = channels;
  return line;
}

}  // namespace kiln
