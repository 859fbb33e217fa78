"""Annotations for Triton and Gluon kernels. It imports Triton."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["acquire", "ignore_begin", "ignore_end", "release"]


@triton.jit
def release(pointer: tl.tensor) -> None:
    """Order what the program has done before what follows a later `acquire` of this scalar pointer, in any program of the launch."""
    address = pointer.to(tl.int64)
    tl.inline_asm_elementwise("// consan_release [$1];\nmov.b32 $0, 0;", "=r,l", [address], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def acquire(pointer: tl.tensor) -> None:
    """The other side of `release`."""
    address = pointer.to(tl.int64)
    tl.inline_asm_elementwise("// consan_acquire [$1];\nmov.b32 $0, 0;", "=r,l", [address], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def ignore_begin() -> None:
    """Loads, stores and atomics from here to `ignore_end`, in the order of the text, are compared with no others."""
    tl.inline_asm_elementwise("// consan_ignore_begin;\nmov.b32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def ignore_end() -> None:
    """The end of a region."""
    tl.inline_asm_elementwise("// consan_ignore_end;\nmov.b32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
