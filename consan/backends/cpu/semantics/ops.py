"""Instruction semantics of the PTX virtual machine: the interface that the engine uses.

`semantics(parts)` gives the Op of an opcode (None when unknown), `pack` and `unpack` those of the vector forms of mov,
`atomic_function(operation, type)` the arithmetic of atom and red; `DTYPES` maps type words to NumPy dtypes. Conventions are in
ops_base, the rows in the modules of each family. All arrays are little endian; the caller suppresses NumPy's floating point warnings.
"""

from __future__ import annotations

from .ops_atomic import atomic_function
from .ops_base import DTYPES, Op, canonicalize
from .ops_move import pack, unpack
from .ops_registry import OPERATIONS, semantics

__all__ = ["DTYPES", "OPERATIONS", "Op", "atomic_function", "canonicalize", "pack", "semantics", "unpack"]
