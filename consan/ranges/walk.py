"""Goes through a kernel with the numbers of all its threads, and notes what they access in global memory.

A path is a set of CTAs and a set of threads that take one way. Where a branch divides them, each part becomes a path. A branch that follows
from loaded values is taken both ways, and an access that may be left out is noted: then there are more accesses than the launch makes,
never fewer. Only instructions are executed that an address, a guard or a branch follows from.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass
from consan.instrument.control_flow import BasicBlock, Key
from consan.ranges.accesses import Operands, SpreadAccess, TakingThreads, accesses, of_all_lanes
from consan.ranges.forms import AccessForm, NotProven, Opposite, ParameterForm, ParameterWord, SliceStep, Source
from consan.ranges.iterations import FEWEST, Growth, KnownRegisters, LoopHead, Lost, Registers
from consan.ranges.operations import divide
from consan.ranges.slices import Slice
from consan.ranges.values import Fork, SpreadValue, Unknown, of_part

Numbers = npt.NDArray[np.int64]
Dim3 = tuple[int, int, int]
MOST_STEPS: Final = 20_000  # of all paths of a launch
MOST_PLACES: Final = 1 << 16  # CTAs, times the iterations of a loop
_PLACES_OF_A_STEP: Final = 256  # that many at a time count as a step more
_MOST_STATES: Final = 8  # that are kept of paths at a branch that loaded values decide


@dataclass(frozen=True)
class LaunchExtents:
    """The grid and the block of a launch."""

    grid: Dim3
    block: Dim3


@dataclass(frozen=True)
class Stretch:
    """The accesses of some CTAs on their way, up to where it divides."""

    ctas: Numbers
    accesses: list[SpreadAccess]

    def of(self, ctas: Numbers, bases: Collection[int | None]) -> Iterator[SpreadAccess]:
        """The accesses of some pointers, in a part of the CTAs."""
        places = np.searchsorted(self.ctas, ctas)
        return (each for access in self.accesses if access.base in bases for each in access.of_ctas(places))


@dataclass
class Path:
    """The threads that take one way, and the node that they have come to. A register that is missing has an unknown value.

    `earlier`: what its CTAs accessed before the way divided. `leads`: its threads are taken as leaders of their warps, or as the others.
    `words`: the most that one of them has stored, if the walk counts words (words.py).
    """

    ctas: Numbers  # in order
    threads: Numbers
    node: int = 0
    step: int = 0
    registers: dict[Key, SpreadValue] = field(default_factory=dict)
    accesses: list[SpreadAccess] = field(default_factory=list)
    earlier: tuple[Stretch, ...] = ()
    heads: dict[int, LoopHead] = field(default_factory=dict)
    certain: bool = True  # its threads take this way
    leads: bool | None = None
    words: int = 0

    @property
    def count(self) -> int:
        """Accesses of single threads."""
        return len(self.ctas) * sum(access.number * access.iterations for each in self.stretches for access in each.accesses)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """All of its accesses."""
        return *self.earlier, Stretch(self.ctas, self.accesses)

    def accessed(self, bases: Collection[int | None]) -> Iterator[SpreadAccess]:
        """The accesses of its CTAs by some pointers."""
        return (access for each in self.stretches for access in each.of(self.ctas, bases))

    def parts(self, fork: Fork) -> Iterator[Path]:
        """The paths of the sets of a fork. Accesses so far stay with all CTAs, and with the first set of threads."""
        earlier = self.stretches
        for number, mask in enumerate(fork.sets):
            registers = {key: value.kept(mask, of_threads=fork.of_threads) for key, value in self.registers.items()}
            if fork.of_threads:
                threads, stays = self.threads[mask], earlier if not number else ()
                yield replace(self, threads=threads, registers=registers, accesses=[], earlier=stays, heads={})
            else:
                yield replace(self, ctas=self.ctas[mask], registers=registers, accesses=[], earlier=earlier, heads={})

    def led(self) -> Iterator[Path]:
        """The path of the leaders of its warps, and that of the others: each with all lanes."""
        yield replace(self, leads=True, registers=dict(self.registers), accesses=[], earlier=self.stretches, heads={})
        yield replace(self, leads=False, registers=dict(self.registers), accesses=[], earlier=(), heads={})

    def both(self, node: int) -> Path:
        """The same threads at another node: nobody knows which of them go there."""
        return replace(self, node=node, step=0, registers=dict(self.registers), accesses=[], earlier=(), heads={}, certain=False)


Places = Mapping[int, tuple[int | None, int]]
"""Pointers that are at a known distance from another one: which one, and how far. None: from zero."""


class _Election(Exception):  # noqa: N818
    """A path comes to where the lanes of its warps elect a leader."""


class Walk:
    """A walk through a kernel. One that counts words takes other ways where loaded values decide (words.py)."""

    def __init__(self, kernel: Slice, parameters: Sequence[bytes], shape: LaunchExtents, places: Places) -> None:
        self._kernel, self._parameters, self._shape, self._places = kernel, parameters, shape, places
        self._left = self.most_steps
        self._seen: dict[tuple[int, bool | None, bytes, bytes], list[Registers]] = {}

    @property
    def most_steps(self) -> int:
        """The steps after which it gives up."""
        return MOST_STEPS

    def ended(self) -> list[Path]:
        """The paths, when all have come to their end. Raises `NotProven`, or `Valued`."""
        grid, block = self._shape.grid, self._shape.block
        pending = [Path(np.arange(math.prod(grid)), np.arange(math.prod(block)))]
        found = []
        while pending:
            path = pending.pop()
            try:
                if self._advance(path, pending):
                    found.append(path)
            except Fork as fork:
                pending += path.parts(fork)
            except _Election:
                pending += path.led()
        return found

    def _advance(self, path: Path, pending: list[Path]) -> bool:
        """Go on to the end of the path. Returns whether it has come there."""
        while True:
            ways = self._pass(path)
            pending += (path.both(each) for each in ways[1:])
            path.certain = path.certain and len(ways) < 2
            if not ways:
                return True
            again = ways[0] <= path.node
            path.node, path.step = ways[0], 0
            if again:
                self._repeat(path)

    def _pass(self, path: Path) -> tuple[int, ...]:
        """Go through the node of a path. Returns the nodes to go to. None: the kernel ends."""
        steps, node = self._kernel.steps[path.node], self._kernel.nodes[path.node]
        self._count_steps(1)  # a loop may have none in its nodes
        while path.step < len(steps):
            self._count_steps(1)
            self._execute(path, steps[path.step])
            path.step += 1
        passed_over = path.node not in self._kernel.deciding and len(node.successors) > 1
        ways = self._behind(path.node) if passed_over else self._ways(path, node)
        path.words += self._kernel.stored.get(path.node, 0)
        return ways

    def _behind(self, node: int) -> tuple[int, ...]:
        """The node at which all ways from a branch meet. Empty: the kernel ends."""
        after = self._kernel.after[node]
        return () if after is None else (after,)

    def _count_steps(self, steps: int) -> None:
        self._left -= steps
        if self._left <= 0:
            raise NotProven("its threads take too many steps", never=True)

    def _repeat(self, path: Path) -> None:
        """Go through many iterations of a loop at whose begin a path is, if they are all alike (iterations.py)."""
        head = path.heads.setdefault(path.node, LoopHead())
        before = head.visited(path.registers)
        if before is None:
            return
        growth = Growth.between(before, path.registers, len(path.ctas), self._kernel.widths)
        while (count := min(head.iterations, MOST_PLACES // len(path.ctas))) >= FEWEST:
            made = replace(path, accesses=[], words=0)
            self._count_steps(count * len(path.ctas) // _PLACES_OF_A_STEP)  # the loop may have no end
            left = growth.iterations(count, functools.partial(self._through, path, count, made))
            if left is not None:
                path.registers = dict(left)
                path.accesses += made.accesses
                path.words += made.words
                growth.begin = {key: left[key] for key in growth.steps}
                head.went()
            elif not head.failed():
                break
        head.registers = dict(path.registers)

    def _through(self, path: Path, count: int, made: Path, registers: dict[Key, SpreadValue]) -> Registers | None:
        """Go through iterations of a loop, all at once. `made`: gets what they do. None: they do not all go one way, back to its begin."""
        given = KnownRegisters(registers, path.registers.keys() - registers.keys())
        iterations = Path(np.repeat(path.ctas, count), path.threads, path.node, registers=given, certain=path.certain, leads=path.leads)
        try:
            while len(ways := self._pass(iterations)) == 1 and ways[0] != path.node:
                iterations.node, iterations.step = ways[0], 0
        except (Fork, Lost, NotProven, _Election):
            return None
        if len(ways) != 1:
            return None
        made.accesses = [replace(each, iterations=count) for each in iterations.accesses]
        made.words = count * iterations.words
        return iterations.registers

    def _ways(self, path: Path, node: BasicBlock) -> tuple[int, ...]:
        """The nodes to go to. Empty: the kernel ends, or it goes on as it did on another path."""
        value = None if node.guard is None else path.registers.get(node.guard.register)
        if node.guard is None or value is None:
            path.certain = path.certain and node.guard is None
            return node.successors if len(node.successors) < 2 or self._is_new(path, node) else ()
        divide(value)
        goes = bool(value.whole(1)[0]) is node.guard.value
        return node.taken if goes else () if node.falls is None else (node.falls,)

    def _is_new(self, path: Path, node: BasicBlock) -> bool:
        """Whether a path has not yet been at a branch that loaded values decide with what it still reads. Raises `NotProven`."""
        states = self._seen.setdefault((path.node, path.leads, path.ctas.tobytes(), path.threads.tobytes()), [])
        state = {key: value for key in self._kernel.later[path.node] if (value := path.registers.get(key)) is not None}
        if any(are_same(state, each) for each in states):
            if path.node in self._kernel.repeated:
                raise NotProven("how often a copy writes follows from loaded values", never=True)
            return False
        states.append(state)
        if len(states) > _MOST_STATES:
            if any(each <= path.node for each in node.taken):
                raise NotProven("how often a loop runs follows from loaded values", never=True)
            del states[0]
        return True

    def _execute(self, path: Path, step: SliceStep) -> None:
        guard = step.guard
        held = None if guard is None else path.registers.get(guard.register)
        threads, certain = None, path.certain and (guard is None or held is not None)
        if guard is not None and held is not None:
            if step.accesses and held.varies == (False, True):
                threads = (held.whole(1) != 0) == guard.value
            else:
                divide(held)
                if bool(held.whole(1)[0]) is not guard.value:
                    return
        if step.accesses:
            if (reads := self._reads(path, step)) is not None:
                threads = reads if threads is None else threads & reads
            certain = certain and (step.amount is None or self._value(path, step.amount) is not None)
            path.accesses += (each for access in step.accesses for each in self._accesses(path, access, threads, certain=certain))
        found = [] if guard is not None and held is None else self._results(path, step)
        for key in step.written:
            path.registers.pop(key, None)
        path.registers.update(found)

    def _reads(self, path: Path, step: SliceStep) -> npt.NDArray[np.bool_] | None:
        """The threads whose copy reads something; None: all, or nobody knows. Raises `Fork` where CTAs differ in it."""
        value = self._value(path, step.amount)
        if value is None or value.varies == (True, True):
            return None
        reads = value.whole(32) != 0
        if value.varies[0]:
            raise Fork([reads, ~reads])
        return None if reads.all() else np.broadcast_to(reads, path.threads.shape)

    def _accesses(self, path: Path, form: AccessForm, mask: npt.NDArray[np.bool_] | None, *, certain: bool) -> list[SpreadAccess]:
        places = np.arange(len(path.threads)) if mask is None else np.flatnonzero(mask)
        operands = Operands(functools.partial(self._value, path), self._parameters, self._pointer)
        return accesses(form, TakingThreads(path.threads, places, path.leads), operands, certain=certain)

    def _results(self, path: Path, step: SliceStep) -> list[tuple[Key, SpreadValue]]:
        """The values that an instruction writes, as far as they are known."""
        if step.collective:
            return list(self._collective(path, step))
        if step.operation is None:
            return [pair for load in step.loads for pair in self._parameter(load)]
        sources = [self._value(path, source) for source in step.sources]
        if (found := step.operation.absorbed(sources)) is None:
            known = [each for each in sources if each is not None]
            try:
                found = step.operation.results(known, len(path.ctas)) if len(known) == len(sources) else []
            except Unknown:
                found = []
        return list(zip(step.written, found, strict=False))

    def _collective(self, path: Path, step: SliceStep) -> Iterator[tuple[Key, SpreadValue]]:
        """The result of an election, or of a shuffle from one lane if all lanes of a warp hold one value."""
        if step.collective == "elect":
            if path.leads is None:
                raise _Election
            yield step.written[-1], SpreadValue.same(int(path.leads))
            return
        value = self._value(path, step.sources[0])
        if value is not None and of_all_lanes(path.threads, value.of_thread, math.prod(self._shape.block)):
            yield step.written[0], value

    def _value(self, path: Path, source: Source) -> SpreadValue | None:
        if isinstance(source, tuple):
            return path.registers.get(source)
        if isinstance(source, SpreadValue):
            return source
        if isinstance(source, Opposite):
            value = path.registers.get(source.register)
            return None if value is None else of_part(np.uint64(1) - value.whole(1), of_threads=value.varies[1])
        return None if source is None else self._special(path, source)

    def _special(self, path: Path, name: str) -> SpreadValue | None:
        """The number in a special register."""
        kind, _, axis = name[1:].partition(".")
        if kind == "laneid":
            return of_part((path.threads % 32).astype(np.uint64), of_threads=True).collapsed()
        if kind not in _SPECIAL or axis not in tuple("xyz"):
            return None
        number = "xyz".index(axis)
        extents = self._shape.grid if "cta" in kind else self._shape.block
        if kind.startswith("n"):
            return SpreadValue.same(extents[number])
        of_threads = kind == "tid"
        places = (path.threads if of_threads else path.ctas) // math.prod(extents[:number]) % extents[number]
        return of_part(places.astype(np.uint64), of_threads=of_threads).collapsed()

    def _parameter(self, load: ParameterForm) -> Iterator[tuple[Key, SpreadValue]]:
        """The number that a load from the parameters brings, or the pointer."""
        if load.place in self._kernel.bases:
            yield load.register, self._pointer(load.place)
            return
        piece = load.place.of(self._parameters)
        if len(piece) == load.place.end - load.place.begin:
            number = int.from_bytes(piece, "little", signed=load.signed) & (1 << load.bits) - 1
            yield load.register, SpreadValue.same(number)

    def _pointer(self, word: ParameterWord) -> SpreadValue:
        """A word of the parameters: the pointer, or its number."""
        base = self._kernel.bases.get(word)
        if base is None:
            return SpreadValue.same(int.from_bytes(word.of(self._parameters), "little"))
        place, distance = self._places.get(base, (base, 0))
        return SpreadValue.same(distance).on(place)


def accesses_of(kernel: Slice, parameters: Sequence[bytes], shape: LaunchExtents, places: Places, walk: type[Walk] = Walk) -> list[Path]:
    """The paths through the kernel, each with its accesses. Raises `NotProven`, or `Valued` where it needs the number of a pointer."""
    with np.errstate(all="ignore"):
        return walk(kernel, parameters, shape, places).ended()


def are_same(one: Registers, other: Registers) -> bool:
    """Whether registers have the same values."""
    return one.keys() == other.keys() and all(value.equals(other[key]) for key, value in one.items())


_SPECIAL: Final = frozenset({"tid", "ntid", "ctaid", "nctaid"})
