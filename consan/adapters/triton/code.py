"""The PTX of a compiled kernel, with corrected source lines.

Triton writes most memory and synchronisation instructions as multi-line inline assembly from one line of Python. The LLVM of
Triton 3.9 counts lines within such a block: its second line is attributed to the next line of Python, and so on. The first `.loc`
of a block is right, and is copied to the others. Line numbers of the PTX do not change.
"""

from __future__ import annotations

import re
from typing import Any

from consan._errors import NotSupported
from consan.reports.frameworks import GLUON, TRITON

_BLOCK = re.compile(r"// begin inline asm\n.*?// end inline asm", re.S)
_LOC = re.compile(r"^[ \t]*\.loc[ \t].*$", re.M)


def ptx_of(kernel: Any) -> str:
    """The PTX of a `CompiledKernel`. NotSupported if Triton was told to keep none."""
    ptx = kernel.asm.get("ptx")
    if ptx is None:
        raise NotSupported(f"{kernel.name} comes without its PTX: unset TRITON_STORE_BINARY_ONLY and empty Triton's cache")
    return settled(ptx)


def framework_of_source(source: Any) -> str:
    """Triton or Gluon, by the class of what was compiled (`triton.experimental.gluon._runtime.GluonASTSource`)."""
    return GLUON if "gluon" in type(source).__module__ else TRITON


def settled(ptx: str) -> str:
    """The PTX with one source line for each block of inline assembly."""
    return _BLOCK.sub(lambda block: _same_place(block[0]), ptx)


def _same_place(block: str) -> str:
    first = _LOC.search(block)
    return block if first is None else _LOC.sub(lambda _: first[0], block)
