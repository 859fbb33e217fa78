"""Stores that `consan check` calls a note: one instruction of several threads of a CTA stores one value to one place (R-RACE).

The text must show that the value is one. All threads store it if each register that it follows from is written once, by arithmetic on
numbers, parameters of the kernel and what is equal in all threads of a CTA, so that no iteration, load, or other lane decides it. Some
threads do if the text shows it of their numbers (alike.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from consan.instrument.control_flow import Key, definitions, key_of
from consan.instrument.isa import row_of
from consan.instrument.ptx import Function, Immediate, Instruction, Operand, Register, Vector
from consan.prove.environment import Environment, has_one_value, parameter_words
from consan.prove.kernel import ProvedKernel
from consan.prove.loads.settled import settled_loads
from consan.prove.pairs import INTERVAL, AccessPair
from consan.prove.tables import Masks
from consan.prove.values.alike import AlikeThreads

ONE_VALUE: Final = "threads of a CTA may store one value to one place: a race by the ISA, which a check calls a note"
ONE_SUM: Final = "threads of a CTA may store one sum to one place, which each rounds in its own way: a race by the ISA, as a rule a note"
NOTES: Final = (ONE_VALUE, ONE_SUM)


class StoredByMany:
    """The stores of one kernel by several threads of a CTA to one place, and what the text shows of their values."""

    def __init__(self, kernel: ProvedKernel, function: Function, environment: Environment, anew: Callable[[], Environment]) -> None:
        """`anew`: the same environment with variables of its own."""
        self._made: Mapping[Key, list[Instruction]] = definitions(function)
        self._parameters = frozenset(each.name for each in function.params)
        self._threads: Callable[[], AlikeThreads] = lambda: AlikeThreads(kernel, function, anew(), settled_loads(function, environment))
        self._alike: AlikeThreads | None = None

    def of(self, pair: AccessPair) -> Iterator[tuple[Masks | None, str]]:
        """The masks under which two threads of a CTA store one value by one instruction (None: all threads do), with what is said of it."""
        one, other = pair.first, pair.second
        store = one.instruction
        if not pair.one_cta or store is not other.instruction or not (row_of(store).is_store and one.is_aligned and not one.strong):
            return
        if all(self._is_one(store, each, frozenset()) for each in store.operands[1:]):
            yield None, ONE_VALUE
        elif pair.shared == INTERVAL and not pair.own:
            self._alike = self._alike or self._threads()
            yield from zip(self._alike.of_values(store), (ONE_VALUE, ONE_SUM), strict=True)

    def _is_one(self, user: Instruction, operand: Operand, above: frozenset[Key]) -> bool:
        """Whether an operand has one value in a CTA. `above`: registers that follow from it."""
        if isinstance(operand, Vector):
            return all(self._is_one(user, each, above) for each in operand.elements)
        if not isinstance(operand, Register):
            return isinstance(operand, Immediate)
        if not user.scope.is_register(operand.name):
            return has_one_value(operand.name)
        key = key_of(user.scope, operand.name)
        made = self._made.get(key, [])
        if len(made) != 1 or made[0].predicate is not None or key in above:
            return False
        row = row_of(made[0])
        if row.is_load:
            return key in parameter_words(made[0], self._parameters)
        if not row.is_arithmetic:
            return False
        return all(self._is_one(made[0], each, above | {key}) for each in made[0].operands[1:])
