"""Values of Python for the parameters of a kernel: arrays, scalars, bytes and tensor maps, as `consan.launch` takes them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from consan._errors import UsageError
from consan.instrument.ptx import Function, Param
from consan.launching.parameter_kind import FLOAT, INTEGER, POINTER, UNKNOWN, UNSIGNED, WORD, CType
from consan.launching.placement import ArrayStruct, Multicast, Value, is_bound, pointer
from consan.launching.signature import kinds_of
from consan.tensormap.argument import TensorMap
from consan.tensormap.description import NBYTES
from consan.textures.argument import HANDLE_BYTES, Texture

_LEAST_ADDRESS: Final = 1 << 32  # of device memory
_FORMATS: Final = {4: "<f", 8: "<d"}
_WHOLE: Final = (INTEGER, UNSIGNED, WORD, POINTER)


def arguments(function: Function, args: Sequence[Any]) -> list[Value]:
    """The value to place for each parameter."""
    if not isinstance(args, Sequence):
        raise UsageError(f"args={args!r}: expected a list, with one value for each parameter of {function.name}")
    passed = [value for value in args if not is_bound(value)]
    if len(passed) != len(function.params):
        raise UsageError(f"{function.name} takes {len(function.params)} arguments, {len(passed)} given")
    given = zip(passed, function.params, kinds_of(function), strict=True)
    fitting = iter([_fitting(value, parameter, kind) for value, parameter, kind in given])
    return [value if is_bound(value) else next(fitting) for value in args]


def _fitting(value: Any, parameter: Param, kind: CType) -> Value:
    """A value that fits its parameter: a scalar as bytes."""
    if isinstance(value, TensorMap):
        if parameter.nbytes != NBYTES:
            raise UsageError(
                f"a tensor map has {NBYTES} bytes, its parameter {parameter.nbytes}: expected const __grid_constant__ CUtensorMap"
            )
        return value
    if isinstance(value, Texture):
        if parameter.nbytes != HANDLE_BYTES or kind.kind == FLOAT:
            raise UsageError(f"a texture has a handle of {HANDLE_BYTES} bytes, its parameter is {kind.text}: expected cudaTextureObject_t")
        return value
    if isinstance(value, Multicast) and parameter.nbytes == 8:
        return value
    if isinstance(value, ArrayStruct) and value.nbytes == parameter.nbytes:
        return value
    if not isinstance(value, np.ndarray) or not value.ndim:
        return _scalar(value, parameter, kind)
    if value.dtype.hasobject or parameter.nbytes != 8:
        raise UsageError(f"an array of {value.dtype} cannot be passed for a parameter of {parameter.nbytes} bytes")
    if kind.kind in (INTEGER, UNSIGNED, FLOAT):
        raise UsageError(f"an array of {value.dtype} cannot be passed for a parameter {kind.text}")
    return value


def may_point(value: Any) -> bool:
    """Whether a number, or a word of bytes, may be an address: nobody knows of what."""
    if isinstance(value, (bytes, bytearray)):
        return any(word >= _LEAST_ADDRESS for (word,) in struct.iter_unpack("<Q", value[: len(value) // 8 * 8]))
    return isinstance(value, (int, np.integer)) and int(value) >= _LEAST_ADDRESS


def _scalar(value: Any, parameter: Param, kind: CType) -> Value:
    """The bytes of a scalar (Python or NumPy), of a struct, or a device array's pointer."""
    if isinstance(value, (bytes, bytearray)):
        return _sized(bytes(value), parameter, value)
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return pointer(int(interface["data"][0]), getattr(value, "nbytes", None) if getattr(value, "ndim", 0) else None)
    if isinstance(value, (int, np.integer)) and kind.kind == FLOAT:
        return _packed(float(value), parameter)
    if isinstance(value, (np.generic, np.ndarray)) and not (value.dtype.kind == "f" and kind.kind in _WHOLE):
        return _sized(value.tobytes(), parameter, value)
    if isinstance(value, int):
        return _integer(int(value), parameter)
    if isinstance(value, float) and kind.kind in (FLOAT, UNKNOWN) and parameter.nbytes in _FORMATS:
        return _packed(value, parameter)
    wanted = f"a parameter {kind.text} of {parameter.nbytes} bytes"
    raise UsageError(f"argument {value!r}: expected an array, a number, or bytes for {wanted}")


def _packed(value: float, parameter: Param) -> bytes:
    try:
        return struct.pack(_FORMATS[parameter.nbytes], value)
    except OverflowError:
        raise UsageError(f"argument {value!r} does not fit a parameter .{parameter.type}") from None


def _integer(value: int, parameter: Param) -> bytes:
    try:
        return value.to_bytes(parameter.nbytes, "little", signed=value < 0)
    except OverflowError:
        raise UsageError(f"argument {value} does not fit a parameter of {parameter.nbytes} bytes") from None


def _sized(data: bytes, parameter: Param, value: Any) -> bytes:
    if len(data) != parameter.nbytes:
        raise UsageError(f"argument {value!r} has {len(data)} bytes, its parameter {parameter.nbytes}")
    return data
