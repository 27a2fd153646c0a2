// The content of normalization descriptors.
#pragma once

#include "api/api.hpp"
#include "problem/normalization.hpp"

struct kilnNormalizationStruct {
  static constexpr auto kind = "a normalization descriptor",
                        creator = "kilnCreateNormalizationDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b6c7409;
  kiln::api::Mark mark{mark_value};
  kiln::NormalizationSpec spec;
};
