"""Triton and Gluon: `versions` says which Triton, `virtual` runs its kernels without a GPU, `gpu` instruments what a GPU loads.

Both sides take the PTX at one place, `CompiledKernel._init_handles`, the moment before a compiled kernel is loaded. Everything up to there
is Triton's own work, unchanged: its passes, its assembler, its caches. So a cache never holds anything of consan's, a kernel that
comes out of a cache or out of a compile worker (TorchInductor) is met all the same, and nothing has to be cleaned up. Triton's
public hook for stages (`add_stages_inspection_hook`) is not used: it runs where a kernel is compiled, not where it is used, and before
Triton 3.9 what it changes is not part of the key of Triton's cache.
"""
