// cudnnBatchNormalization...: its functions with workspace, `Ex`, and those without.
#include "cudnn/forward/translate.hpp"
#include "cudnn/normalization/call.hpp"

using kiln::api::check_pointer;
using kiln::cudnn::Function;
using kiln::cudnn::kind_of;
using kiln::cudnn::serve;
using kiln::cudnn::serve_writing;

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derivedBnDesc,
                                            cudnnTensorDescriptor_t xDesc,
                                            cudnnBatchNormMode_t mode) {
  return serve_writing(
      {derivedBnDesc}, Function(cudnnDeriveBNTensorDescriptor),
      [&] { kiln::cudnn::derive(derivedBnDesc, "derivedBnDesc", xDesc, kind_of(mode)); },
      derivedBnDesc, xDesc, mode);
}

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    cudnnTensorDescriptor_t xDesc, cudnnTensorDescriptor_t zDesc, cudnnTensorDescriptor_t yDesc,
    cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, cudnnActivationDescriptor_t activationDesc,
    size_t* sizeInBytes) {
  return serve(
      Function(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize),
      [&] {
        check_pointer(sizeInBytes, "sizeInBytes", "where to store the bytes");
        *sizeInBytes = kiln::cudnn::training_workspace(
            {.handle = handle,
             .kind = kind_of(mode, bnOps),
             .activation = activationDesc,
             .x = {xDesc, "xDesc"},
             .z = {zDesc, "zDesc"},
             .y = {yDesc, "yDesc"},
             .parameters = {{{bnScaleBiasMeanVarDesc, "bnScaleBiasMeanVarDesc"}}}});
      },
      handle, mode, bnOps, xDesc, zDesc, yDesc, bnScaleBiasMeanVarDesc, activationDesc,
      sizeInBytes);
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    cudnnTensorDescriptor_t xDesc, cudnnTensorDescriptor_t yDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnTensorDescriptor_t dzDesc, cudnnTensorDescriptor_t dxDesc,
    cudnnTensorDescriptor_t dBnScaleBiasDesc, cudnnActivationDescriptor_t activationDesc,
    size_t* sizeInBytes) {
  return serve(
      Function(cudnnGetBatchNormalizationBackwardExWorkspaceSize),
      [&] {
        check_pointer(sizeInBytes, "sizeInBytes", "where to store the bytes");
        *sizeInBytes = kiln::cudnn::gradient_workspace(
            {.handle = handle,
             .kind = kind_of(mode, bnOps),
             .activation = activationDesc,
             .x = {xDesc, "xDesc"},
             .y = {yDesc, "yDesc"},
             .dy = {dyDesc, "dyDesc"},
             .dz = {dzDesc, "dzDesc"},
             .dx = {dxDesc, "dxDesc"},
             .parameters = {{{dBnScaleBiasDesc, "dBnScaleBiasDesc"}}}});
      },
      handle, mode, bnOps, xDesc, yDesc, dyDesc, dzDesc, dxDesc, dBnScaleBiasDesc, activationDesc,
      sizeInBytes);
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    cudnnActivationDescriptor_t activationDesc, cudnnTensorDescriptor_t xDesc,
    size_t* sizeInBytes) {
  return serve(
      Function(cudnnGetBatchNormalizationTrainingExReserveSpaceSize),
      [&] {
        check_pointer(sizeInBytes, "sizeInBytes", "where to store the bytes");
        *sizeInBytes = kiln::cudnn::reserve_space({.handle = handle,
                                                   .kind = kind_of(mode, bnOps),
                                                   .activation = activationDesc,
                                                   .x = {xDesc, "xDesc"}});
      },
      handle, mode, bnOps, activationDesc, xDesc, sizeInBytes);
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    cudnnTensorDescriptor_t xDesc, const void* x, cudnnTensorDescriptor_t yDesc, void* y,
    cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void* bnScale, const void* bnBias,
    const void* estimatedMean, const void* estimatedVariance, double epsilon) {
  return serve(
      Function(cudnnBatchNormalizationForwardInference),
      [&] {
        kiln::cudnn::normalize_in_inference(
            {.handle = handle,
             .kind = kind_of(mode),
             .epsilon = epsilon,
             .blend = {alpha, beta},
             .x = {xDesc, "xDesc", x, "x"},
             .y = {yDesc, "yDesc", y, "y"},
             .parameters = {{{bnScaleBiasMeanVarDesc, "bnScaleBiasMeanVarDesc"}}},
             .scale = {bnScale, "bnScale"},
             .bias = {bnBias, "bnBias"},
             .mean = {estimatedMean, "estimatedMean"},
             .spread = {estimatedVariance, "estimatedVariance"}});
      },
      handle, mode, alpha, beta, xDesc, x, yDesc, y, bnScaleBiasMeanVarDesc, bnScale, bnBias,
      estimatedMean, estimatedVariance, epsilon);
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    cudnnTensorDescriptor_t xDesc, const void* x, cudnnTensorDescriptor_t yDesc, void* y,
    cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void* bnScale, const void* bnBias,
    double exponentialAverageFactor, void* resultRunningMean, void* resultRunningVariance,
    double epsilon, void* resultSaveMean, void* resultSaveInvVariance) {
  return serve(
      Function(cudnnBatchNormalizationForwardTraining),
      [&] {
        kiln::cudnn::normalize_in_training(
            {.handle = handle,
             .kind = kind_of(mode),
             .epsilon = epsilon,
             .blend = {alpha, beta},
             .x = {xDesc, "xDesc", x, "x"},
             .y = {yDesc, "yDesc", y, "y"},
             .parameters = {{{bnScaleBiasMeanVarDesc, "bnScaleBiasMeanVarDesc"}}},
             .scale = {bnScale, "bnScale"},
             .bias = {bnBias, "bnBias"},
             .factor = exponentialAverageFactor,
             .running_mean = {resultRunningMean, "resultRunningMean"},
             .running_variance = {resultRunningVariance, "resultRunningVariance"},
             .mean = {resultSaveMean, "resultSaveMean"},
             .spread = {resultSaveInvVariance, "resultSaveInvVariance"}});
      },
      handle, mode, alpha, beta, xDesc, x, yDesc, y, bnScaleBiasMeanVarDesc, bnScale, bnBias,
      exponentialAverageFactor, resultRunningMean, resultRunningVariance, epsilon, resultSaveMean,
      resultSaveInvVariance);
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps, const void* alpha,
    const void* beta, cudnnTensorDescriptor_t xDesc, const void* xData,
    cudnnTensorDescriptor_t zDesc, const void* zData, cudnnTensorDescriptor_t yDesc, void* yData,
    cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void* bnScale, const void* bnBias,
    double exponentialAverageFactor, void* resultRunningMean, void* resultRunningVariance,
    double epsilon, void* resultSaveMean, void* resultSaveInvVariance,
    cudnnActivationDescriptor_t activationDesc, void* workspace, size_t workSpaceSizeInBytes,
    void* reserveSpace, size_t reserveSpaceSizeInBytes) {
  return serve(
      Function(cudnnBatchNormalizationForwardTrainingEx),
      [&] {
        kiln::cudnn::normalize_in_training(
            {.handle = handle,
             .kind = kind_of(mode, bnOps),
             .activation = activationDesc,
             .epsilon = epsilon,
             .blend = {alpha, beta},
             .x = {xDesc, "xDesc", xData, "xData"},
             .z = {zDesc, "zDesc", zData, "zData"},
             .y = {yDesc, "yDesc", yData, "yData"},
             .parameters = {{{bnScaleBiasMeanVarDesc, "bnScaleBiasMeanVarDesc"}}},
             .scale = {bnScale, "bnScale"},
             .bias = {bnBias, "bnBias"},
             .factor = exponentialAverageFactor,
             .running_mean = {resultRunningMean, "resultRunningMean"},
             .running_variance = {resultRunningVariance, "resultRunningVariance"},
             .mean = {resultSaveMean, "resultSaveMean"},
             .spread = {resultSaveInvVariance, "resultSaveInvVariance"},
             .workspace = {{workspace, workSpaceSizeInBytes, "workspace"}}});
      },
      handle, mode, bnOps, alpha, beta, xDesc, xData, zDesc, zData, yDesc, yData,
      bnScaleBiasMeanVarDesc, bnScale, bnBias, exponentialAverageFactor, resultRunningMean,
      resultRunningVariance, epsilon, resultSaveMean, resultSaveInvVariance, activationDesc,
      workspace, workSpaceSizeInBytes, reserveSpace, reserveSpaceSizeInBytes);
}

cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alphaDataDiff,
    const void* betaDataDiff, const void* alphaParamDiff, const void* betaParamDiff,
    cudnnTensorDescriptor_t xDesc, const void* x, cudnnTensorDescriptor_t dyDesc, const void* dy,
    cudnnTensorDescriptor_t dxDesc, void* dx, cudnnTensorDescriptor_t dBnScaleBiasDesc,
    const void* bnScale, void* dBnScaleResult, void* dBnBiasResult, double epsilon,
    const void* savedMean, const void* savedInvVariance) {
  return serve(
      Function(cudnnBatchNormalizationBackward),
      [&] {
        kiln::cudnn::differentiate_normalization(
            {.handle = handle,
             .kind = kind_of(mode),
             .epsilon = epsilon,
             .blend = {alphaDataDiff, betaDataDiff, "alphaDataDiff", "betaDataDiff"},
             .x = {xDesc, "xDesc", x, "x"},
             .dy = {dyDesc, "dyDesc", dy, "dy"},
             .dx = {dxDesc, "dxDesc", dx, "dx"},
             .parameters = {{{dBnScaleBiasDesc, "dBnScaleBiasDesc"}}},
             .scale = {bnScale, "bnScale"},
             .mean = {savedMean, "savedMean"},
             .spread = {savedInvVariance, "savedInvVariance"},
             .parameters_blend = {alphaParamDiff, betaParamDiff, "alphaParamDiff", "betaParamDiff"},
             .dscale = {dBnScaleResult, "dBnScaleResult"},
             .dbias = {dBnBiasResult, "dBnBiasResult"}});
      },
      handle, mode, alphaDataDiff, betaDataDiff, alphaParamDiff, betaParamDiff, xDesc, x, dyDesc,
      dy, dxDesc, dx, dBnScaleBiasDesc, bnScale, dBnScaleResult, dBnBiasResult, epsilon, savedMean,
      savedInvVariance);
}

cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const void* alphaDataDiff, const void* betaDataDiff, const void* alphaParamDiff,
    const void* betaParamDiff, cudnnTensorDescriptor_t xDesc, const void* xData,
    cudnnTensorDescriptor_t yDesc, const void* yData, cudnnTensorDescriptor_t dyDesc,
    const void* dyData, cudnnTensorDescriptor_t dzDesc, void* dzData,
    cudnnTensorDescriptor_t dxDesc, void* dxData, cudnnTensorDescriptor_t dBnScaleBiasDesc,
    const void* bnScaleData, const void* bnBiasData, void* dBnScaleData, void* dBnBiasData,
    double epsilon, const void* savedMean, const void* savedInvVariance,
    cudnnActivationDescriptor_t activationDesc, void* workSpace, size_t workSpaceSizeInBytes,
    void* reserveSpace, size_t reserveSpaceSizeInBytes) {
  return serve(
      Function(cudnnBatchNormalizationBackwardEx),
      [&] {
        kiln::cudnn::differentiate_normalization(
            {.handle = handle,
             .kind = kind_of(mode, bnOps),
             .activation = activationDesc,
             .epsilon = epsilon,
             .blend = {alphaDataDiff, betaDataDiff, "alphaDataDiff", "betaDataDiff"},
             .x = {xDesc, "xDesc", xData, "xData"},
             .y = {yDesc, "yDesc", yData, "yData"},
             .dy = {dyDesc, "dyDesc", dyData, "dyData"},
             .dz = {dzDesc, "dzDesc", dzData, "dzData"},
             .dx = {dxDesc, "dxDesc", dxData, "dxData"},
             .parameters = {{{dBnScaleBiasDesc, "dBnScaleBiasDesc"}}},
             .scale = {bnScaleData, "bnScaleData"},
             .bias = {bnBiasData, "bnBiasData"},
             .mean = {savedMean, "savedMean"},
             .spread = {savedInvVariance, "savedInvVariance"},
             .parameters_blend = {alphaParamDiff, betaParamDiff, "alphaParamDiff", "betaParamDiff"},
             .dscale = {dBnScaleData, "dBnScaleData"},
             .dbias = {dBnBiasData, "dBnBiasData"},
             .workspace = {{workSpace, workSpaceSizeInBytes, "workSpace"}}});
      },
      handle, mode, bnOps, alphaDataDiff, betaDataDiff, alphaParamDiff, betaParamDiff, xDesc, xData,
      yDesc, yData, dyDesc, dyData, dzDesc, dzData, dxDesc, dxData, dBnScaleBiasDesc, bnScaleData,
      bnBiasData, dBnScaleData, dBnBiasData, epsilon, savedMean, savedInvVariance, activationDesc,
      workSpace, workSpaceSizeInBytes, reserveSpace, reserveSpaceSizeInBytes);
}
