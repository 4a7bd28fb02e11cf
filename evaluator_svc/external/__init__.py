"""A chip whose tools are its vendor's: kernels are built, run and profiled by three commands, and judged like all others."""
