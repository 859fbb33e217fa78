"""`consan.TensorMap` and the `tma:` arguments of the command line: a tensor map over an array, passed by value.

Shapes, boxes, corners and element strides are in NumPy's order, outermost first; the driver and PTX count coordinates
innermost first. The element type is the array's, unless `dtype` names a type that NumPy lacks
(bf16 in 16-bit words, tf32 and f32.ftz in float32, fp8 and signed bytes as u8).

A NumPy array is copied to the device for the launch, and the map describes the contiguous copy. A
device array stays in place, so its innermost stride must be one element. Not handled: maps in device memory, and arrays that
offer nothing but DLPack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan._errors import UsageError
from consan.dataclass import dataclass
from consan.tensormap.description import DTYPES, TensorMapInfo
from consan.tensormap.rules import validate

Array = npt.NDArray[Any]

_BY_NUMPY: Final = {
    "u1": "u8", "i1": "u8", "u2": "u16", "i2": "u16", "f2": "f16", "u4": "u32", "i4": "s32", "f4": "f32",
    "u8": "u64", "i8": "s64", "f8": "f64",
}  # fmt: skip
_OTHER_WORDS: Final = dict.fromkeys(("s8", "i8", "e4m3", "e5m2"), "u8") | {"i16": "u16", "s16": "u16", "i32": "s32", "i64": "s64"}
OPTIONS: Final = {"swizzle": 0, "interleave": 0, "l2": 0, "oob": "zero", "element_strides": None}


class TensorMap:
    """A tensor map of `array` for `consan.launch`. The kernel takes it as `const __grid_constant__ CUtensorMap`, 128 bytes.

    `box` is the shape that one copy moves, in elements. `dtype` names an element type that NumPy lacks, such as "bf16" for words of
    16 bits. `swizzle` is 0, 32, 64 or 128 bytes, `interleave` 0, 16 or 32 bytes, `l2` (promotion) 0, 64, 128 or 256 bytes, `oob`
    "zero" or "nan". `element_strides`: the step of a copy along each axis. `box` and `element_strides` are in NumPy's order, the
    outermost axis first.

    Raises `UsageError` for what the driver would refuse (CUDA driver API, `cuTensorMapEncodeTiled`).
    """

    def __init__(
        self,
        array: Any,
        box: Sequence[int],
        *,
        dtype: str | None = None,
        swizzle: int = 0,
        interleave: int = 0,
        l2: int = 0,
        oob: str = "zero",
        element_strides: Sequence[int] | None = None,
    ) -> None:
        options = {"swizzle": swizzle, "interleave": interleave, "l2": l2, "oob": oob, "element_strides": element_strides}
        self._describe(array, dtype, options, {"box": _numbers("box", box)})

    @classmethod
    def im2col(
        cls, array: Any, lower: Sequence[int], upper: Sequence[int], channels: int, pixels: int, *, dtype: str | None = None, **options: Any
    ) -> TensorMap:
        """An im2col map of an array of shape N, (D, (H,)) W, C. The corners are (D, (H,)) W. Options as for tiled maps."""
        unknown = ", ".join(sorted(options.keys() - OPTIONS.keys()))
        if unknown:
            raise UsageError(f"tensor map: unknown option {unknown}; expected {', '.join(OPTIONS)}")
        corners = {"lower": _numbers("lower", lower), "upper": _numbers("upper", upper)}
        made = cls.__new__(cls)
        made._describe(array, dtype, {**OPTIONS, **options}, {**corners, "im2col": True, "channels": channels, "pixels": pixels})
        return made

    def _describe(self, array: Any, dtype: str | None, options: Mapping[str, Any], shape: Mapping[str, Any]) -> None:
        self.array = array
        layout = _layout(array)
        steps = options["element_strides"]
        element_strides = (1,) * len(layout.shape) if steps is None else _numbers("element_strides", steps)
        self.info = TensorMapInfo(
            dtype=_dtype_word(layout.dtype, dtype),
            address=layout.address or 0,
            dims=layout.shape[::-1],
            strides=layout.strides[-2::-1],
            element_strides=element_strides,
            **{"box": (), **shape},
            **{name: options[name] for name in ("swizzle", "interleave", "l2", "oob")},
        )
        validate(self.info)

    @property
    def on_device(self) -> bool:
        """Whether the array is already in device memory."""
        return not isinstance(self.array, np.ndarray)

    def at(self, address: int) -> TensorMapInfo:
        """The map of the array's copy at this address."""
        return replace(self.info, address=address)


@dataclass(frozen=True)
class _Layout:
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    address: int | None


def _layout(array: Any) -> _Layout:
    interface = getattr(array, "__cuda_array_interface__", None)
    if isinstance(array, np.ndarray):
        shape, dtype, strides, address = array.shape, array.dtype, None, None
    elif interface is not None:
        shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
        strides, address = interface.get("strides"), int(interface["data"][0])
    else:
        raise UsageError(f"tensor map: expected a NumPy array or one with __cuda_array_interface__, got {type(array).__name__}")
    if not shape or 0 in shape:
        raise UsageError(f"tensor map: an array of shape {shape} has no elements to describe")
    strides = tuple(strides or _contiguous(shape, dtype.itemsize))
    if strides[-1] != dtype.itemsize:
        raise UsageError(f"tensor map: the innermost stride is {strides[-1]} bytes, expected {dtype.itemsize}, one element")
    return _Layout(shape, strides, dtype, address)


def _contiguous(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = [itemsize]
    for extent in shape[:0:-1]:
        strides.append(strides[-1] * extent)
    return tuple(strides[::-1])


def _dtype_word(dtype: np.dtype[Any], wanted: str | None) -> str:
    if wanted is None:
        word = "bf16" if dtype.name == "bfloat16" else "u8" if dtype.name.startswith("float8") else _BY_NUMPY.get(dtype.str[1:])
        if word is None:
            raise UsageError(f"tensor map: elements of {dtype} need a dtype=; expected one of {', '.join(DTYPES)}")
        return word
    word = _OTHER_WORDS.get(wanted, wanted)
    if word not in DTYPES:
        raise UsageError(f"tensor map: unknown dtype '{wanted}'; expected one of {', '.join((*DTYPES, *_OTHER_WORDS))}")
    if DTYPES[word].nbytes != dtype.itemsize:
        raise UsageError(f"tensor map: {wanted} has {DTYPES[word].nbytes} bytes, an element of the array {dtype.itemsize}")
    return word


def _numbers(name: str, values: Sequence[int]) -> tuple[int, ...]:
    """The numbers, innermost first, as the driver wants them."""
    try:
        return tuple(int(value) for value in values)[::-1]
    except (TypeError, ValueError):
        raise UsageError(f"tensor map: {name} is {values!r}, expected whole numbers, outermost first") from None


# --- the command line ---------------------------------------------------------------------------------------------------

_TUPLES: Final = ("box", "element_strides", "lower", "upper")
_INTEGERS: Final = ("swizzle", "interleave", "l2", "channels", "pixels")
_WORDS: Final = ("oob", "dtype")
_TILED: Final = ("box", "dtype", *OPTIONS)
_IM2COL: Final = ("lower", "upper", "channels", "pixels", "dtype", *OPTIONS)


def parse_options(texts: Sequence[str]) -> dict[str, Any]:
    """Parse `box=64x64`, `swizzle=128` and so on. Raises UsageError with what is wrong."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if name not in (*_TILED, *_IM2COL) or not equals:
            raise UsageError(f"unknown option '{text.strip()}' of a tensor map; expected {', '.join(dict.fromkeys((*_TILED, *_IM2COL)))}")
        if name in found:
            raise UsageError(f"option {name} of a tensor map is given twice")
        found[name] = _option(name, value)
    _check_complete(found)
    return found


def _option(name: str, value: str) -> Any:
    if name in _WORDS:
        return value
    try:
        return tuple(int(part, 0) for part in value.split("x")) if name in _TUPLES else int(value, 0)
    except ValueError:
        form = "numbers such as 64x64" if name in _TUPLES else "a whole number"
        raise UsageError(f"expected {form} for {name}, got '{value}'") from None


def _check_complete(found: Mapping[str, Any]) -> None:
    needed = ("box",) if "box" in found or not found.keys() & {"lower", "upper", "channels", "pixels"} else _IM2COL[:4]
    missing = [name for name in needed if name not in found]
    if missing:
        raise UsageError(f"a tensor map needs {' and '.join(missing)}, such as box=64x64 (or lower, upper, channels and pixels for im2col)")
    surplus = found.keys() - set(_TILED if needed == ("box",) else _IM2COL)
    if surplus:
        raise UsageError(f"a tensor map with a box takes no {', '.join(sorted(surplus))}")


def make(array: Array, default_dtype: str, options: Mapping[str, Any]) -> TensorMap:
    """The map of an array, from parsed options."""
    given = {"dtype": default_dtype, **options}
    return TensorMap.im2col(array, **given) if "channels" in given else TensorMap(array, **given)
