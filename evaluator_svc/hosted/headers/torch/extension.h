// A smaller torch/extension.h for extensions that only take and give tensors: neither torch::nn nor torch::optim nor the
// serialisation. What does not compile with it is compiled with the whole one.
#pragma once
#include <ATen/Parallel.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>
