"""The contents of declarations: types, names, parameters (ISA "Types", "Variable Declarations", "Array Declarations", "Alignment").

Computes the size and alignment of declared objects. Not checked: whether a type may be declared at its place.
"""

from __future__ import annotations

import math
import re

from consan.dataclass import dataclass

_NUMERIC = re.compile(r"(?:[busf]|bf|tf)(8|16|32|64|128)(?:x([248]))?|(?:e[2-5]m[0-3]|ue8m0)(?:x([248]))?", re.ASCII)
OPAQUE = ("texref", "samplerref", "surfref")  # what the host binds; its bits mean nothing to a program
_OTHER_BYTES = {"pred": 1, **dict.fromkeys(OPAQUE, 8)}


def is_type(word: str) -> bool:
    """Whether a word (without its dot) is a fundamental, packed or opaque type."""
    return word in _OTHER_BYTES or _NUMERIC.fullmatch(word) is not None


def type_bytes(type_: str) -> int:
    """Bytes of a value of a type in memory."""
    numeric = _NUMERIC.fullmatch(type_)
    if numeric is None:
        return _OTHER_BYTES[type_]
    bits, lanes, small_lanes = numeric.groups()
    return int(bits or 8) // 8 * int(lanes or small_lanes or 1)


@dataclass(frozen=True)
class VarName:
    """One declared name: `x`, `x[3][4]`, `%r<12>`, `x = 7`."""

    name: str
    dims: tuple[int, ...] = ()  # 0 stands for an omitted size
    count: int | None = None  # of %r<12>
    initializer: str | None = None
    initializer_items: int = 0  # outermost elements of a braced initialiser

    @property
    def elements(self) -> int:
        """The number of elements; 0 for an array whose size is given at launch."""
        if self.dims and self.dims[0] == 0:
            return self.initializer_items * math.prod(self.dims[1:])
        return math.prod(self.dims)


@dataclass
class Declared:
    """The part of a declaration before its names."""

    space: str
    type: str = ""
    align: int | None = None
    vector: int = 1
    attributes: tuple[str, ...] = ()
    pointer: str | None = None


@dataclass(frozen=True)
class Param:
    """A parameter or return value of a function."""

    space: str
    type: str
    name: str
    size: int | None  # bytes of an array, 0 if its size is left open; None for a scalar
    align: int | None
    vector: int = 1
    pointer: str | None = None  # state space that a `.ptr` attribute promises, "" for a generic one

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return type_bytes(self.type) * self.vector if self.size is None else self.size

    @property
    def alignment(self) -> int:
        """The effective alignment: the declared one, or the natural one."""
        return self.align or type_bytes(self.type) * self.vector
