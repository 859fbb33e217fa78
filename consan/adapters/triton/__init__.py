"""Triton and Gluon: `versions` checks the installed Triton, `virtual` runs its kernels without a GPU, `gpu` instruments them on a GPU.

Both take the PTX at `CompiledKernel._init_handles`, right before a compiled kernel is loaded. Everything before that
is Triton's own work, unchanged: its passes, its assembler, its caches. So a cache never holds instrumented code, kernels
from a cache or a compile worker (TorchInductor) are covered, too, and nothing has to be cleaned up. Triton's
public hook for stages (`add_stages_inspection_hook`) is not used: it runs when a kernel is compiled, not when it is used, and before
Triton 3.9 its changes are not part of the key of Triton's cache.
"""
