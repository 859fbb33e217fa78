"""Which instructions of a kernel signal a barrier or write shared memory: what a report on a deadlock can point at.

The address of an mbarrier is followed through moves and additions of one register each to the variable that it points into. The element of
an array is not followed. An address that cannot be followed has an empty symbol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from consan.instrument.control_flow import definitions, key_of
from consan.instrument.functions.analyse import callee
from consan.instrument.isa import Row, lookup, row_of
from consan.instrument.ptx import Address, Function, Immediate, Instruction, Module, Operand, Register, Symbol, SymbolOffset
from consan.instrument.relations import Signal
from consan.instrument.rewriting.context import place_of

_DEPTH: Final = 12  # limit of the arithmetic that is followed for one operand
# The verb of an instruction other than mbarrier.init, by the roles of its operands: the first row that fits.
_VERBS: Final[tuple[tuple[str, frozenset[str]], ...]] = (
    ("announce", frozenset(("mbar", "tx-count"))),
    ("copy", frozenset(("mbar", "size"))),
    ("copy", frozenset(("mbar", "dst-addr"))),
    ("wait", frozenset(("mbar", "parity"))),
    ("wait", frozenset(("mbar", "state"))),
    ("arrive", frozenset(("mbar",))),
    ("barrier", frozenset(("barrier",))),
    ("write", frozenset(("addr", "src"))),
)
_NUMBERS: Final = ("count", "tx-count", "size")


def signals_of(module: Module, entry: str) -> tuple[Signal, ...]:
    """The signals of a kernel and of the functions that it calls, in the order of the text."""
    bodies = {function.name: function for function in module.functions if function.body is not None}
    return tuple(signal for name in _reachable(bodies, entry) for signal in _Reader(module, bodies[name]).signals())


def _reachable(bodies: dict[str, Function], entry: str) -> list[str]:
    found, waiting = [], [entry]
    while waiting:
        name = waiting.pop()
        if name in bodies and name not in found:
            found.append(name)
            waiting += filter(None, map(callee, bodies[name].instructions()))
    return found


class _Reader:
    """Reads one function."""

    def __init__(self, module: Module, function: Function) -> None:
        self._module, self._function = module, function
        self._definitions = definitions(function)

    def _definition(self, user: Instruction, register: str) -> Instruction | None:
        """The one instruction that writes a register."""
        found = self._definitions.get(key_of(user.scope, register), ())
        return found[0] if len(found) == 1 else None

    def signals(self) -> Iterator[Signal]:
        """The signals of the function, in text order."""
        for instruction in self._function.instructions():
            row = lookup(instruction.parts)
            signal = self._signal(instruction, row) if row is not None and row.fits(instruction) else None
            if signal is not None:
                yield signal

    def _signal(self, instruction: Instruction, row: Row) -> Signal | None:
        roles = dict(zip(row.roles(instruction), instruction.operands, strict=False))
        verb = "initialise" if row.begins_mbarrier else next((verb for verb, wanted in _VERBS if wanted <= roles.keys()), None)
        if verb is None or (verb == "arrive" and _writes(row)):
            return None
        place = place_of(self._module, instruction)
        if verb == "barrier":
            waits = not row.arrives_only
            number, count = self._number(roles["barrier"], instruction), self._number(roles.get("count"), instruction)
            return Signal("wait" if waits else "arrive", instruction.opcode, place, barrier=number, number=count)
        symbol = self._symbol(roles["addr" if verb == "write" else "mbar"], instruction, _DEPTH)
        if verb == "write" and not symbol:
            return None
        number = next((self._number(roles[name], instruction) for name in _NUMBERS if name in roles), None)
        return Signal(verb, instruction.opcode, place, symbol, number=number)

    def _number(self, operand: Operand | None, instruction: Instruction) -> int | None:
        """A constant, or a register that one move of a constant writes."""
        if isinstance(operand, Register):
            definition = self._definition(instruction, operand.name)
            operand = definition.operands[1] if definition is not None and _moves(definition) else None
        return operand.value if isinstance(operand, Immediate) and isinstance(operand.value, int) else None

    def _symbol(self, operand: Operand, instruction: Instruction, depth: int) -> str:
        """The variable that an address points into; empty if unknown."""
        base = operand.base if isinstance(operand, (Address, SymbolOffset)) else operand
        if isinstance(base, Symbol):
            return base.name
        if not isinstance(base, Register) or not depth:
            return ""
        definition = self._definition(instruction, base.name)
        if definition is None or definition.predicate is not None:
            return ""
        return _only(self._symbol(each, definition, depth - 1) for each in definition.operands[1:])


def _moves(instruction: Instruction) -> bool:
    return row_of(instruction).moves


def _writes(row: Row) -> bool:
    """Whether it writes what it names: the barrier itself (`mbarrier.inval`), or other memory."""
    return any(touch.access == "write" for touch in row.touches)


def _only(symbols: Iterable[str]) -> str:
    """The one variable among the operands of an address's arithmetic."""
    found = {symbol for symbol in symbols if symbol}
    return found.pop() if len(found) == 1 else ""
