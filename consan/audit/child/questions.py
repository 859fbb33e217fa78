"""Effects of a launch on the program's memory: whether its results depend on the schedule, what it writes that no argument gives it,
whether its results depend on memory that nobody wrote.

Memory that the program allocates is filled with bytes that follow from their addresses (`unwritten`). Bytes that still have these values
when a kernel is launched were written by nobody. The launch is repeated with other bytes there: results that differ come from them. A read
whose value does not reach memory is not shown; nor is a schedule that was not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan.audit.host import text as cuda
from consan.audit.rows import LaunchAnswers
from consan.backends.cpu.state.memory import GLOBAL_BASE, Allocation
from consan.dataclass import dataclass
from consan.reports.source.names import demangled
from consan.session.modules.layouts import AddressName

_MOST: Final = 256 << 20  # bytes of the program's memory that are looked at
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_HIGH: Final = np.uint64(33)
_TABLE: Final = 1 << 20  # bytes of an argument's memory that is searched for more addresses
Bytes = npt.NDArray[np.uint8]


def parameters_in(entry: str) -> list[str]:
    """The types of a kernel's parameters, by its mangled name. Empty: they are not known."""
    name = demangled(entry)
    text = name[name.find("(") + 1 : -1] if name.endswith(")") and name.count("(") == 1 else ""
    return [text[begin:end].strip() for begin, end in cuda.parted(text)]


def unwritten(address: int, nbytes: int) -> Bytes:
    """The contents of memory that nobody has written."""
    words = (np.arange(-(-nbytes // 8), dtype=np.uint64) + np.uint64(address // 8)) * _FACTOR
    found: Bytes = (words ^ (words >> _HIGH)).view(np.uint8)[:nbytes]
    return found


@dataclass
class MemoryContents:
    """The program's memory at one moment: the bytes of its allocations."""

    arena: Any
    bytes: dict[int, Bytes] = field(default_factory=dict)

    @classmethod
    def now(cls, arena: Any) -> MemoryContents | None:
        """None: it is too much to be kept."""
        found = [each for each in arena.allocations if not each.name]
        if sum(each.nbytes for each in found) > _MOST:
            return None
        return cls(arena, {each.address: arena.span(each.address, each.nbytes).copy() for each in found})

    def restore(self) -> None:
        """Let the memory hold it again."""
        for address, data in self.bytes.items():
            if self.arena.find(address) is not None:
                self.arena.span(address, data.size)[...] = data

    def differing(self, other: MemoryContents) -> Iterator[tuple[int, npt.NDArray[np.intp]]]:
        """The allocations of both that differ, and the bytes where."""
        for address, data in self.bytes.items():
            theirs = other.bytes.get(address)
            if theirs is not None and theirs.size == data.size and (found := np.flatnonzero(data != theirs)).size:
                yield address, found


@dataclass
class MemoryQuestions:
    """The questions about one launch. `run(seed)` makes it, and says whether it has ended well; `quiet` makes it without a report.

    `named`: names addresses.
    """

    arena: Any
    seeds: int
    run: Callable[[int], bool]
    quiet: Callable[[], None]
    named: AddressName

    def answers(self, entry: str, values: Sequence[bytes]) -> LaunchAnswers | None:
        """Make the launch with each seed. The memory is then as the first has left it. None: it did not end, or its memory is too
        large."""
        before = MemoryContents.now(self.arena)
        ended = self.run(0)
        after = MemoryContents.now(self.arena) if before is not None and ended else None
        if before is None or after is None:
            return None
        depends = next(filter(None, (self._other(before, after, seed) for seed in range(1, self.seeds))), "")
        found = LaunchAnswers(self.seeds, depends, self._outside(before, after, entry, values), self._reads_unwritten(before, after))
        after.restore()
        return found

    def _other(self, before: MemoryContents, after: MemoryContents, seed: int) -> str:
        """Where the results of another seed differ."""
        before.restore()
        if not self.run(seed):
            return f"it does not end with seed {seed}"
        now = MemoryContents.now(self.arena)
        assert now is not None
        return next((f"{self._place(address, at)} differs with seed {seed}" for address, at in after.differing(now)), "")

    def _place(self, address: int, at: npt.NDArray[np.intp]) -> str:
        """The first bytes that differ, with their element if that is known."""
        first = address + int(at[0])
        for size in (8, 4, 2):
            begin = first // size * size
            if (name := self.named(begin, begin + size)).startswith("element "):
                return name
        return self.named(first, first + 1) or f"byte {int(at[0])} of a buffer that no argument refers to"

    # -- writes ---------------------------------------------------------------------------------------------------------------

    def _outside(self, before: MemoryContents, after: MemoryContents, entry: str, values: Sequence[bytes]) -> str:
        """The memory that the launch has changed and that is none of its outputs, in words."""
        referred = [list(self._referred(value)) for value in values]
        constant = [each.endswith("const*") for each in parameters_in(entry)]
        for address, at in before.differing(after):
            owners = [number for number, found in enumerate(referred) if address in found]
            if not owners:
                return f"it writes memory that no argument refers to: {self._place(address, at)}"
            if len(constant) == len(values) and all(constant[number] for number in owners):
                return f"it writes what its parameter calls const: {self._place(address, at)}"
        return ""

    def _referred(self, value: bytes) -> Iterator[int]:
        """The allocations that a parameter refers to: by an address in it, or by one in memory that it refers to."""
        direct = [found for found in map(self.arena.find, self._addresses(np.frombuffer(value[: len(value) // 8 * 8], np.uint64))) if found]
        yield from (each.address for each in direct)
        for each in direct:
            if each.nbytes <= _TABLE:
                yield from (found.address for found in self._inside(each))

    def _inside(self, allocation: Allocation) -> Iterator[Allocation]:
        words = self.arena.span(allocation.address, allocation.nbytes // 8 * 8).view(np.uint64)
        yield from filter(None, map(self.arena.find, self._addresses(words)))

    def _addresses(self, words: npt.NDArray[np.uint64]) -> list[int]:
        begin = np.uint64(GLOBAL_BASE)
        inside = (words >= begin) & (words < begin + np.uint64(self.arena.raw.size))
        return [int(each) for each in np.unique(words[inside])]

    # -- memory that nobody wrote -----------------------------------------------------------------------------------------------

    def _reads_unwritten(self, before: MemoryContents, after: MemoryContents) -> str:
        """Where results depend on it."""
        masks = {address: data == unwritten(address, data.size) for address, data in before.bytes.items()}
        whole = {address: _in_words(mask) for address, mask in masks.items()}
        if not any(mask.any() for mask in whole.values()):
            return ""
        before.restore()
        for address, mask in whole.items():
            self.arena.span(address, mask.size)[mask] ^= 0xFF
        self.quiet()
        now = MemoryContents.now(self.arena)
        assert now is not None
        for address, at in after.differing(now):
            ours, theirs, mask = after.bytes[address], now.bytes[address], whole[address]
            still = mask[at] & (ours[at] == before.bytes[address][at]) & (theirs[at] == (before.bytes[address][at] ^ 0xFF))
            if not still.all():
                return f"{self._place(address, at[~still])} depends on memory that nobody wrote"
        return ""


def _in_words(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Only bytes whose whole word nobody wrote: one byte may be equal by chance."""
    whole = np.zeros_like(mask)
    count = mask.size // 8 * 8
    words = mask[:count].reshape(-1, 8)
    whole[:count] = np.repeat(words.all(1), 8)
    return whole
