"""Goes through a kernel with the numbers of all its threads, and notes what they access in global memory.

A path is a set of CTAs and a set of threads that take one way. Where a branch divides them, each part becomes a path. A branch that follows
from loaded values is taken both ways, and an access that may be left out is noted: then there are more accesses than the launch makes,
never fewer. Only instructions are executed that an address, a guard or a branch follows from.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from consan.instrument.passes.flow import Guard, Key
from consan.ranges.operations import divide
from consan.ranges.rounds import FEWEST, Growth, KnownRegisters, LoopHead, Lost, Registers
from consan.ranges.slices import AccessForm, NotProven, Opposite, ParameterForm, Slice, SliceStep, Source, word_of
from consan.ranges.values import Fork, Signed, SpreadValue, Unknown, exact, of_part

Numbers = npt.NDArray[np.int64]
Dim3 = tuple[int, int, int]
MOST_STEPS: Final = 20_000  # of all paths of a launch
MOST_PLACES: Final = 1 << 16  # CTAs, times the rounds of a loop
_PLACES_OF_A_STEP: Final = 256  # that many at a time count as a step more
ROUNDS = True  # tests go round by round
_WIDE: Final = 64


@dataclass(frozen=True)
class LaunchExtents:
    """The grid and the block of a launch."""

    grid: Dim3
    block: Dim3


@dataclass(frozen=True)
class SpreadAccess:
    """An access of some threads of each CTA of a path: the sum of both parts is the address, or what is added to the pointer `base`.

    `own`: a thread may meet its own writes. `rounds`: of a loop; the CTAs have as many numbers each, if they have more than one for all.
    `form`: the access in the text; `certain`: the threads make it.
    """

    threads: Numbers
    of_cta: Signed
    of_thread: Signed
    nbytes: int
    writes: bool
    own: bool
    base: int | None = None
    rounds: int = 1
    form: AccessForm | None = None
    certain: bool = True

    def of_ctas(self, places: npt.NDArray[np.intp]) -> Iterator[SpreadAccess]:
        """The access in some of the CTAs, for each round."""
        if self.of_cta.size == 1:
            yield replace(self, rounds=1)
            return
        for numbers in self.of_cta.reshape(-1, self.rounds)[places].T:
            yield replace(self, of_cta=numbers, rounds=1)


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
    """Threads that take one way, and where they are. A register that is missing has an unknown value.

    `earlier`: what its CTAs accessed before the way divided.
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

    @property
    def count(self) -> int:
        """Accesses of single threads."""
        return len(self.ctas) * sum(len(access.threads) * access.rounds for each in self.stretches for access in each.accesses)

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

    def both(self, node: int) -> Path:
        """The same threads at another node: nobody knows which of them go there."""
        return replace(self, node=node, step=0, registers=dict(self.registers), accesses=[], earlier=(), heads={}, certain=False)


Places = Mapping[int, tuple[int | None, int]]
"""Pointers that are at a known distance from another one: which one, and how far. None: from zero."""


def accesses_of(kernel: Slice, parameters: Sequence[bytes], shape: LaunchExtents, places: Places) -> list[Path]:
    """The paths through the kernel, each with its accesses. Raises `NotProven`, or `Valued` where it needs the number of a pointer."""
    with np.errstate(all="ignore"):
        return _Walk(kernel, parameters, shape, places).ended()


class _Walk:
    def __init__(self, kernel: Slice, parameters: Sequence[bytes], shape: LaunchExtents, places: Places) -> None:
        self._kernel, self._parameters, self._shape, self._places = kernel, parameters, shape, places
        self._left = MOST_STEPS

    def ended(self) -> list[Path]:
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
        return self._ways(path, node.guard, node.taken, node.falls)

    def _count_steps(self, steps: int) -> None:
        self._left -= steps
        if self._left <= 0:
            raise NotProven("its threads take too many steps", never=True)

    def _repeat(self, path: Path) -> None:
        """Go through many rounds of a loop at whose begin a path is, if they are all alike (rounds.py)."""
        head = path.heads.setdefault(path.node, LoopHead())
        before = head.visited(path.registers)
        if before is None or not ROUNDS:
            return
        growth = Growth.between(before, path.registers, len(path.ctas), self._kernel.widths)
        while (count := min(head.rounds, MOST_PLACES // len(path.ctas))) >= FEWEST:
            accesses = list[SpreadAccess]()
            self._count_steps(count * len(path.ctas) // _PLACES_OF_A_STEP)  # the loop may have no end
            left = growth.rounds(count, functools.partial(self._through, path, count, accesses))
            if left is not None:
                path.registers = dict(left)
                path.accesses += accesses
                growth.begin = {key: left[key] for key in growth.steps}
                head.went()
            elif not head.failed():
                break
        head.registers = dict(path.registers)

    def _through(self, path: Path, count: int, accesses: list[SpreadAccess], registers: dict[Key, SpreadValue]) -> Registers | None:
        """Go through rounds of a loop, all at once. None: they do not all go one way, back to its begin."""
        given = KnownRegisters(registers, path.registers.keys() - registers.keys())
        rounds = Path(np.repeat(path.ctas, count), path.threads, path.node, registers=given, certain=path.certain)
        try:
            while len(ways := self._pass(rounds)) == 1 and ways[0] != path.node:
                rounds.node, rounds.step = ways[0], 0
        except (Fork, Lost, NotProven):
            return None
        if len(ways) != 1:
            return None
        accesses[:] = [replace(each, rounds=count) for each in rounds.accesses]
        return rounds.registers

    def _ways(self, path: Path, guard: Guard | None, taken: tuple[int, ...], falls: int | None) -> tuple[int, ...]:
        """The nodes to go to. None: the kernel ends."""
        if guard is None:
            return taken or (() if falls is None else (falls,))
        value = path.registers.get(guard.register)
        if value is None:
            if any(each <= path.node for each in taken):
                raise NotProven("how often a loop runs follows from loaded values", never=True)
            return (*taken, *(() if falls is None else (falls,)))  # what ends here has told its accesses
        divide(value)
        goes = bool(value.whole(1)[0]) is guard.value
        return taken if goes else () if falls is None else (falls,)

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
            path.accesses += [self._access(path, access, threads, certain=certain) for access in step.accesses]
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

    def _access(self, path: Path, access: AccessForm, mask: npt.NDArray[np.bool_] | None, *, certain: bool) -> SpreadAccess:
        value = self._value(path, access.base)
        if value is None:
            raise NotProven("an address is no sum of parts")
        try:
            of_cta, of_thread = exact(value.on(None), _WIDE, signed=True)
        except Unknown:
            raise NotProven("an address wraps") from None
        threads = path.threads
        if mask is not None:
            threads, of_thread = threads[mask], of_thread if of_thread.size == 1 else of_thread[mask]
        address = of_cta + access.offset
        return SpreadAccess(threads, address, of_thread, access.nbytes, access.writes, access.own, value.base, form=access, certain=certain)

    def _results(self, path: Path, step: SliceStep) -> list[tuple[Key, SpreadValue]]:
        """The values that an instruction writes, as far as they are known."""
        if step.operation is None:
            return [pair for load in step.loads for pair in self._parameter(load)]
        sources = list[SpreadValue]()
        for source in step.sources:
            value = self._value(path, source)
            if value is None:
                return []
            sources.append(value)
        try:
            return list(zip(step.written, step.operation.results(sources, len(path.ctas)), strict=True))
        except Unknown:
            return []

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
        base = self._kernel.bases.get(load.place)
        if base is not None:
            place, distance = self._places.get(base, (base, 0))
            yield load.register, SpreadValue.same(distance).on(place)
            return
        piece = word_of(load.place, self._parameters)
        if len(piece) == load.place.end - load.place.begin:
            number = int.from_bytes(piece, "little", signed=load.signed) & (1 << load.bits) - 1
            yield load.register, SpreadValue.same(number)


_SPECIAL: Final = frozenset({"tid", "ntid", "ctaid", "nctaid"})
