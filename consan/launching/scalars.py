"""Scalars and bytes of `--arg`, passed by value: `i32=4096`, `f32=1.5`, `bytes=0a0b0c`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan._errors import UsageError

Array = npt.NDArray[Any]

# The type words of `--arg`, and the NumPy type that holds one element.
TYPES: Final[dict[str, str]] = {
    "u8": "u1", "i8": "i1", "u16": "<u2", "i16": "<i2", "f16": "<f2", "bf16": "<u2",
    "u32": "<u4", "i32": "<i4", "f32": "<f4", "u64": "<u8", "i64": "<i8", "f64": "<f8",
}  # fmt: skip
FLOATS: Final = ("f16", "bf16", "f32", "f64")


def hex_bytes(value: str) -> bytes:
    """The bytes that hexadecimal digits spell. Raises UsageError."""
    try:
        data = bytes.fromhex(value.removeprefix("0x").replace("_", ""))
    except ValueError:
        raise UsageError("expected an even number of hexadecimal digits after 'bytes='") from None
    if not data:
        raise UsageError("expected at least one byte after 'bytes='")
    return data


def scalar(name: str, value: str) -> bytes:
    """The bytes of a number of a type. Raises UsageError."""
    check_type(name)
    return _float_bytes(name, value) if name in FLOATS else _integer_bytes(name, value)


def check_type(name: str) -> None:
    """Raise UsageError for a word that is no type."""
    if name not in TYPES:
        raise UsageError(f"unknown type '{name}'; expected one of {', '.join(TYPES)}, or bytes")


def _integer_bytes(name: str, value: str) -> bytes:
    limits = np.iinfo(TYPES[name])
    try:
        number = int(value, 0)
    except ValueError:
        raise UsageError(f"expected a whole number for {name}, got '{value}'") from None
    if not limits.min <= number <= limits.max:
        raise UsageError(f"{value} does not fit {name} ({limits.min} to {limits.max})")
    return np.array(number, TYPES[name]).tobytes()


def _float_bytes(name: str, value: str) -> bytes:
    try:
        number = float(value)
    except ValueError:
        raise UsageError(f"expected a number for {name}, got '{value}'") from None
    with np.errstate(over="ignore"):
        single = np.array([number], np.float32)
        data = to_bf16(single).tobytes() if name == "bf16" else np.array(number, TYPES[name]).tobytes()
    if "inf" not in value.lower() and data in _INFINITIES[name]:
        raise UsageError(f"{value} does not fit {name}")
    return data


_INFINITIES: Final = {
    "bf16": (b"\x80\x7f", b"\x80\xff"),
    **{name: tuple(np.array(sign * np.inf, TYPES[name]).tobytes() for sign in (1, -1)) for name in ("f16", "f32", "f64")},
}


def to_bf16(values: Array) -> Array:
    """float32 to bf16 words: round to nearest even; a NaN stays a NaN (PTX ISA "cvt", .rn)."""
    bits = values.astype("<f4").view("<u4")
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FFF, rounded).astype("<u2")
