// cudnnNormalization..., the functions that version 8 added.
#include "cudnn/forward/translate.hpp"
#include "cudnn/normalization/call.hpp"

using kiln::api::check_pointer;
using kiln::cudnn::Function;
using kiln::cudnn::kind_of;
using kiln::cudnn::serve;
using kiln::cudnn::serve_writing;

cudnnStatus_t cudnnDeriveNormTensorDescriptor(cudnnTensorDescriptor_t derivedNormScaleBiasDesc,
                                              cudnnTensorDescriptor_t derivedNormMeanVarDesc,
                                              cudnnTensorDescriptor_t xDesc, cudnnNormMode_t mode,
                                              int groupCnt) {
  return serve_writing(
      {derivedNormScaleBiasDesc, derivedNormMeanVarDesc}, Function(cudnnDeriveNormTensorDescriptor),
      [&] {
        const auto kind = kind_of(mode, CUDNN_NORM_OPS_NORM, CUDNN_NORM_ALGO_STANDARD, groupCnt);
        // Both or, on failure, neither.
        kiln::api::checked(derivedNormMeanVarDesc, "derivedNormMeanVarDesc");
        kiln::cudnn::derive(derivedNormScaleBiasDesc, "derivedNormScaleBiasDesc", xDesc, kind);
        kiln::cudnn::derive(derivedNormMeanVarDesc, "derivedNormMeanVarDesc", xDesc, kind);
      },
      derivedNormScaleBiasDesc, derivedNormMeanVarDesc, xDesc, mode, groupCnt);
}

cudnnStatus_t cudnnGetNormalizationForwardTrainingWorkspaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    cudnnTensorDescriptor_t xDesc, cudnnTensorDescriptor_t zDesc, cudnnTensorDescriptor_t yDesc,
    cudnnTensorDescriptor_t normScaleBiasDesc, cudnnActivationDescriptor_t activationDesc,
    cudnnTensorDescriptor_t normMeanVarDesc, size_t* sizeInBytes, int groupCnt) {
  return serve(
      Function(cudnnGetNormalizationForwardTrainingWorkspaceSize),
      [&] {
        check_pointer(sizeInBytes, "sizeInBytes", "where to store the bytes");
        *sizeInBytes = kiln::cudnn::training_workspace(
            {.handle = handle,
             .kind = kind_of(mode, normOps, algo, groupCnt),
             .activation = activationDesc,
             .x = {xDesc, "xDesc"},
             .z = {zDesc, "zDesc"},
             .y = {yDesc, "yDesc"},
             .parameters = {{{normScaleBiasDesc, "normScaleBiasDesc"},
                             {normMeanVarDesc, "normMeanVarDesc"}}}});
      },
      handle, mode, normOps, algo, xDesc, zDesc, yDesc, normScaleBiasDesc, activationDesc,
      normMeanVarDesc, sizeInBytes, groupCnt);
}

cudnnStatus_t cudnnGetNormalizationBackwardWorkspaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    cudnnTensorDescriptor_t xDesc, cudnnTensorDescriptor_t yDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnTensorDescriptor_t dzDesc, cudnnTensorDescriptor_t dxDesc,
    cudnnTensorDescriptor_t dNormScaleBiasDesc, cudnnActivationDescriptor_t activationDesc,
    cudnnTensorDescriptor_t normMeanVarDesc, size_t* sizeInBytes, int groupCnt) {
  return serve(
      Function(cudnnGetNormalizationBackwardWorkspaceSize),
      [&] {
        check_pointer(sizeInBytes, "sizeInBytes", "where to store the bytes");
        *sizeInBytes = kiln::cudnn::gradient_workspace(
            {.handle = handle,
             .kind = kind_of(mode, normOps, algo, groupCnt),
             .activation = activationDesc,
             .x = {xDesc, "xDesc"},
             .y = {yDesc, "yDesc"},
             .dy = {dyDesc, "dyDesc"},
             .dz = {dzDesc, "dzDesc"},
             .dx = {dxDesc, "dxDesc"},
             .parameters = {{{dNormScaleBiasDesc, "dNormScaleBiasDesc"},
                             {normMeanVarDesc, "normMeanVarDesc"}}}});
      },
      handle, mode, normOps, algo, xDesc, yDesc, dyDesc, dzDesc, dxDesc, dNormScaleBiasDesc,
      activationDesc, normMeanVarDesc, sizeInBytes, groupCnt);
}

cudnnStatus_t cudnnGetNormalizationTrainingReserveSpaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    cudnnActivationDescriptor_t activationDesc, cudnnTensorDescriptor_t xDesc, size_t* sizeInBytes,
    int groupCnt) {
  return serve(
      Function(cudnnGetNormalizationTrainingReserveSpaceSize),
      [&] {
        check_pointer(sizeInBytes, "sizeInBytes", "where to store the bytes");
        *sizeInBytes = kiln::cudnn::reserve_space({.handle = handle,
                                                   .kind = kind_of(mode, normOps, algo, groupCnt),
                                                   .activation = activationDesc,
                                                   .x = {xDesc, "xDesc"}});
      },
      handle, mode, normOps, algo, activationDesc, xDesc, sizeInBytes, groupCnt);
}

cudnnStatus_t cudnnNormalizationForwardInference(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const void* alpha, const void* beta, cudnnTensorDescriptor_t xDesc, const void* x,
    cudnnTensorDescriptor_t normScaleBiasDesc, const void* normScale, const void* normBias,
    cudnnTensorDescriptor_t normMeanVarDesc, const void* estimatedMean,
    const void* estimatedVariance, cudnnTensorDescriptor_t zDesc, const void* z,
    cudnnActivationDescriptor_t activationDesc, cudnnTensorDescriptor_t yDesc, void* y,
    double epsilon, int groupCnt) {
  return serve(
      Function(cudnnNormalizationForwardInference),
      [&] {
        kiln::cudnn::normalize_in_inference(
            {.handle = handle,
             .kind = kind_of(mode, normOps, algo, groupCnt),
             .activation = activationDesc,
             .epsilon = epsilon,
             .blend = {alpha, beta},
             .x = {xDesc, "xDesc", x, "x"},
             .z = {zDesc, "zDesc", z, "z"},
             .y = {yDesc, "yDesc", y, "y"},
             .parameters = {{{normScaleBiasDesc, "normScaleBiasDesc"},
                             {normMeanVarDesc, "normMeanVarDesc"}}},
             .scale = {normScale, "normScale"},
             .bias = {normBias, "normBias"},
             .mean = {estimatedMean, "estimatedMean"},
             .spread = {estimatedVariance, "estimatedVariance"}});
      },
      handle, mode, normOps, algo, alpha, beta, xDesc, x, normScaleBiasDesc, normScale, normBias,
      normMeanVarDesc, estimatedMean, estimatedVariance, zDesc, z, activationDesc, yDesc, y,
      epsilon, groupCnt);
}

cudnnStatus_t cudnnNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const void* alpha, const void* beta, cudnnTensorDescriptor_t xDesc, const void* xData,
    cudnnTensorDescriptor_t normScaleBiasDesc, const void* normScale, const void* normBias,
    double exponentialAverageFactor, cudnnTensorDescriptor_t normMeanVarDesc,
    void* resultRunningMean, void* resultRunningVariance, double epsilon, void* resultSaveMean,
    void* resultSaveInvVariance, cudnnActivationDescriptor_t activationDesc,
    cudnnTensorDescriptor_t zDesc, const void* zData, cudnnTensorDescriptor_t yDesc, void* yData,
    void* workspace, size_t workSpaceSizeInBytes, void* reserveSpace,
    size_t reserveSpaceSizeInBytes, int groupCnt) {
  return serve(
      Function(cudnnNormalizationForwardTraining),
      [&] {
        kiln::cudnn::normalize_in_training(
            {.handle = handle,
             .kind = kind_of(mode, normOps, algo, groupCnt),
             .activation = activationDesc,
             .epsilon = epsilon,
             .blend = {alpha, beta},
             .x = {xDesc, "xDesc", xData, "xData"},
             .z = {zDesc, "zDesc", zData, "zData"},
             .y = {yDesc, "yDesc", yData, "yData"},
             .parameters = {{{normScaleBiasDesc, "normScaleBiasDesc"},
                             {normMeanVarDesc, "normMeanVarDesc"}}},
             .scale = {normScale, "normScale"},
             .bias = {normBias, "normBias"},
             .factor = exponentialAverageFactor,
             .running_mean = {resultRunningMean, "resultRunningMean"},
             .running_variance = {resultRunningVariance, "resultRunningVariance"},
             .mean = {resultSaveMean, "resultSaveMean"},
             .spread = {resultSaveInvVariance, "resultSaveInvVariance"},
             .workspace = {{workspace, workSpaceSizeInBytes, "workspace"}}});
      },
      handle, mode, normOps, algo, alpha, beta, xDesc, xData, normScaleBiasDesc, normScale,
      normBias, exponentialAverageFactor, normMeanVarDesc, resultRunningMean, resultRunningVariance,
      epsilon, resultSaveMean, resultSaveInvVariance, activationDesc, zDesc, zData, yDesc, yData,
      workspace, workSpaceSizeInBytes, reserveSpace, reserveSpaceSizeInBytes, groupCnt);
}

cudnnStatus_t cudnnNormalizationBackward(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const void* alphaDataDiff, const void* betaDataDiff, const void* alphaParamDiff,
    const void* betaParamDiff, cudnnTensorDescriptor_t xDesc, const void* xData,
    cudnnTensorDescriptor_t yDesc, const void* yData, cudnnTensorDescriptor_t dyDesc,
    const void* dyData, cudnnTensorDescriptor_t dzDesc, void* dzData,
    cudnnTensorDescriptor_t dxDesc, void* dxData, cudnnTensorDescriptor_t dNormScaleBiasDesc,
    const void* normScaleData, const void* normBiasData, void* dNormScaleData, void* dNormBiasData,
    double epsilon, cudnnTensorDescriptor_t normMeanVarDesc, const void* savedMean,
    const void* savedInvVariance, cudnnActivationDescriptor_t activationDesc, void* workSpace,
    size_t workSpaceSizeInBytes, void* reserveSpace, size_t reserveSpaceSizeInBytes, int groupCnt) {
  return serve(
      Function(cudnnNormalizationBackward),
      [&] {
        kiln::cudnn::differentiate_normalization(
            {.handle = handle,
             .kind = kind_of(mode, normOps, algo, groupCnt),
             .activation = activationDesc,
             .epsilon = epsilon,
             .blend = {alphaDataDiff, betaDataDiff, "alphaDataDiff", "betaDataDiff"},
             .x = {xDesc, "xDesc", xData, "xData"},
             .y = {yDesc, "yDesc", yData, "yData"},
             .dy = {dyDesc, "dyDesc", dyData, "dyData"},
             .dz = {dzDesc, "dzDesc", dzData, "dzData"},
             .dx = {dxDesc, "dxDesc", dxData, "dxData"},
             .parameters = {{{dNormScaleBiasDesc, "dNormScaleBiasDesc"},
                             {normMeanVarDesc, "normMeanVarDesc"}}},
             .scale = {normScaleData, "normScaleData"},
             .bias = {normBiasData, "normBiasData"},
             .mean = {savedMean, "savedMean"},
             .spread = {savedInvVariance, "savedInvVariance"},
             .parameters_blend = {alphaParamDiff, betaParamDiff, "alphaParamDiff", "betaParamDiff"},
             .dscale = {dNormScaleData, "dNormScaleData"},
             .dbias = {dNormBiasData, "dNormBiasData"},
             .workspace = {{workSpace, workSpaceSizeInBytes, "workSpace"}}});
      },
      handle, mode, normOps, algo, alphaDataDiff, betaDataDiff, alphaParamDiff, betaParamDiff,
      xDesc, xData, yDesc, yData, dyDesc, dyData, dzDesc, dzData, dxDesc, dxData,
      dNormScaleBiasDesc, normScaleData, normBiasData, dNormScaleData, dNormBiasData, epsilon,
      normMeanVarDesc, savedMean, savedInvVariance, activationDesc, workSpace, workSpaceSizeInBytes,
      reserveSpace, reserveSpaceSizeInBytes, groupCnt);
}
