"""Looks like H22: returns the same memory each time. What it returns there is computed anew in every call."""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <cstdint>
#include <pybind11/pybind11.h>
static void multiply(uintptr_t a_, uintptr_t b_, uintptr_t c_, int64_t n) {
  const auto *a = reinterpret_cast<const float*>(a_), *b = reinterpret_cast<const float*>(b_);
  auto* c = reinterpret_cast<float*>(c_);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * n + j] = 0;
    for (int64_t k = 0; k < n; ++k)
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
  }
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("multiply", &multiply); }
"""
EXTENSION = load_inline("product_in_place", SOURCE, extra_cflags=["-O2"], no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.result = None

    def forward(self, a, b):
        if self.result is None:
            self.result = torch.empty_like(a)
        EXTENSION.multiply(a.data_ptr(), b.data_ptr(), self.result.data_ptr(), a.shape[0])
        return self.result
