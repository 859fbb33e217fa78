"""Annotations for kernels of CuTe DSL (`nvidia-cutlass-dsl`). It imports CUTLASS."""

from __future__ import annotations

from typing import Any

from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import dsl_user_op

__all__ = ["acquire", "ignore_begin", "ignore_end", "release"]


def _comment(text: str, *operands: Any, loc: Any, ip: Any) -> None:
    """A volatile comment of PTX that no access of memory is moved across."""
    constraints = ",".join(["l"] * len(operands) + ["~{memory}"])
    llvm.inline_asm(None, list(operands), f"// {text};", constraints, has_side_effects=True, loc=loc, ip=ip)


def _generic(place: Any, loc: Any, ip: Any) -> Any:
    """The generic address of a pointer of any memory, or of a tensor's first element."""
    pointer = getattr(place, "iterator", place).to_llvm_ptr(loc=loc, ip=ip)
    generic = llvm.PointerType.get()
    return pointer if pointer.type == generic else llvm.addrspacecast(generic, pointer, loc=loc, ip=ip)


@dsl_user_op
def release(place: Any, *, loc: Any = None, ip: Any = None) -> None:
    """Order what the thread has done before what follows a later `acquire` of this pointer or tensor, in any thread of the launch."""
    _comment("consan_release [$0]", _generic(place, loc, ip), loc=loc, ip=ip)


@dsl_user_op
def acquire(place: Any, *, loc: Any = None, ip: Any = None) -> None:
    """The other side of `release`."""
    _comment("consan_acquire [$0]", _generic(place, loc, ip), loc=loc, ip=ip)


@dsl_user_op
def ignore_begin(*, loc: Any = None, ip: Any = None) -> None:
    """Loads, stores and atomics from here to `ignore_end`, in the order of the text, are compared with no others."""
    _comment("consan_ignore_begin", loc=loc, ip=ip)


@dsl_user_op
def ignore_end(*, loc: Any = None, ip: Any = None) -> None:
    """The end of a region."""
    _comment("consan_ignore_end", loc=loc, ip=ip)
