"""The additions of recording to a module beside its kernels: its variables, and what its special registers need.

Constant memory is the fastest to read, since all threads read one address. A module has 64 KB of it (ISA "Constant State Space"). Where the
module leaves too little, the variables are in global memory.
"""

from __future__ import annotations

import re

from consan.instrument.ptx import Module
from consan.instrument.record.text import text
from consan.instrument.rewriting.context import Context
from consan.instrument.rewriting.header import extend_header, later_target

_OLDEST_VERSION, _OLDEST_TARGET = (7, 6), "sm_80"  # %reserved_smem_offset_*
_CONSTANT_BYTES, _OURS = 1 << 16, 256  # ours, with room for their alignment
_OUR_CONSTANTS = re.compile(r"(ld|\.visible) ?\.const(?=[^;]*\b__consan_)")


def header(context: Context, more: str = "") -> str:
    """Insert the variables; returns the target, raised to what the special registers need."""
    target = later_target(context.module.target, _OLDEST_TARGET)
    variables = f".visible .global .align 8 .u64 {text.LAUNCH}[{text.LAUNCH_BYTES // 8}];\n"
    variables += f".visible .const .align 16 .u64 {text.PLACES}[{text.PLACES_BYTES // 8}];\n"
    extend_header(context, _OLDEST_VERSION, target, f"\n{variables}{more}")
    return target


def placed(module: Module, ptx: str) -> str:
    """The text of a recorded module, with the variables in a memory that has room for them."""
    room = _CONSTANT_BYTES - _OURS
    for variable in module.variables:
        if variable.space == "const":
            room -= sum(variable.nbytes(name) + variable.alignment for name in variable.names)
    return ptx if room >= 0 else _OUR_CONSTANTS.sub(_in_global, ptx)


def _in_global(found: re.Match[str]) -> str:
    return found[0].replace(".const", ".global")
