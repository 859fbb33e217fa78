"""Annotations for kernels of `numba.cuda`. It imports numba-cuda."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import intrinsic

__all__ = ["acquire", "ignore_begin", "ignore_end", "release"]


def _comment(builder: Any, text: str, *operands: Any) -> None:
    """A volatile comment of PTX that no access of memory is moved across."""
    kind = ir.FunctionType(ir.VoidType(), [each.type for each in operands])
    constraints = ",".join(["l"] * len(operands) + ["~{memory}"])
    builder.call(ir.InlineAsm(kind, f"// {text};", constraints, side_effect=True), operands)


def _of_an_array(name: str, array: Any) -> Any:
    """The signature and code of an annotation whose address is that of an array's first element."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        _comment(builder, f"{name} [$0]", builder.ptrtoint(data, ir.IntType(64)))
        return context.get_dummy_value()

    return (types.void(array), generate) if isinstance(array, types.Array) else None


def _of_a_region(name: str) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        _comment(builder, name)
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def release(_typing: Any, array: Any) -> Any:
    """Order what the thread has done before what follows a later `acquire` of this array, in any thread; `flags[i:]` names element i."""
    return _of_an_array("consan_release", array)


@intrinsic
def acquire(_typing: Any, array: Any) -> Any:
    """The other side of `release`."""
    return _of_an_array("consan_acquire", array)


@intrinsic
def ignore_begin(_typing: Any) -> Any:
    """Loads, stores and atomics from here to `ignore_end`, in the order of the text, are compared with no others."""
    return _of_a_region("consan_ignore_begin")


@intrinsic
def ignore_end(_typing: Any) -> Any:
    """The end of a region."""
    return _of_a_region("consan_ignore_end")
