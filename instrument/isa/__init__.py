"""The opcode table: what every instruction of the PTX ISA touches, in which proxy, and what it orders.

Public: `lookup(parts)` gives the `Row` of an opcode. `Row.event` says what one instruction does that others can notice: its accesses,
what it orders, which operands are known at run time only. `flow_of` and its neighbours answer questions about control flow and waits.
`Row.roles`, `destinations` and `sources` name its operands.
tutorials/guide/forms.md shows the table.
"""

from consan.instrument.isa.model import NO_ACCESS, STATUSES, InstructionEvent, InstructionLike, MemoryAccess, Row, Touch
from consan.instrument.isa.queries import (
    UNKNOWN,
    adds,
    chooses,
    combines_from,
    computes,
    conjunction,
    decides_with,
    elects,
    family_of,
    flow_of,
    hands_on,
    has_action,
    in_space,
    is_exact,
    is_move,
    is_of_reals,
    lowest_bit,
    may_wait,
    polls,
    row_of,
    spares_shared,
    takes_from_lane,
)
from consan.instrument.isa.table import ROWS, canonical, destinations, is_memory_or_sync, lookup, sources

__all__ = [
    "NO_ACCESS",
    "ROWS",
    "STATUSES",
    "UNKNOWN",
    "InstructionEvent",
    "InstructionLike",
    "MemoryAccess",
    "Row",
    "Touch",
    "adds",
    "canonical",
    "chooses",
    "combines_from",
    "computes",
    "conjunction",
    "decides_with",
    "destinations",
    "elects",
    "family_of",
    "flow_of",
    "hands_on",
    "has_action",
    "in_space",
    "is_exact",
    "is_memory_or_sync",
    "is_move",
    "is_of_reals",
    "lookup",
    "lowest_bit",
    "may_wait",
    "polls",
    "row_of",
    "sources",
    "spares_shared",
    "takes_from_lane",
]
