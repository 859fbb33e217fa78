"""One recorded launch: the memory that its threads write to, and what the host reads of it afterwards.

Each warp has a log of `log_bytes`, in lines of one word for each lane. The last line of a log is zero unless the log ran out of room: then
the thread has gone on at the line `most_retained`, again and again. The checker finds in the last line how many lines nobody has written
over. Each thread stores its two hashes when it exits. A CTA whose threads have all exited has a history; CTAs with equal histories did the
same, and one of them is kept. The CTAs of a cluster have one history: that of all of them, by rank.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.replay import History
from consan.checker.logs.grouping import Dim3, Grouped, clusters_of, grouped
from consan.checker.logs.log_lines import LEAST_LINES, USUAL_ROOM, LogRoom, LogSlots
from consan.checker.logs.memory import SMALLER, LogMemory
from consan.checker.logs.names import FEWEST_ON_DEVICE, MIX, Sums, sums_of, sums_on_device
from consan.checker.logs.pieces import LogForm, LogPieces, NoRoom, one_line
from consan.checker.logs.receipts import WORK_BYTES
from consan.checker.logs.recorded_launch import MemoryBefore
from consan.dataclass import dataclass
from consan.instrument.effects import LANES
from consan.instrument.record import Compact
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.record.recorded import DecidingBytes
from consan.instrument.record.text import text
from consan.instrument.record.text.templates import END, LEFT, LINE_BYTES, STOP, WORD_BYTES

_MOST_BEFORE = 1 << 26  # bytes of memory that is copied before a launch
_SHORT = 1 << 13  # bytes of a log: to read more of it costs less than to read again
Clear = Callable[[Sequence[int]], npt.NDArray[np.uint64]]
_PLACES = {"log": text.ARENA, "hashes": text.HASHES, "states": text.STATES, "ends": text.ENDS, "clocks": text.CLOCKS}


class NotExpanded(Exception):  # noqa: N818
    """The full log of a CTA cannot be computed from its compact one."""


class Expander(Protocol):
    """Computes full logs (expand.py)."""

    def expand(self, launch: Launch, ctas: Sequence[int]) -> npt.NDArray[np.uint32]:
        """The full logs of the warps of some CTAs. Raises `NotExpanded` if that of one cannot be computed."""

    def clearing(self, launch: Launch, one: npt.NDArray[np.void], *, both: bool) -> Clear | None:
        """A function that replays clusters as their logs are computed; None: it needs the logs."""


@dataclass
class Launch:
    """The memory of one launch."""

    memory: LogMemory
    grid: Dim3
    block: Dim3
    form: LogForm
    most_bytes: int
    cluster: Dim3 = (1, 1, 1)
    room: LogRoom = USUAL_ROOM
    expander: Expander | None = None  # computes full logs from compact ones
    lines: int = field(init=False)
    pieces: LogPieces = field(init=False)
    symbol_addresses: Sequence[int] = ()  # the addresses of the module's variables
    background: bool = False  # the program goes on beside it: its stream clears the memory, which is read apart from all streams
    hangs: bool = False  # it runs on, and the memory is read while it does
    stopped: bool = False  # the host has asked its threads to leave
    most_read: int = 0  # lines of a warp's log that are read; the rest is left out, as if there had been no room. 0: all are read

    def __post_init__(self) -> None:
        self.pieces = LogPieces(self.memory)
        if self.silent:
            self.lines = 0
            return
        if self.form.mode is Mode.SYNCED and self.backend.simulates:  # nobody keeps the memory of a GPU
            self.pieces.before = self.backend.contents(_MOST_BEFORE)
        bytes_of_line = max(1, self.slots.count * self.warps) * LINE_BYTES  # the backend refuses a launch without CTAs
        self.lines, least = self.form.needs(bytes_of_line, self.room, zeros=self.backend.allocates_zeros).lines(self.most_bytes)
        if self.lines < least:
            raise NoRoom(f"{self.ctas:,} CTAs of {self.threads} threads do not fit the trace memory ({SMALLER})")
        sizes = self.form.sizes(self.ctas * self.threads) | {"work": WORK_BYTES * self.background}
        self.pieces.take(self.log_bytes, sizes, dense=self.compact is None, clear=not self.background)

    @property
    def silent(self) -> bool:
        """Whether its kernel records nothing."""
        return self.form.silent

    @property
    def compact(self) -> Compact | None:
        """The part that its log has, if that is not all."""
        return self.form.compact

    @property
    def decided_by(self) -> tuple[DecidingBytes, ...] | None:
        """The bytes of its parameters that decide what it does, if nothing else does."""
        return None if self.compact is None or self.compact.hashes else self.compact.decides

    @property
    def address(self) -> int:
        """The address of its results; 0: it has none."""
        return self.pieces.get("results")

    @property
    def switch(self) -> int:
        """The address of the word that stops it (instrument/record/leaving.py)."""
        return self.symbol_addresses[0] + text.SWITCH

    def used_lines(self) -> int:
        """The most lines that a thread has stored; 0: not known."""
        if self.silent or self.compact is None or not self.compact.counts:
            return 0
        return int(self._counts(range(self.ctas), self.compact).max(initial=0))

    @property
    def log_bytes(self) -> int:
        """The bytes of its logs."""
        return self.slots.count * self.warps * self.lines * LINE_BYTES

    @property
    def backend(self) -> Any:
        """The device."""
        return self.memory.backend

    @property
    def memory_before(self) -> Sequence[MemoryBefore]:
        """The bytes in memory before the launch, by address, where they are known."""
        return self.pieces.before

    def texture_memory(self, handle: int) -> Any:
        """The bytes of a texture object that have addresses; None: they are not known."""
        return self.backend.texture_memory(handle)

    @property
    def most_retained(self) -> int:
        """The lines of a log that nobody writes over if it runs out of room."""
        return max(0, self.lines - self.form.words - 1)

    @property
    def result_bytes(self) -> int:
        """The bytes that the first thread stores."""
        return self.form.result_bytes

    @property
    def ctas(self) -> int:
        """CTAs that start."""
        whole = math.prod(self.grid)
        return min(whole, self.room.first or whole)

    @functools.cached_property
    def clusters(self) -> npt.NDArray[np.int64]:
        """The CTAs of each cluster. Where not all start, each CTA is a cluster, in the order of the grid."""
        return clusters_of(self.grid, self.cluster) if not self.room.first else np.arange(self.ctas)[:, None]

    @functools.cached_property
    def slots(self) -> LogSlots:
        """The places of the logs of its CTAs."""
        return LogSlots(self.ctas, self.room.some, lambda: self.clusters)

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return math.prod(self.block)

    @property
    def warps(self) -> int:
        """Warps of a CTA."""
        return -(-self.threads // LANES)

    def stop(self, *, leave: bool = True) -> None:
        """Make its threads leave, or those of later launches stay. Those of a kernel that records nothing do not stay."""
        self.stopped |= leave
        if not self.silent:
            self.backend.poke(self.switch, leave.to_bytes(WORD_BYTES, "little"))

    def _read(self, address: int, nbytes: int) -> bytes:
        found: bytes = (self.backend.peek if self.hangs or self.background else self.backend.read)(address, nbytes)
        return found

    def free(self) -> None:
        """Free the memory."""
        self.pieces.free()

    def places(self) -> bytes:
        """The addresses that the kernel needs (instrument/record/text/text.py)."""
        wide, narrow = np.zeros(text.LINES // 8, "<u8"), np.zeros((text.PLACES_BYTES - text.LINES) // 4, "<u4")
        for name, place in _PLACES.items():
            wide[place // 8] = self.pieces.get(name)
        wide[text.START // 8] = MIX[0]
        narrow[:2] = self.lines, self.most_retained * LINE_BYTES
        for place, number in self.slots.given().items():
            narrow[(place - text.LINES) // 4] = number
        return wide.tobytes() + narrow.tobytes()

    def variables(self) -> Iterator[tuple[int, int, bytes]]:
        """The values of the module's variables for the launch: each one's number, address and bytes. No stop is requested yet."""
        first = self.address.to_bytes(text.LAUNCH_BYTES, "little")
        yield 0, self.symbol_addresses[0], first
        yield len(first), self.symbol_addresses[1], self.places()

    @property
    def receipt_of(self) -> tuple[int, int, int, tuple[int, int]]:
        """The inputs of a receipt: the hashes and their threads, memory to work in, the results and their bytes."""
        hashed = not self._is_uniform
        return self.pieces.get("hashes"), self.ctas * self.threads * hashed, self.pieces.get("work"), (self.address, self.result_bytes)

    # -- after the launch --------------------------------------------------------------------------------------------------

    def _evidence(self) -> tuple[bytes, Callable[[], Sums]]:
        """The evidence of the CTAs' histories: bytes, and a function that makes their sums."""
        if self._is_uniform:
            return b"", lambda: Sums(np.zeros((2, self.ctas), np.uint64), np.ones(self.ctas, np.bool_))
        place, shape, hashed = self.pieces.get("hashes"), (self.ctas, self.threads, 2), self.compact is None or self.compact.hashes
        if hashed and self.ctas * self.threads >= FEWEST_ON_DEVICE and not (self.hangs or self.backend.allocates_zeros):
            sums = sums_on_device(self.memory, place, self.ctas, self.threads, background=self.background)
            return sums.values.tobytes() + sums.ended.tobytes(), lambda: sums
        data = self._read(place, self.ctas * self.threads * text.HASH_BYTES)
        found = np.frombuffer(data, "<u8").reshape(shape)
        if not hashed:  # a thread stores something only if it leaves
            found = np.where(found[..., 1:] == 0, np.uint64(not self.hangs), np.uint64(0)).repeat(2, axis=2)
        return data, lambda: sums_of(found.transpose(2, 0, 1))

    @property
    def _is_uniform(self) -> bool:
        """Whether all CTAs did the same, because the text allows nothing else, and all threads have ended, because the launch has."""
        return self.silent or (self.compact is not None and not (self.compact.hashes or self.stopped))

    @functools.cached_property
    def _results(self) -> bytes:
        """The results that the first thread has stored. It stores them first, and they are read after the launch only."""
        return b"" if self.silent else self._read(self.address, self.result_bytes)

    def received(self, results: bytes) -> None:
        """Take the results out of a receipt."""
        self.__dict__["_results"] = results

    def constants(self) -> bytes:
        """The constants that the first thread of a launch with compact logs has stored."""
        return self._results[text.RESULT_BYTES :]

    def shared_part(self) -> bytes:
        """The part of a history's name that launches with equal logs share, beside the hashes."""
        if self.compact is None:
            return b""
        given = self.constants()
        retained = [given[place : place + nbytes] for place, (nbytes, hashed) in self.compact.constants.items() if hashed]
        return b"".join(retained) + (repr((self.grid, self.cluster)).encode() if self.compact.of_grid else b"")

    def has(self, cluster: int) -> bool:
        """Whether the cluster's history can be read."""
        return bool(self.slots.there[cluster])

    def grouped(self, limit: int = 0) -> Grouped:
        """The clusters by history. `limit`: only as many as have so many CTAs (0: all). Most launches do what one before has done."""
        (data, sums), shared = self._evidence(), self.shared_part()
        clusters = self.clusters[: -(-limit // self.clusters.shape[1]) or None]
        shape = self.grid, self.block, self.cluster, self._is_uniform, self.hangs, limit, shared
        found: Grouped = self.memory.groups.of(shape, data, lambda: grouped(sums(), clusters, shared))
        return found

    def window(self) -> tuple[int, int]:
        """The address of the first byte of a CTA's shared memory, and how many there are."""
        if self.silent:
            return 0, 0
        window, nbytes = np.frombuffer(self._results, "<u4", 2, text.WINDOW).tolist()
        return window, nbytes

    def histories(self, clusters: Sequence[int]) -> list[History]:
        """The histories of some clusters, without the lines that nothing was written to: not all of a log is read."""
        members, (window, nbytes) = self.clusters[list(clusters)], self.window()
        if self.silent:
            logs = [one_line(members.shape[1] * self.warps, END)] * len(clusters)
        elif self.expander is not None:
            logs = self._expanded(self.expander, members)
        else:
            logs = [self.logs(ctas) for ctas in members.tolist()]
        return [History(log, self.threads, window, nbytes, members.shape[1]) for log in logs]

    def _expanded(self, expander: Expander, members: npt.NDArray[np.int64]) -> list[npt.NDArray[np.uint32]]:
        """The full logs of some clusters: of all at once, or of each by itself if some cannot be computed."""
        try:
            return list(expander.expand(self, members.ravel().tolist()).reshape(len(members), members.shape[1] * self.warps, -1, LANES))
        except NotExpanded:
            if len(members) > 1:
                return [log for each in members for log in self._expanded(expander, each[None])]
            return [one_line(members.size * self.warps, LEFT - 1)]  # no block has this number

    def logs(self, ctas: Sequence[int]) -> npt.NDArray[np.uint32]:
        """The logs of the warps of some CTAs."""
        if self._is_short(0):
            data = self._of_ctas("log", self.slots.of(ctas), self.warps * self.lines * LINE_BYTES)
            whole = np.frombuffer(data, "<u4").reshape(-1, self.lines, LANES)
            log = np.zeros((len(whole), self.lines + self.form.words + 3, LANES), "<u4")
            log[:, : self.lines - 1], log[:, -1] = whole[:, :-1], np.where(whole[:, -1], self.most_retained, 0)
            return log
        logs = [self._used_lines(slot * self.warps + warp) for slot in self.slots.of(ctas).tolist() for warp in range(self.warps)]
        log = np.zeros((len(logs), max(map(len, logs)) + self.form.words + 3, LANES), "<u4")
        for whole, used in zip(log, logs, strict=True):
            retained = self.most_retained if len(used) > self.lines or not self.most_read else len(used) - 1
            whole[: len(used) - 1], whole[-1] = used[:-1], np.where(used[-1], retained, 0)
        return log

    # -- a compact log -----------------------------------------------------------------------------------------------------

    def stored(self, ctas: Sequence[int]) -> npt.NDArray[np.uint32]:
        """The compact logs of some CTAs: warps x lines x lanes. The last line of each is zero unless the log may have run out of room.

        Raises `NotExpanded` if a thread claims to have stored more than there is room for: another process may have written the log.
        """
        assert self.compact is not None
        counts = self._counts(ctas, self.compact)
        most = int(counts.max(initial=0))
        if most > self.lines:
            raise NotExpanded
        used = counts.repeat(self.warps)
        if not self.compact.stores:
            return np.zeros((len(used), most + 1, LANES), "<u4")
        whole = most < self.lines and self._is_short(most)
        found = np.empty((len(used), self.lines if whole else most + 1, LANES), "<u4")
        slots = self.slots.of(ctas)
        for first, slot, some in self._runs(slots) if whole else ():
            self._read_into(found[first * self.warps : (first + some) * self.warps], slot * self.warps)
        for number, (log, count) in enumerate(zip(found, used.tolist(), strict=True)):
            if not whole:
                self._read_into(log[:count], int(slots[number // self.warps]) * self.warps + number % self.warps)
            log[count:] = 0
        if self.compact.counts and self.form.loops:
            found[used >= self.lines - self.form.words - 1, -1] = 1  # they ran out of room
        return found

    def _read_into(self, logs: npt.NDArray[np.uint32], warp: int) -> None:
        """The first lines of logs from that of a warp on, which lie as they do there."""
        self.backend.read_into(logs, self.pieces.get("log") + warp * self.lines * LINE_BYTES, running=self.hangs or self.background)

    def _is_short(self, used: int) -> bool:
        """Whether logs are read with all of their lines: each read costs more than these, or most of them are used."""
        return self.lines * LINE_BYTES <= _SHORT or 2 * used >= self.lines

    @staticmethod
    def _runs(ctas: Sequence[int] | npt.NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
        """CTAs that follow each other: the place of the first of them, it, and how many there are."""
        places = np.flatnonzero(np.diff(np.asarray(ctas, np.int64), prepend=-2) != 1).tolist()
        for place, end in itertools.pairwise((*places, len(ctas))):
            yield place, int(ctas[place]), end - place

    def _counts(self, ctas: Sequence[int], compact: Compact) -> npt.NDArray[np.uint32]:
        """The most lines that a thread of each CTA may have used."""
        if not compact.counts:
            return np.full(len(ctas), compact.most, "<u4")
        ends = np.frombuffer(self._of_threads("ends", ctas, text.END_BYTES), "<u4").reshape(len(ctas), self.threads)
        return np.asarray(ends.max(axis=1, initial=0) // LINE_BYTES)

    def left(self, ctas: Sequence[int]) -> npt.NDArray[np.uint32]:
        """The places where the threads of CTAs left, as the expansion wants it (instrument/record/text/expansion.py). Raises
        `NotExpanded`."""
        hashes = np.frombuffer(self._of_threads("hashes", ctas, text.HASH_BYTES), "<u4").reshape(-1, 4)
        mark, places = hashes[:, 2], hashes[:, 3]
        ended = np.asarray(hashes[:, :2].any(axis=1))
        if self.compact is not None and not self.compact.hashes:
            ended = (places == 0) & (not self.hangs)
        if not (ended | (places != 0) | (mark != 0)).all():
            raise NotExpanded
        stays = ~ended & (mark == STOP)
        found = np.stack([np.where(stays, 0, places), mark, np.where(stays, places + 1, 0), np.zeros_like(mark)], axis=1)
        return np.where(ended[:, None], 0, found).astype("<u4")

    def _of_threads(self, name: str, ctas: Sequence[int], nbytes: int) -> bytes:
        """The words that each thread of some CTAs has stored."""
        return self._of_ctas(name, ctas, self.threads * nbytes)

    def _of_ctas(self, name: str, ctas: Sequence[int] | npt.NDArray[np.int64], size: int) -> bytes:
        """The memory of some CTAs; those that follow each other are read at once."""
        return b"".join(self._read(self.pieces.get(name) + cta * size, some * size) for _, cta, some in self._runs(ctas))

    def _used_lines(self, warp: int) -> npt.NDArray[np.uint32]:
        """The lines of a warp's log up to where no block can begin any more, and its last line."""
        start, found, step = self.pieces.get("log") + warp * self.lines * LINE_BYTES, 0, max(LEAST_LINES, 2 * self.form.words)
        parts: list[npt.NDArray[np.uint32]] = []
        most = min(self.lines, self.most_read or self.lines)
        while found < most:
            count = min(step, most - found)
            part = np.frombuffer(self._read(start + found * LINE_BYTES, count * LINE_BYTES), "<u4").reshape(count, LANES)
            parts.append(part)
            found, step = found + count, 2 * step
            if not part[-self.form.words - 1 :].any():
                break
        else:
            if most < self.lines:
                return np.concatenate([*parts, np.ones((1, LANES), "<u4")])
        parts.append(np.frombuffer(self._read(start + (self.lines - 1) * LINE_BYTES, LINE_BYTES), "<u4").reshape(1, LANES))
        return np.concatenate(parts)
