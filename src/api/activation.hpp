// The content of activation descriptors.
#pragma once

#include "api/api.hpp"

namespace kiln::api {

// Throws BAD_PARAM, NOT_INITIALIZED.
const Activation& activation_of(kilnActivationDescriptor_t descriptor);

}  // namespace kiln::api
