"""What a kernel's parameter is, as far as an argument can be held against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

POINTER: Final = "pointer"
INTEGER: Final = "integer"  # signed, or of unknown sign: PTX says .u32 of an int
UNSIGNED: Final = "unsigned"  # the source says so
FLOAT: Final = "float"
WORD: Final = "word"  # 64 bits: an integer or a pointer
CLASS: Final = "class"  # a struct by value, or whatever else is bytes
UNKNOWN: Final = "unknown"  # bits: the PTX says no more, and nothing else does


@dataclass(frozen=True)
class CType:
    """A kind, what a message calls it, and its size where that is known."""

    kind: str
    text: str
    nbytes: int | None = None
