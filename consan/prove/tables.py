"""Terms that follow from the number of a thread alone, as tables over the threads of a block.

Swizzled addresses are sums of single bits of the thread's number: slow to decide for a solver, and quick to compute for each thread.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass
from consan.prove.environment import Environment
from consan.prove.solver import Formula, addends, z3
from consan.prove.step import ThreadAccess

Table = npt.NDArray[Any]
Masks = npt.NDArray[np.bool_]
"""By mask of the bits of a thread's number, whether it is in a group: with two masks, their exclusive or is."""
WARP: Final = 32
_AXES: Final = (2, 1, 0)
_FAR: Final = 1 << 60  # sums of such numbers and of sizes fit in 64 bits


@dataclass(frozen=True)
class SplitAddress:
    """An address: a number of the thread, and a sum of other terms. `threads`: those that may make the access."""

    table: Table
    rest: dict[int, tuple[Formula, int]]
    threads: Table

    @property
    def terms(self) -> Formula:
        """The sum of the other terms."""
        return z3.Sum([z3.IntVal(0), *(term * count for term, count in self.rest.values())])

    @property
    def ends(self) -> tuple[int, int] | None:
        """The least and the largest number of a thread; None: no thread makes the access."""
        found = self.table[self.threads]
        return (int(found.min()), int(found.max())) if len(found) else None


class ThreadTables:
    """Computes terms for each thread of a block. `threads`: how many there are, numbered along x first. `own`: the values of variables."""

    def __init__(self, environment: Environment) -> None:
        self.symbols, block = environment.symbols, environment.block
        grid = np.meshgrid(*(np.arange(block[axis]) for axis in _AXES), indexing="ij")
        numbers = dict(zip(_AXES, (each.ravel().astype(object) for each in grid), strict=True))
        self.own = {str(each.term): numbers[axis] for axis, each in enumerate(environment.tid) if each.constant is None}
        self.threads = block[0] * block[1] * block[2]
        self._known: dict[int, tuple[Formula, Any]] = {}

    def split(self, access: ThreadAccess) -> SplitAddress:
        """The address of an access in two parts."""
        table, rest = np.zeros(self.threads, object), dict[int, tuple[Formula, int]]()
        for term, count in addends(access.offset.term, 1):
            found = self.of(term)
            if found is not None:
                table = table + found * count
            else:
                rest[term.get_id()] = term, rest.get(term.get_id(), (term, 0))[1] + count
        threads = np.ones(self.threads, bool)
        for each in _parts(access.path):
            held = self.of(each)
            threads &= True if held is None else np.asarray(held, bool)
        if max(map(abs, table)) >= _FAR:
            return SplitAddress(np.zeros(self.threads, np.int64), {access.offset.term.get_id(): (access.offset.term, 1)}, threads)
        return SplitAddress(table.astype(np.int64), {key: each for key, each in rest.items() if each[1]}, threads)

    def conditions(self, access: ThreadAccess) -> list[Formula]:
        """The conditions that all hold where a thread makes an access."""
        return [each for each in _parts(access.path) if not z3.is_true(each)]

    def of(self, term: Formula) -> Any:
        """The values of a term in all threads, or the one value of all; None: it follows from more than the thread's number."""
        if term.get_id() not in self._known:
            self._known[term.get_id()] = term, self._computed(term)
        return self._known[term.get_id()][1]

    def _computed(self, term: Formula) -> Any:
        if z3.is_int_value(term):
            return term.as_long()
        if z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            return self._variable(str(term))
        how = _COMPUTED.get(term.decl().kind())
        parts = [self.of(each) for each in term.children()] if how is not None else [None]
        return None if how is None or any(part is None for part in parts) else how(parts)

    def _variable(self, name: str) -> Any:
        if name not in self.symbols.quotients:
            return self.own.get(name)
        term, by = self.symbols.quotients[name]
        found = self.of(term)
        return None if found is None else found // by


_COMPUTED: Final[dict[int, Callable[[list[Any]], Any]]] = {} if z3 is None else {
    z3.Z3_OP_ADD: lambda parts: reduce(operator.add, parts),
    z3.Z3_OP_SUB: lambda parts: reduce(operator.sub, parts),
    z3.Z3_OP_MUL: lambda parts: reduce(operator.mul, parts),
    z3.Z3_OP_UMINUS: lambda parts: -parts[0],
    z3.Z3_OP_ITE: lambda parts: np.where(np.asarray(parts[0], bool), parts[1], parts[2]),
    z3.Z3_OP_LE: lambda parts: parts[0] <= parts[1],
    z3.Z3_OP_GE: lambda parts: parts[0] >= parts[1],
    z3.Z3_OP_LT: lambda parts: parts[0] < parts[1],
    z3.Z3_OP_GT: lambda parts: parts[0] > parts[1],
    z3.Z3_OP_EQ: lambda parts: parts[0] == parts[1],
    z3.Z3_OP_DISTINCT: lambda parts: parts[0] != parts[1],
    z3.Z3_OP_AND: lambda parts: reduce(np.logical_and, parts),
    z3.Z3_OP_OR: lambda parts: reduce(np.logical_or, parts),
    z3.Z3_OP_NOT: lambda parts: np.logical_not(parts[0]),
}  # fmt: skip


def meet(
    one: SplitAddress, size: int, other: SplitAddress, other_size: int, *, same: bool, others: bool, warps: bool, alike: Masks | None
) -> bool:
    """Whether two threads may meet at addresses whose other terms are equal. `same`, `others`: a thread and itself; two threads, with
    `warps` of two warps. `alike`: not those whose numbers differ so.
    """
    first, second = one.table[:, None], other.table[None, :]
    found = (first < second + other_size) & (second < first + size) & one.threads[:, None] & other.threads[None, :]
    one_thread = np.eye(len(one.threads), dtype=bool)
    if warps:
        warp = np.arange(len(one.threads)) // WARP
        found &= warp[:, None] != warp[None, :]
    if alike is not None:
        numbers = np.arange(len(one.threads))
        found &= ~alike[numbers[:, None] ^ numbers[None, :]]
    return bool((found & ((one_thread & same) | (~one_thread & others))).any())


def checks_of(group: Masks) -> list[int]:
    """Bits of a number each: a mask is in the group if of each the number of its bits in the mask is even."""
    found, spanned, numbers = list[int](), {0}, np.flatnonzero(group)
    for check in range(1, len(group)):
        if check not in spanned and not (np.bitwise_count(numbers & check) & 1).any():
            found.append(check)
            spanned |= {each ^ check for each in spanned}
    return found


def _parts(path: Formula) -> Iterator[Formula]:
    """The conditions that all hold where a path is taken."""
    if z3.is_and(path):
        for each in path.children():
            yield from _parts(each)
    else:
        yield path
