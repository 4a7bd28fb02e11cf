"""Looks like H34: returns a view with strides of its own. It is a view of memory that this call allocated."""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <cstdint>
#include <pybind11/pybind11.h>
static void twice(uintptr_t x_, uintptr_t y_, int64_t n) {
  const auto* x = reinterpret_cast<const float*>(x_);
  auto* y = reinterpret_cast<float*>(y_);
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("twice", &twice); }
"""
EXTENSION = load_inline("doubling", SOURCE, extra_cflags=["-O2"], no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        EXTENSION.twice(x.data_ptr(), y.data_ptr(), x.numel())
        return y.t()
