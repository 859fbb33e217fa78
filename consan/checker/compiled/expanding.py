"""Programs for the host (source/expansion/expansion.hpp): the numbers of their steps, and the tables of the records that they need."""

from __future__ import annotations

import enum
from typing import Final


class StepCode(enum.IntEnum):
    """The operation of a step on its registers a, b, c, d. The rows of `program.py` list the steps of each instruction."""

    UNKNOWN = 0  # this machine does not execute it
    JUMP = enum.auto()
    LEAVE = enum.auto()
    LOAD = enum.auto()  # from the address a + offset
    STORE = enum.auto()  # b to the address a + offset
    MOVE = enum.auto()
    ADD = enum.auto()
    SUB = enum.auto()
    MUL = enum.auto()
    MUL_HIGH = enum.auto()
    MUL_WIDE = enum.auto()
    MAD = enum.auto()
    MAD_HIGH = enum.auto()
    MAD_WIDE = enum.auto()
    DIV = enum.auto()
    REM = enum.auto()
    MIN = enum.auto()
    MAX = enum.auto()
    ABS = enum.auto()
    EQUAL = enum.auto()
    UNEQUAL = enum.auto()
    LESS = enum.auto()
    AT_MOST = enum.auto()
    SELECT = enum.auto()
    AND = enum.auto()
    OR = enum.auto()
    XOR = enum.auto()
    NOT = enum.auto()
    LOOK_UP = enum.auto()
    LEFT_SHIFT = enum.auto()
    RIGHT_SHIFT = enum.auto()
    FUNNEL_LEFT = enum.auto()
    FUNNEL_RIGHT = enum.auto()
    FIELD = enum.auto()
    INSERT = enum.auto()
    PERMUTE = enum.auto()
    ONES = enum.auto()
    LEADING_ZEROS = enum.auto()
    REVERSE = enum.auto()


class StepType(enum.IntEnum):
    """How a step reads its registers."""

    U8 = 0
    S8 = 1
    U16 = 2
    S16 = 3
    U32 = 4
    S32 = 5
    U64 = 6
    S64 = 7


class StepSlot(enum.IntEnum):
    """Registers that the machine sets. The first one is no guard."""

    TID_X = 0
    TID_Y = 1
    TID_Z = 2
    LANE = 3
    CTA = 4
    COUNT = 5


class ExpansionEnd(enum.IntEnum):
    """How a program has ended."""

    EXPANDED = 0
    UNKNOWN = 1  # at a step that this machine does not execute, or whose memory it does not know
    LONG = 2  # too many steps, or too long a log


STEP: Final = (
    "ExpandStep",
    "one step of a program that computes full logs (expanding.py)",
    """
    u32 code     StepCode
    u32 type     StepType
    u32 bits     of the result
    u32 into     the register of the result
    u32 a        registers that it reads
    u32 b        -
    u32 c        -
    u32 d        -
    u32 guard    a register; 0: none
    u32 negated  the guard
    u32 target   the step at which a jump goes on
    i32 offset   of a load or store
    """,
)
MEMORY: Final = (
    "ExpandMemory",
    "memory that a program may access",
    """
    u64 begin     -
    u64 end       -
    u32 readable  to be read, not to be written
    u32 log       of the full logs
    """,
)
EXPANSION: Final = (
    "Expansion",
    "a program, and the CTAs whose logs it computes",
    """
    *ExpandStep steps     -
    *u64 values           of registers at the beginning
    *ExpandMemory memory  -
    *mut:u32 log          words of the logs, as many lines as there is room for
    *mut:u32 used         lines of the log of each warp
    u64 room              lines of each log
    u64 lines             between two logs, where the program believes them to be
    u64 most_steps        -
    u32 slots             registers
    u32 memory_count      -
    u32 threads           of a CTA
    u32 width             %ntid.x
    u32 height            %ntid.y
    u32 warps             of a CTA
    u32 first             of the CTAs
    u32 end               behind the last one
    """,
)
SWEEP: Final = (
    "SweepInput",
    "clusters that are replayed to find those without findings (source/sweep.hpp)",
    """
    Expansion expansion   of their CTAs
    Input one             what all clusters share
    *mut:u64 events       lane events of the replays of each cluster; 0: the host looks at it
    u32 count             clusters
    u32 both              replays in both orders
    u32 words             lines of zeros that follow a log
    u32 unused            -
    """,
)
