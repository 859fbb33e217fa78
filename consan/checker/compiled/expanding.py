"""The numbers of the steps of a program for the host (source/expansion/expansion.hpp)."""

from __future__ import annotations

import enum


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
