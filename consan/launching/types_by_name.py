"""The type of `--arg` for a type of CUDA C++, or of PTX where the source does not have it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from consan.launching.scalars import TYPES

if TYPE_CHECKING:
    from consan.instrument.ptx import Param

POINTER: Final = re.compile(r"(?P<const>const\s+)?(?P<type>[\w:\s]+?)(?P<after>\s+const)?\s*\*[^*]*")
_QUALIFIERS: Final = re.compile(r"\b(?:const|volatile|__grid_constant__|__restrict__|restrict|struct)\b")
_TYPES: Final = {
    "f64": ("double",),
    "f32": ("float",),
    "f16": ("half", "__half"),
    "bf16": ("__nv_bfloat16", "nv_bfloat16"),
    "u8": ("unsigned char", "uint8_t", "bool"),
    "i8": ("char", "signed char", "int8_t"),
    "u16": ("unsigned short", "uint16_t"),
    "i16": ("short", "int16_t"),
    "u32": ("unsigned", "unsigned int", "uint32_t"),
    "i32": ("int", "int32_t"),
    "u64": ("unsigned long", "unsigned long long", "uint64_t", "size_t"),
    "i64": ("long", "long long", "int64_t", "ptrdiff_t"),
}
_BY_NAME: Final = {name: short for short, names in _TYPES.items() for name in names}
_BY_PTX: Final = {"f32": "f32", "f64": "f64", "u16": "u16", "s16": "i16", "b16": "f16", "u8": "u8", "s8": "i8", "u32": "i32", "s32": "i32",
                  "b32": "i32", "s64": "i64"}  # fmt: skip


def element_type(declared: str) -> str:
    """The type of the elements that a parameter points to; `f32` where it is not known."""
    return _pointed(declared) or "f32"


def element_bytes(declared: str) -> int:
    """Bytes of an element of a parameter that is a pointer; 1 where its type is not known."""
    known = _pointed(declared)
    return 1 if known is None else np.dtype(TYPES[known]).itemsize


def _pointed(declared: str) -> str | None:
    pointer = POINTER.fullmatch(declared)
    return _BY_NAME.get(_plain(pointer["type"])) if pointer is not None else None


def scalar_type(parameter: Param, declared: str) -> str | None:
    """The type of a parameter that is a number. None: it may be a pointer."""
    of_source = _BY_NAME.get(_plain(declared.rpartition(" ")[0])) if declared else None
    return of_source or _BY_PTX.get(parameter.type)


def _plain(text: str) -> str:
    return " ".join(_QUALIFIERS.sub(" ", text).replace("std::", "").split())
