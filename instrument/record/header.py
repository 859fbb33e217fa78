"""What recording adds to a module beside its kernels: a variable, and what its special registers need."""

from __future__ import annotations

from consan.instrument.passes.context import Context
from consan.instrument.record import text

_OLDEST_VERSION, _OLDEST_TARGET = (7, 6), "sm_80"  # %reserved_smem_offset_*


def header(context: Context) -> str:
    """Insert the module's variable; returns the target, raised to what the special registers need."""
    module, edits = context.module, context.edits
    target = max(module.target, _OLDEST_TARGET, key=lambda name: int("".join(filter(str.isdigit, name)) or 0))
    anchor = None
    for item in module.items:
        name = getattr(item, "name", "")
        anchor = item if name in (".version", ".target", ".address_size") else anchor
        if name == ".version" and module.version < _OLDEST_VERSION:
            edits.replace(item, ".version {}.{}".format(*_OLDEST_VERSION))
        if name == ".target" and module.target != target:
            edits.replace(item, item.text.replace(module.target, target))
    declaration = f"\n.visible .global .align 8 .u64 {text.LAUNCH};\n"
    if anchor is None:
        edits.insert_at(0, declaration)
    else:
        edits.insert_after(anchor, declaration)
    return target
