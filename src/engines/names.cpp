#include "engines/names.hpp"

namespace kiln {

namespace {

struct Alias {
  std::string_view before, now;
};

constexpr Alias aliases[] = {
    {.before = "halo_wgmma", .now = "halo_nhwc_wgmma"},
    {.before = "halo_wgmma_planar", .now = "halo_nchw_wgmma"},
    {.before = "halo_gemm", .now = "halo_nhwc_mma"},
    {.before = "halo_gemm_planar", .now = "halo_nchw_mma"},
    {.before = "halo_gemm_wgmma", .now = "halo_nhwc_wgmma_swap"},
    {.before = "halo_gemm_planar_wgmma", .now = "halo_nchw_wgmma_swap"},
    {.before = "few_channels", .now = "few_input_channels_mma"},
    {.before = "few_channels_wgmma", .now = "few_input_channels_wgmma_swap"},
    {.before = "few_rows", .now = "few_output_channels_mma"},
    {.before = "few_rows_wgmma", .now = "few_output_channels_wgmma"},
    {.before = "sliding_window", .now = "depthwise_fma"},
    {.before = "wgrad_channels_last", .now = "wgrad_nhwc_mma"},
    {.before = "wgrad_planar", .now = "wgrad_nchw_mma"},
    {.before = "wgrad_planar_wgmma", .now = "wgrad_nchw_wgmma_swap"},
    {.before = "wgrad_mma", .now = "wgrad_implicit_gemm_mma"},
    {.before = "wgrad_fma", .now = "wgrad_implicit_gemm_fma"},
    {.before = "direct_wgrad", .now = "wgrad_direct"},
};

}  // namespace

std::string_view engine_name(std::string_view given) {
  for (const Alias& alias : aliases)
    if (alias.before == given) return alias.now;
  return given;
}

}  // namespace kiln
