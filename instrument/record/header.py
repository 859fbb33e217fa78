"""What recording adds to a module beside its kernels: a variable, and what its special registers need."""

from __future__ import annotations

from consan.instrument.passes.context import Context
from consan.instrument.passes.header import extend_header, later_target
from consan.instrument.record import text

_OLDEST_VERSION, _OLDEST_TARGET = (7, 6), "sm_80"  # %reserved_smem_offset_*


def header(context: Context) -> str:
    """Insert the module's variable; returns the target, raised to what the special registers need."""
    target = later_target(context.module.target, _OLDEST_TARGET)
    extend_header(context, _OLDEST_VERSION, target, f"\n.visible .global .align 8 .u64 {text.LAUNCH}[{text.LAUNCH_BYTES // 8}];\n")
    return target
