"""The stand-in driver: a `libcuda.so.1` over the virtual machine, for programs on a machine without a GPU.

The library (source/libcuda.c) knows the names of calls and nothing else: it hands each call, as words, to the functions of `CALLS`.
"""
