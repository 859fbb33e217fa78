"""The kind of a kernel's parameter, as far as an argument can be checked against it."""

from __future__ import annotations

from typing import Final

from consan.dataclass import dataclass

POINTER: Final = "pointer"
INTEGER: Final = "integer"  # signed, or of unknown sign: PTX says .u32 of an int
UNSIGNED: Final = "unsigned"  # the source says so
FLOAT: Final = "float"
WORD: Final = "word"  # 64 bits: an integer or a pointer
CLASS: Final = "class"  # a struct by value, or any other bytes
UNKNOWN: Final = "unknown"  # untyped bits: neither the PTX nor the name nor the source tells more


@dataclass(frozen=True)
class CType:
    """A kind, its name in messages, and its size if known."""

    kind: str
    text: str
    nbytes: int | None = None
