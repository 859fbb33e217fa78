"""The CUDA toolchain: compilers, assemblers, headers, and a disk cache for their output."""
