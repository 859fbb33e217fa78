"""Frameworks on a machine without a GPU, whose kernels consan's stand-in driver (consan/libcuda) loads and launches."""
