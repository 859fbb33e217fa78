"""What recording adds to a module beside its kernels: its variables, and what its special registers need."""

from __future__ import annotations

from consan.instrument.passes.context import Context
from consan.instrument.passes.header import extend_header, later_target
from consan.instrument.record import text

_OLDEST_VERSION, _OLDEST_TARGET = (7, 6), "sm_80"  # %reserved_smem_offset_*


def header(context: Context, more: str = "") -> str:
    """Insert the variables; returns the target, raised to what the special registers need."""
    target = later_target(context.module.target, _OLDEST_TARGET)
    variables = f".visible .global .align 8 .u64 {text.LAUNCH}[{text.LAUNCH_BYTES // 8}];\n"
    variables += f".visible .const .align 16 .u64 {text.PLACES}[{text.PLACES_BYTES // 8}];\n"
    extend_header(context, _OLDEST_VERSION, target, f"\n{variables}{more}")
    return target
