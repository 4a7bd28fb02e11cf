"""A chip whose tools are its vendor's: three commands build, run and profile kernels; the judge is ours."""
