"""Proves that no two threads of any launch of a kernel race in shared or global memory, or says why not.

Accesses of two CTAs are compared with no order between them. Those of one CTA are compared where both threads are between the same two
executions of a barrier of all threads: each barrier is reached by all of them equally often, or there is no proof.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field, replace
from typing import Final

from consan.dataclass import dataclass
from consan.instrument.ptx import Function, Module
from consan.prove.atomics.guarded import with_guards
from consan.prove.environment import Environment, SamePointers, Shape
from consan.prove.intervals import ENDS, Compared, Intervals
from consan.prove.kernel import Unproven, calls_through_pointers, kernel_of
from consan.prove.numbers import Base, Symbols
from consan.prove.pairs import CTA, GRID, AccessPair, OverlapQuestions
from consan.prove.parameters import ParameterRelation
from consan.prove.solver import Formula, until
from consan.prove.step import ThreadAccess
from consan.prove.values.by_many import NOTES, StoredByMany

PROVEN: Final = "proven"
COUNTEREXAMPLE: Final = "counterexample"
UNKNOWN: Final = "unknown"
_NONE_SAME: Final[SamePointers] = {}
MEET: Final = "two threads may access the same bytes"
NOWHERE: Final = "an address is no sum of a parameter or a variable, and a number"
NEVER: Final = "no thread comes here under what is assumed"
LEAVES: Final = "an address may leave its variable in shared memory"
GAVE_UP: Final = "the solver gave up"
OPEN: Final = (MEET, *NOTES, GAVE_UP)  # reasons of pairs that relations of parameters may keep apart
MOST_PAIRS: Final = 20_000
MOST_SECONDS: Final = 10.0  # of one question


@dataclass(frozen=True)
class ProofReason:
    """Why there is no proof, and the lines of the PTX that it is about."""

    why: str
    lines: tuple[int, ...] = ()


@dataclass
class KernelProof:
    """The answer for one kernel. `overflows`: lines of the PTX whose results are assumed not to overflow.

    `conflicts`: pairs that may race. `open`: these, those of one value, and those on which the solver gave up. `alike`: races that count
    as none, since a check calls them a note. `relations`: of its parameters. `bases`: what the addresses begin at, and whether the kernel
    writes there. `calls`: calls through pointers are taken to reach functions of the module.
    """

    answer: str
    reasons: list[ProofReason] = field(default_factory=list)
    overflows: list[int] = field(default_factory=list)
    pairs: int = 0
    conflicts: list[PossibleRace] = field(default_factory=list)
    open: list[PossibleRace] = field(default_factory=list)
    alike: list[ProofReason] = field(default_factory=list)
    relations: tuple[ParameterRelation, ...] = ()
    environment: Environment | None = None
    bases: dict[Base, bool] = field(default_factory=dict)
    calls: bool = False

    def related(self) -> tuple[str, ...]:
        """The relations of the parameters that it holds under, in words."""
        same = {} if self.environment is None else self.environment.same
        return (*map(str, self.relations), *(f"parameter {place + 1} = parameter {first + 1}" for place, first in sorted(same.items())))

    def premises(self) -> tuple[str, ...]:
        """Its assumptions beside those of all kernels, in words."""
        shared = None if self.environment is None else self.environment.symbols.shared
        return () if shared is None else (*shared.premises, *shared.begins)


@dataclass(frozen=True)
class PossibleRace:
    """Two accesses that may meet, and how to ask for the values with which they do."""

    pair: AccessPair
    questions: OverlapQuestions
    environment: Environment


Assumption = Callable[[Environment], Formula]


def prove(
    function: Function,
    module: Module,
    block: Shape,
    pointers: Collection[int],
    assumed: Sequence[Assumption],
    seconds: float,
    same: SamePointers = _NONE_SAME,
    *,
    notes: bool = False,
) -> KernelProof:
    """The answer for a kernel with blocks of one shape, within about so many seconds. `same`: of its pointers that are equal.

    `notes`: whether races that a check calls a note count as none: stores of one value.
    """
    ends = time.monotonic() + seconds
    function, module = with_guards(function, module)
    with until(ends):
        try:
            environment = Environment(function, module, block, pointers, Symbols(), same)
            return _proved(function, module, environment, assumed, ends, notes=notes)
        except Unproven as why:
            return KernelProof(UNKNOWN, [ProofReason(str(why), (why.line,) if why.line else ())])


def _proved(
    function: Function, module: Module, environment: Environment, assumed: Sequence[Assumption], ends: float, *, notes: bool
) -> KernelProof:
    """The answer by a time of the clock. Raises `Unproven`."""
    kernel = kernel_of(function, module, math.prod(environment.block))
    questions = OverlapQuestions(environment, [each(environment) for each in assumed])
    compared = Intervals(kernel, function, environment, questions).compared()
    values = StoredByMany(kernel, function, environment, lambda: environment.anew(function, module))
    pairs = [*compared.pairs, *_outer(compared.whole, environment)]
    found = PairDecision(questions, environment, values, ends, notes=notes).decide(pairs, compared)
    found.environment, found.calls = environment, calls_through_pointers(function)
    return found


def _outer(whole: list[ThreadAccess], environment: Environment) -> Iterator[AccessPair]:
    """The pairs of two CTAs that race if they meet, and those of loads that see no writes of the kernel."""
    one_cta = all(each.range == (0, 0) for each in environment.cta)
    outer = [each for each in whole if each.base is None or each.base[0] != "shared"]
    for place, one in enumerate(() if one_cta else outer):
        for other in outer[place:]:
            pair = AccessPair(one, other, GRID)
            if pair.may_race():
                yield pair
    stale = [each for each in outer if each.own and not each.writes and each.base is not None]
    writes = [each for each in whole if each.writes]
    for one in stale:  # a load that does not see writes of the kernel, behind any barrier
        yield from (AccessPair(one, other, CTA) for other in writes)


class PairDecision:
    """Decides the pairs of a kernel one by one."""

    def __init__(self, questions: OverlapQuestions, environment: Environment, values: StoredByMany, ends: float, *, notes: bool) -> None:
        self._questions, self._environment, self._values, self._ends = questions, environment, values, ends
        self._notes = notes
        self._stays: dict[int, bool] = {}

    def decide(self, pairs: Sequence[AccessPair], compared: Compared) -> KernelProof:
        """The answer. Each access of a thread's life must be able to happen. Raises `Unproven`."""
        proof, used, reasons = KernelProof(PROVEN, pairs=len(pairs)), dict[int, ThreadAccess](), dict[ProofReason, None]()
        alike = dict[ProofReason, None]()
        if len(pairs) > MOST_PAIRS:
            raise Unproven(f"{len(pairs):,} pairs of accesses are too many")
        for pair in pairs:
            why = self.why(pair)
            if why == MEET and (known := self._alike(pair)) is not None:
                why = known
                alike |= {ProofReason(known, (pair.first.line,)): None} if self._notes else {}
            if why is None or (why in NOTES and self._notes):
                used |= {id(each): each for each in (pair.first, pair.second)}
                continue
            reasons[ProofReason(why, tuple(sorted({pair.first.line, pair.second.line})))] = None
            if why in OPEN:
                proof.open.append(PossibleRace(pair, self._questions, self._environment))
            if why == MEET:
                proof.conflicts.append(proof.open[-1])
        reasons |= {ProofReason(ENDS, (each.line,)): None for each in compared.unfinished}
        for each in compared.whole:
            if each.base is not None:
                proof.bases[each.base] = proof.bases.get(each.base, False) or each.writes
            reasons |= {ProofReason(why, (each.line,)): None for why in self._of_access(each)}
        assumed = self._environment.symbols.assumed
        proof.overflows = sorted({assumed[name] for name in self._questions.variables(list(used.values())) if name in assumed})
        proof.reasons, proof.alike, proof.answer = list(reasons), list(alike), UNKNOWN if reasons else PROVEN
        return proof

    def _alike(self, pair: AccessPair) -> str | None:
        """Why two threads may meet that store one value there; None: they may store others."""
        for masks, assumed in self._values.of(pair):
            if masks is None or self.why(replace(pair, alike=masks)) is None:
                return assumed
        return None

    def _of_access(self, access: ThreadAccess) -> Iterator[str]:
        """Why there is no proof for a kernel with an access."""
        if access.is_operand and not self._stays_inside(access):
            yield LEAVES
        if not self._questions.happens(access, max(0.001, self._ends - time.monotonic())):
            yield NEVER

    def why(self, pair: AccessPair) -> str | None:
        """Why two threads may meet; None: they do not."""
        one, other = pair.first.base, pair.second.base
        if one is None or other is None:
            spaces = {pair.first.space, pair.second.space}
            return None if spaces == {"shared", "global"} else NOWHERE
        if one != other:
            return self._leaves(pair) if one[0] == other[0] == "shared" else None
        left = self._ends - time.monotonic()
        found = None if left <= 0 else self._questions.model(pair, min(MOST_SECONDS, left))
        return None if found is False else MEET if found is not None else "the time was over" if left <= 0 else GAVE_UP

    def _leaves(self, pair: AccessPair) -> str | None:
        """Two variables in shared memory: accesses have to stay in theirs."""
        for each in (pair.first, pair.second):
            if not self._stays_inside(each):
                return LEAVES
        return None

    def _stays_inside(self, access: ThreadAccess) -> bool:
        """Whether an access stays in its variable in shared memory."""
        assert access.base is not None
        if id(access) not in self._stays:
            size = self._environment.bytes_of(access.base[1])
            self._stays[id(access)] = self._questions.stays(access, size, min(MOST_SECONDS, max(0.001, self._ends - time.monotonic())))
        return self._stays[id(access)]
