"""The part of shared memory that is reserved for cooperative groups becomes a variable of the kernel.

The first bytes of a CTA's shared memory are the system's (9.3, `%reserved_smem_offset_*`). In some of them groups of several warps keep
the words of their barriers, and hand values on:

    mov.u32 %r1, %reserved_smem_offset_1;

They are memory like other shared memory, and lie in front of the bytes that are checked. So the kernel gets a variable in their place, and
sets it to zero first, as the system sets those bytes. No line of the text moves.
"""

from __future__ import annotations

from typing import Final

from consan.instrument.ptx import Directive, Edits, Function, Instruction, Label, Module, parse

_REGISTER: Final = "%reserved_smem_offset_1"
_NAME: Final = "reserved_shared_memory"
_BYTES: Final = 288  # what <cooperative_groups/details/memory.h> may count on


_STORES: Final = " ".join(
    f"@!%reserved_p st.shared.v4.b32 [{_NAME}+{at}], {{%reserved_b, %reserved_b, %reserved_b, %reserved_b}};" for at in range(0, _BYTES, 16)
)
_CLEAR: Final = (
    "{ .reg .pred %reserved_p; .reg .b32 %reserved_a, %reserved_b; mov.u32 %reserved_a, %tid.x; mov.u32 %reserved_b, %tid.y;"
    " or.b32 %reserved_a, %reserved_a, %reserved_b; mov.u32 %reserved_b, %tid.z; or.b32 %reserved_a, %reserved_a, %reserved_b;"
    f" setp.ne.u32 %reserved_p, %reserved_a, 0; mov.u32 %reserved_b, 0; {_STORES} bar.sync 0; }} "
)


def with_reserved(module: Module) -> Module:
    """The module with its own bytes in place of the reserved ones."""
    if _REGISTER not in module.text:
        return module
    edits, users = Edits(module), list[Function]()
    for function in module.functions:
        taken = [each for each in function.instructions() if each.opcode == "mov.u32" and _REGISTER in each.text]
        users += [function] * bool(taken)
        for each in taken:
            edits.replace(each, each.text.replace(_REGISTER, _NAME))
    header = [item for item in module.items if isinstance(item, Directive)]
    if not users or not header:
        return module
    edits.insert_before(next(item for item in module.items if item not in header), f".shared .align 16 .b8 {_NAME}[{_BYTES}]; ")
    entries = [function for function in module.functions if function.kind == "entry" and function.body is not None]
    for function in entries if any(each.kind != "entry" for each in users) else users:
        assert function.body is not None
        edits.insert_before(next(each for each in function.body.walk() if isinstance(each, Instruction | Label)), _CLEAR)
    return parse(edits.apply(), module.name)
