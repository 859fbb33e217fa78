"""What declarations say: types, names, parameters (ISA "Types", "Variable Declarations", "Array Declarations", "Alignment").

Decides how many bytes a declared thing takes and how it is aligned. Does not check that a type may be declared where it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

_BITS = {"pred": 1, "f16x2": 32, "bf16x2": 32, "texref": 64, "samplerref": 64, "surfref": 64}


def type_bytes(type_: str) -> int:
    """Bytes that a value of a fundamental or opaque type takes in memory."""
    bits = _BITS.get(type_) or int("".join(filter(str.isdigit, type_)) or 8)
    return max(1, bits // 8)


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
        """How many elements it has; 0 for an array whose size is given at launch."""
        if self.dims and self.dims[0] == 0:
            return self.initializer_items * math.prod(self.dims[1:])
        return math.prod(self.dims)

    def all_names(self) -> Iterator[str]:
        """The names that it declares."""
        if self.count is None:
            yield self.name
        else:
            yield from (f"{self.name}{number}" for number in range(self.count))


@dataclass
class Declared:
    """What a declaration says before its names."""

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
        """Bytes that it takes."""
        return type_bytes(self.type) * self.vector if self.size is None else self.size

    @property
    def alignment(self) -> int:
        """The alignment in force: the one written, or the natural one."""
        return self.align or type_bytes(self.type) * self.vector
