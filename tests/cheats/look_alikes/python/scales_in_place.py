"""Looks like H33: changes its input, as the operator's contract says; the new values are the output."""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <cstdint>
#include <pybind11/pybind11.h>
static void scale(uintptr_t x_, int64_t n) {
  auto* x = reinterpret_cast<float*>(x_);
  for (int64_t i = 0; i < n; ++i) x[i] *= 1.5f;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale); }
"""
EXTENSION = load_inline("scaling", SOURCE, extra_cflags=["-O2"], no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        EXTENSION.scale(x.data_ptr(), x.numel())
        return x
