"""Kernels of CUDA and HIP without a GPU: blocks emulated on a core, counted, and compiled for the chip."""
