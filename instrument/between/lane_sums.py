"""Sums of floating point for which the lanes of a warp exchange their values in pairs: all lanes get the same sum, but for its rounding.

A step adds to a value that of the lane whose number differs in some bits. Lane by lane a compiler may join a product and the sum of a step
(`fma`), so that the two lanes of a pair round differently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from consan.instrument.effects import LANES
from consan.instrument.isa import is_move, rounds_reals, scales, shuffles, sums_reals
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Instruction, Operand

if TYPE_CHECKING:
    from consan.instrument.between.data import DataFlow

_ALL: Final = (1 << LANES) - 1  # lanes


class LaneSums:
    """Those of one kernel."""

    def __init__(self, data: DataFlow) -> None:
        self._data = data

    def lanes(self, user: Instruction, operand: Operand) -> int:
        """The bits of the lane's number over which the value of an operand was summed; 0: it is no such sum."""
        bits, made = 0, self._made(user, operand)
        if made is not None and rounds_reals(made):
            made = self._made(made, made.operands[1])
        while made is not None and (step := self._step(made)) is not None:
            bits, made = bits | step[0], step[1]
        return bits

    def _made(self, user: Instruction, operand: Operand) -> Instruction | None:
        """The instruction that computes an operand, behind moves."""
        used = list(names(operand))
        made = self._data.definition(user, used[0]) if len(used) == 1 else None
        if made is not None and made.predicate is not None:
            return None
        return self._made(made, made.operands[1]) if made is not None and is_move(made) else made

    def _step(self, made: Instruction) -> tuple[int, Instruction] | None:
        """The bits of the lane's number in which a step exchanges values, and what has computed the value before it."""
        if not sums_reals(made):
            return None
        *own, last = made.operands[1:]
        orders = [(own, last)] if len(own) == 2 else [(own, last), ([last], own[0])]
        for mine, other in orders:
            exchange = self._made(made, other)
            bits = self._exchanged(exchange) if exchange is not None else 0
            before = self._made(exchange, exchange.operands[1]) if exchange is not None and bits else None
            if before is not None and self._is_value(mine, made, before):
                return bits, before
        return None

    def _exchanged(self, exchange: Instruction) -> int:
        """The bits in which the numbers of two lanes differ that exchange their values; 0: they do not, or not in all of a warp."""
        if shuffles(exchange) != "bfly":
            return 0
        bits, last, mask = (self._data.operand(each, exchange).of(None) for each in exchange.operands[2:5])
        return bits or 0 if (last, mask) == (LANES - 1, _ALL) else 0

    def _is_value(self, operands: list[Operand], user: Instruction, before: Instruction) -> bool:
        """Whether an operand, or the product of two, is the value that an instruction has computed."""
        if len(operands) == 1:
            return self._made(user, operands[0]) is before
        return scales(before) and sorted(names(tuple(operands))) == sorted(names(before.operands[1:]))
