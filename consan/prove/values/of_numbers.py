"""The masks of numbers that follow from the number of the thread alone: those under which a table over the threads is the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from consan.instrument.control_flow import Key, definitions, key_of, written
from consan.instrument.ptx import Function, Immediate, Instruction, Operand, Register
from consan.prove.environment import Environment
from consan.prove.kernel import ProvedKernel
from consan.prove.numbers import Number
from consan.prove.operations import Value
from consan.prove.step import SymbolicSteps
from consan.prove.tables import Masks, ThreadTables


class ThreadNumbers:
    """The numbers in registers of one kernel that are written once. They are known in the order of the text."""

    def __init__(self, kernel: ProvedKernel, function: Function, environment: Environment) -> None:
        """`environment`: with variables of its own."""
        self._environment, self._tables, self._made = environment, ThreadTables(environment), definitions(function)
        self._steps, self._known = SymbolicSteps(kernel, function, environment), dict[Key, Value]()
        self._masks = dict[Key, Masks]()
        self.threads = self._tables.threads

    def of_special(self, name: str) -> Masks:
        """The masks of a special register."""
        found = self._environment.special(name)
        return self._alike(None if found is None else self._tables.of(found.term))

    def of_result(self, instruction: Instruction) -> Masks:
        """The masks of what an instruction computes."""
        keys = written(instruction)
        if len(keys) != 1 or instruction.predicate is not None or len(self._made[keys[0]]) != 1:
            return self._alike(None)
        if keys[0] not in self._masks:
            value = self._known.setdefault(keys[0], self._steps.value(instruction, self._known))
            term = value.term if isinstance(value, Number) else value
            self._masks[keys[0]] = self._alike(None if term is None else self._tables.of(term))
        return self._masks[keys[0]]

    def constant(self, user: Instruction, operand: Operand) -> int | None:
        """The number that an operand is; None: it is not known, or not one."""
        if isinstance(operand, Immediate):
            return int(operand.value)
        key = key_of(user.scope, operand.name) if isinstance(operand, Register) else None
        found = self._known.get(key) if key is not None and len(self._made.get(key, ())) == 1 else None
        return found.constant if isinstance(found, Number) else None

    def _alike(self, table: Any) -> Masks:
        """The masks under which a table is the same. None: it is not known."""
        found = np.full(self.threads, table is not None and np.ndim(table) == 0)
        found[0] = True
        if table is None or np.ndim(table) == 0:
            return found
        _, codes = np.unique(table, return_inverse=True)
        threads = np.arange(self.threads)
        for mask in np.flatnonzero(codes == codes[0]):
            found[mask] = np.array_equal(codes[threads ^ mask], codes)
        return found
