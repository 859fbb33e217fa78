"""Triton kernels with annotations. Triton reads their source, so they stand in a file of their own."""

# ruff: noqa: N803 - names as in Triton's tutorials

import triton
import triton.language as tl

from consan.annotations import acquire, ignore_begin, ignore_end, release


@triton.jit
def hand_over(data_ptr, out_ptr, flag_ptr, ANNOTATED: tl.constexpr):
    at = tl.arange(0, 64)
    if tl.program_id(0) == 0:
        tl.store(data_ptr + at, at)
        if ANNOTATED:
            release(flag_ptr)
        tl.atomic_xchg(flag_ptr, 1, sem="relaxed")
    else:
        while tl.atomic_add(flag_ptr, 0, sem="relaxed") == 0:
            pass
        if ANNOTATED:
            acquire(flag_ptr)
        tl.store(out_ptr + at, tl.load(data_ptr + at))


@triton.jit
def set_hint(hint_ptr, ANNOTATED: tl.constexpr):
    if ANNOTATED:
        ignore_begin()
    tl.store(hint_ptr, tl.program_id(0))
    if ANNOTATED:
        ignore_end()
