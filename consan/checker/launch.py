"""One recorded launch: the memory that its threads write to, and what the host reads of it afterwards.

Each warp has a log of `log_bytes`, in lines of one word for each lane. The last line of a log is zero unless the log ran out of room.
Each thread stores its two hashes when it exits. A CTA whose threads have all exited has a history; CTAs with equal histories did the
same, and one of them is kept.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.checker.replay import History
from consan.instrument.record import text
from consan.instrument.record.templates import LANES, LINE_BYTES, WORD_BYTES

Dim3 = tuple[int, int, int]
_LEAST_LINES, _MOST_LINES = 64, 1 << 13  # of a warp's log
_HASH_BYTES = 8
_NO_GROUP = -1
_MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)


class NoRoom(Exception):  # noqa: N818
    """The trace memory cannot hold the launch."""


@dataclass
class Launch:
    """The memory of one launch. `words`: the most that a thread stores between two cuts, plus one for the mark of the end."""

    backend: Any
    grid: Dim3
    block: Dim3
    words: int
    most_bytes: int
    lines: int = field(init=False)
    address: int = field(init=False)
    _places: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        room = self.most_bytes // (self.ctas * self.warps * LINE_BYTES)
        self.lines = min(room, max(_MOST_LINES, 4 * self.words))
        if self.lines < max(_LEAST_LINES, 2 * self.words):
            raise NoRoom(f"{self.ctas:,} CTAs of {self.threads} threads")
        sizes = {"log": self.ctas * self.warps * self.lines * LINE_BYTES, "launch": _HASH_BYTES * text.LAUNCH_WORDS}
        sizes |= dict.fromkeys(("hashes_1", "hashes_2"), self.ctas * self.threads * _HASH_BYTES)
        for name, size in sizes.items():
            self._places[name] = self.backend.alloc_apart(size)
            if not self.backend.allocates_zeros:
                self.backend.fill(self._places[name], 0, size)
        self.address = self._places["launch"]
        self.backend.write(self.address, self._record())

    @property
    def ctas(self) -> int:
        """CTAs of the grid."""
        return math.prod(self.grid)

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return math.prod(self.block)

    @property
    def warps(self) -> int:
        """Warps of a CTA."""
        return -(-self.threads // LANES)

    def free(self) -> None:
        """Free the memory."""
        for address in self._places.values():
            self.backend.free(address)
        self._places.clear()

    def _record(self) -> bytes:
        record = np.zeros(text.LAUNCH_WORDS, "<u8")
        usable = (self.lines - self.words - 1) * LINE_BYTES
        record[text.ARENA], record[text.LOG_BYTES], record[text.USABLE] = self._places["log"], self.lines * LINE_BYTES, usable
        record[text.START] = _MIX[0]
        record[text.HASHES_1], record[text.HASHES_2] = self._places["hashes_1"], self._places["hashes_2"]
        return record.tobytes()

    # -- after the launch --------------------------------------------------------------------------------------------------

    def hashes(self) -> npt.NDArray[np.uint64]:
        """The two hashes of each thread of each CTA: 2 x CTAs x threads. Zero where a thread has not exited."""
        size = self.ctas * self.threads * _HASH_BYTES
        found = [np.frombuffer(self.backend.read(self._places[name], size), "<u8") for name in ("hashes_1", "hashes_2")]
        return np.stack(found).reshape(2, self.ctas, self.threads)

    def grouped(self, limit: int = 0) -> Grouped:
        """The CTAs by history. `limit`: only the first CTAs (0: all)."""
        return grouped(self.hashes()[:, : limit or self.ctas])

    def window(self) -> tuple[int, int]:
        """The address of the first byte of a CTA's shared memory, and how many there are."""
        window, nbytes = np.frombuffer(self.backend.read(self.address + 8 * text.WINDOW, 2 * WORD_BYTES), "<u4").tolist()
        return window, nbytes

    def history(self, cta: int) -> History:
        """What a CTA did."""
        window, nbytes = self.window()
        size = self.warps * self.lines * LINE_BYTES
        log = np.frombuffer(self.backend.read(self._places["log"] + cta * size, size), "<u4")
        return History(log.reshape(self.warps, self.lines, LANES), self.threads, window, nbytes)


@dataclass(frozen=True)
class Group:
    """CTAs with one history. `name`: its 128 bits."""

    members: tuple[int, ...]
    name: bytes


@dataclass(frozen=True)
class Grouped:
    """The CTAs of a launch: the distinct histories, and the CTAs whose threads have not all exited."""

    groups: tuple[Group, ...]
    unended: tuple[int, ...]

    @property
    def ctas(self) -> int:
        """How many CTAs these are."""
        return sum(len(group.members) for group in self.groups) + len(self.unended)

    def by_cta(self) -> npt.NDArray[np.int32]:
        """The number of each CTA's group, -1 for a CTA that has not ended."""
        found = np.full(self.ctas, _NO_GROUP, np.int32)
        for number, group in enumerate(self.groups):
            found[list(group.members)] = number
        return found

    @classmethod
    def from_ctas(cls, by_cta: npt.NDArray[np.int32], names: Sequence[bytes]) -> Grouped:
        """The inverse of `by_cta`. ValueError if a group has no CTA, or no name."""
        order = np.argsort(by_cta, kind="stable")
        bounds = np.searchsorted(by_cta[order], np.arange(len(names) + 1))
        if by_cta.size and not _NO_GROUP <= by_cta.min() <= by_cta.max() < len(names):
            raise ValueError("a CTA is in no group")
        members = [tuple(order[begin:end].tolist()) for begin, end in itertools.pairwise(bounds)]
        if not all(members):
            raise ValueError("a group has no CTA")
        return cls(tuple(map(Group, members, names)), tuple(order[: bounds[0]].tolist()))


def grouped(hashes: npt.NDArray[np.uint64]) -> Grouped:
    """The CTAs by the hashes of their threads: 2 x CTAs x threads."""
    finished = (hashes != 0).all(axis=(0, 2))
    whole = finished.nonzero()[0]
    known: dict[bytes, list[int]] = {}
    for cta, name in zip(whole.tolist(), _names(hashes[:, whole]), strict=True):
        known.setdefault(name, []).append(cta)
    return Grouped(tuple(Group(tuple(members), name) for name, members in known.items()), tuple((~finished).nonzero()[0].tolist()))


def _names(hashes: npt.NDArray[np.uint64]) -> Iterator[bytes]:
    """128 bits for each CTA: sums over its threads of their hashes, each mixed with the thread's number."""
    threads = np.arange(1, hashes.shape[2] + 1, dtype=np.uint64)
    sums = []
    for one, other, factor in zip(hashes, hashes[::-1], _MIX, strict=True):
        sums.append(_avalanche(_avalanche(one + threads * np.uint64(factor)) ^ other).sum(axis=1, dtype=np.uint64))
    return (pair.tobytes() for pair in np.stack(sums, axis=1))


def _avalanche(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A bijection in which every bit depends on every bit (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)))
