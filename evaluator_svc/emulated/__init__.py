"""Kernels for a chip that is emulated: run by QEMU in a box, judged like native ones, and counted instead of timed."""
