"""The opcode table: what every instruction of the PTX ISA touches, in which proxy, and what it orders.

Public: `lookup(parts)` gives the `Row` of an opcode. `Row.describe` and `Row.accesses` say what one instruction does to memory.
`Row.roles`, `destinations` and `sources` name its operands. ``python -m consan.instrument.isa`` prints the table.
"""

from consan.instrument.isa.model import NO_ACCESS, STATUSES, Access, InstructionLike, Row, Touch
from consan.instrument.isa.table import ROWS, canonical, destinations, is_memory_or_sync, lookup, sources

__all__ = [
    "NO_ACCESS",
    "ROWS",
    "STATUSES",
    "Access",
    "InstructionLike",
    "Row",
    "Touch",
    "canonical",
    "destinations",
    "is_memory_or_sync",
    "lookup",
    "sources",
]
