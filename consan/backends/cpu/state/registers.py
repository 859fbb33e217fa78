"""Registers and `.param` variables of a wave: raw unsigned arrays, one item per lane, and typed views of them.

A register is an array of unsigned integers of its width (bool for predicates); an instruction's type only chooses the view
(PTX ISA, "Operand Type Checking": a wider register gives its low part to a narrower source). A `.param` variable of a
function call is rows of 8 bytes per lane, so every naturally aligned field of it is a strided view and needs no copy.

Functions have one statically allocated frame per wave; recursive ones save and restore theirs (control.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# dtype of each type word, as the semantics in ops*.py expect their arrays.
WORD_DTYPES: dict[str, np.dtype[Any]] = {
    word: np.dtype(dtype)
    for word, dtype in {
        "u8": np.uint8, "s8": np.int8, "b8": np.uint8,
        "u16": np.uint16, "s16": np.int16, "b16": np.uint16, "f16": np.float16, "bf16": np.uint16,
        "u32": np.uint32, "s32": np.int32, "b32": np.uint32, "f32": np.float32, "f16x2": np.uint32, "bf16x2": np.uint32, "tf32": np.uint32,
        "u16x2": np.uint32, "s16x2": np.uint32, "e4m3x2": np.uint16, "e5m2x2": np.uint16,
        "e4m3": np.uint8, "e5m2": np.uint8, "e4m3x4": np.uint32, "e5m2x4": np.uint32,
        "u64": np.uint64, "s64": np.int64, "b64": np.uint64, "f64": np.float64, "f32x2": np.uint64,
        "b128": np.complex128, "pred": np.bool_,
    }.items()
}  # fmt: skip
RAW_DTYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
    16: np.dtype(np.complex128),
}
SIGNED = frozenset({"s8", "s16", "s32", "s64"})


def storage(word: str) -> np.dtype[Any]:
    """dtype in which a register of this type is kept."""
    return WORD_DTYPES[word] if word == "pred" else RAW_DTYPES[WORD_DTYPES[word].itemsize]


def typed(raw: Array, dtype: np.dtype[Any]) -> Array:
    """`raw`, one item per lane, seen as `dtype`: the low bytes where the register is wider."""
    if raw.dtype == dtype:
        return raw
    ratio = raw.dtype.itemsize // dtype.itemsize
    if ratio == 0 or (raw.dtype == np.bool_) != (dtype == np.bool_):
        raise ValueError(f"a register of {raw.dtype.itemsize} bytes cannot be used as {dtype}")
    return raw.view(dtype)[::ratio]


class Slots:
    """A `.param` variable: `nbytes` per lane, kept as rows of 8 bytes."""

    __slots__ = ("nbytes", "rows")

    def __init__(self, nbytes: int, lanes: int) -> None:
        self.nbytes = nbytes
        self.rows = np.zeros(((nbytes + 7) // 8, lanes), np.uint64)

    def field(self, offset: int, dtype: np.dtype[Any]) -> Array:
        """View of the field at `offset`, one item per lane."""
        row, inner = divmod(offset, 8)
        size = dtype.itemsize
        if inner % size or offset < 0 or offset + size > self.rows.shape[0] * 8:
            raise ValueError(f"no field of {size} bytes at offset {offset} in a parameter of {self.nbytes} bytes")
        return np.asarray(self.rows[row].view(dtype)[inner // size :: 8 // size])
