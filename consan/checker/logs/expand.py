"""Computes full logs from compact ones: runs the expansion of a kernel (instrument/record/text/expansion.py) for some CTAs.

Each CTA is one of a launch on the virtual machine, with the numbers that it had. A value that cannot be computed is reported, and never
guessed.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.checker.logs.computing import Computing
from consan.checker.logs.grouping import Dim3
from consan.checker.logs.launch import Launch, NotExpanded
from consan.checker.logs.memory import LogMemory
from consan.checker.logs.pieces import LogForm, NoRoom
from consan.checker.logs.prefetch import later, settle
from consan.checker.logs.program import LogProgram, program_of
from consan.dataclass import dataclass
from consan.instrument.collection import no_collection
from consan.instrument.ptx import parse
from consan.instrument.record import Expansion, Recorded
from consan.instrument.record.analyses.computed import PLACE
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.record.text import expansion
from consan.instrument.record.text.templates import LINE_BYTES
from consan.instrument.record.text.text import LAUNCH, LAUNCH_BYTES, PLACES
from consan.instrument.rewriting.emit import Unsupported

_MOST_BYTES = 1 << 36  # of the logs: memory of the virtual machine costs nothing until it is touched
_SECONDS = 300.0
_ALL = 1 << 48  # bytes, of a compact log that had room
_SIZES = (4, 16, 64)
_MOST_AHEAD = 4  # kernels of a module
_LOCK = threading.Lock()
ENDED: list[tuple[Any, Any]] = []  # machine and module of texts that nobody has any more


@dataclass
class VirtualExpander:
    """Expands the logs of one kernel. `machine`: makes a virtual machine."""

    recorded: Recorded
    entry: int
    machine: Callable[[], Any]

    @no_collection()
    def expand(self, launch: Launch, ctas: Sequence[int]) -> npt.NDArray[np.uint32]:
        """The full logs of the warps of some CTAs."""
        given = _given(launch, ctas)
        full = bool(given[expansion.LOGS][:, -1].any())
        if full and len(ctas) > 1:
            raise NotExpanded
        ready = self.recorded.expansion
        assert ready is not None
        settle(ready.ahead)
        if not full and (found := self.computed(ready, launch, given)) is not None:
            return found
        try:
            run = self._run(ready, ready.text, launch, given if full else _given(launch, _padded(ctas)), full=full)
        except Unsupported:
            raise NotExpanded from None
        with _LOCK, run as (whole, _):
            return whole.logs(range(len(ctas)))

    def computed(self, ready: Expansion, launch: Launch, given: dict[int, npt.NDArray[Any]]) -> npt.NDArray[np.uint32] | None:
        """The same by the compiled machine; None: it does not execute the text."""
        try:
            program = _program(ready, self.recorded.entries[self.entry])
            return None if program is None else _computing(ready, program, launch, given).logs()
        except Unsupported:
            return None

    @no_collection()
    def clearing(
        self, launch: Launch, one: npt.NDArray[np.void], *, both: bool
    ) -> Callable[[Sequence[int]], npt.NDArray[np.uint64]] | None:
        """A function that replays the clusters of some CTAs as their logs are computed, and gives what `Computing.clear` does. Threads may
        call it. None: the compiled machine does not execute the text. `one`: the input of a replay, without a log."""
        ready = self.recorded.expansion
        assert ready is not None
        settle(ready.ahead)
        try:
            program = _program(ready, self.recorded.entries[self.entry])
        except Unsupported:
            return None
        if program is None or not program.whole:
            return None
        launch.constants()  # read once, here

        def clear(ctas: Sequence[int]) -> npt.NDArray[np.uint64]:
            none = np.zeros(len(ctas) // int(one["ctas"]), np.uint64)
            try:
                given = _given(launch, ctas)
            except NotExpanded:
                return none
            return none if given[expansion.LOGS][:, -1].any() else _computing(ready, program, launch, given).clear(one, both=both)

        return clear

    @contextlib.contextmanager
    def _run(
        self, ready: Expansion, text: Recorded, launch: Launch, given: dict[int, npt.NDArray[Any]], *, full: bool
    ) -> Iterator[tuple[Launch, Callable[[int], bytes]]]:
        """Run one of the texts for the host. Inside the block its log, and what it was given, can be read. `full`: a log was too short."""
        backend, handle = _loaded(ready, self.machine)
        ctas, memory, blocks = len(given[expansion.CTAS]), LogMemory(backend), text.blocks
        try:
            whole = Launch(memory, (ctas, 1, 1), launch.block, LogForm(blocks.words, mode=Mode.ALONE, loops=blocks.loops), _MOST_BYTES)
        except NoRoom:
            raise NotExpanded from None
        places = {field: backend.alloc_separate(array.nbytes) for field, array in given.items()}
        try:
            for where, array in given.items():
                backend.write(places[where], array)
            usable = max(0, launch.most_retained - launch.form.words) * LINE_BYTES if full else _ALL
            _write(backend, handle, whole, places | {expansion.LINES: given[expansion.LOGS].shape[1], expansion.USABLE: usable})
            entry = self.recorded.entries[self.entry]
            zeros = [bytes(each.nbytes) for each in handle.entry(entry).params]
            stats = backend.launch(handle, entry, whole.grid, whole.block, zeros, timeout=_SECONDS)
            if not stats.completed or stats.faults:
                raise NotExpanded
            yield whole, lambda field: backend.read(places[field], given[field].nbytes)
        finally:
            for place in places.values():
                backend.free(place)
            whole.free()


def _computing(ready: Expansion, program: LogProgram, launch: Launch, given: dict[int, npt.NDArray[Any]]) -> Computing:
    arrays = {field: np.ascontiguousarray(array) for field, array in given.items()}
    return Computing(program, arrays, launch.block, ready.text.blocks.words)


def begin(recorded: Recorded, machine: Callable[[], Any]) -> None:
    """Write, load and decode the texts for the host beside what the caller does next. `machine`: makes a virtual machine."""
    if recorded.expansion is not None and not recorded.expansion.ahead:
        recorded.expansion.ahead.append(later(functools.partial(_decode_expansion, recorded, recorded.expansion, machine)))


@no_collection()
def _decode_expansion(recorded: Recorded, ready: Expansion, machine: Callable[[], Any]) -> None:
    for kernel in recorded.kernels[:_MOST_AHEAD]:
        if kernel.silent or ((program := _program(ready, kernel.name)) is not None and program.whole):
            continue
        backend, handle = _loaded(ready, machine)
        if (block := handle.entry(kernel.name).likely_block) is not None:
            backend.decode(handle, kernel.name, block, _SIZES[0])


@no_collection()
def _program(ready: Expansion, name: str) -> LogProgram | None:
    """The text of a kernel for the compiled machine; None: its threads call functions, which keep their places in memory."""
    if name not in ready.programs:
        kernel = next(each for each in parse(ready.text.ptx).functions if each.name == name)
        ready.programs[name] = None if ready.text.blocks.calls else program_of(kernel)
    found: LogProgram | None = ready.programs[name]
    return found


@no_collection()
def _loaded(ready: Expansion, machine: Callable[[], Any]) -> tuple[Any, Any]:
    """A text for the host on the virtual machine. It is unloaded with the text."""
    _unload_ended()
    if not ready.loaded:
        backend = _host(machine)
        handle = backend.load(ready.text.ptx)
        ready.loaded.append((backend, handle))
        weakref.finalize(ready, ENDED.append, (backend, handle))  # not unloaded there: the collector may interrupt a call of the machine
    backend, handle = ready.loaded[0]
    return backend, handle


def _unload_ended() -> None:
    while True:
        try:
            backend, handle = ENDED.pop()
        except IndexError:  # also where another thread has taken the last one
            return
        backend.unload(handle)


@functools.cache
def _host(machine: Callable[[], Any]) -> Any:
    """The virtual machine of all texts. Each machine reserves 256 GiB of address space, so a process can have a few hundred."""
    return machine()


def _padded(ctas: Sequence[int]) -> list[int]:
    """A few CTAs, with the last one again and again up to 4 or 16: the virtual machine decodes the text for each number of CTAs."""
    room = next((size for size in _SIZES if len(ctas) <= size), len(ctas))
    return [*ctas, *[ctas[-1]] * (room - len(ctas))]


def _given(launch: Launch, ctas: Sequence[int]) -> dict[int, npt.NDArray[Any]]:
    """The input of both texts. The compact logs come first."""
    return {
        expansion.LOGS: launch.stored(ctas),
        expansion.CTAS: np.stack([_place(cta, launch.grid, launch.cluster) for cta in ctas]),
        expansion.LEAVERS: launch.left(ctas),
        expansion.CONSTANTS: np.frombuffer(launch.constants(), np.uint8),
    }


def _write(backend: Any, handle: Any, whole: Launch, fields: dict[int, int]) -> None:
    """Tell the text where everything is."""
    given = np.zeros(expansion.GIVEN_BYTES // 8, "<u8")
    for where, number in fields.items():
        given[where // 8] = number
    for name, data in (
        (expansion.GIVEN, given.tobytes()),
        (PLACES, whole.places()),
        (LAUNCH, whole.address.to_bytes(LAUNCH_BYTES, "little")),
    ):
        backend.write(backend.symbol(handle, name)[0], data)


def _place(cta: int, grid: Dim3, cluster: Dim3) -> npt.NDArray[np.uint32]:
    """The special registers of a CTA, in the order of PLACE."""
    x, y, _ = grid
    ctaid = cta % x, cta // x % y, cta // (x * y)
    within = tuple(number % size for number, size in zip(ctaid, cluster, strict=True))
    clusters = tuple(number // size for number, size in zip(grid, cluster, strict=True))
    clusterid = tuple(number // size for number, size in zip(ctaid, cluster, strict=True))
    rank = within[0] + cluster[0] * (within[1] + cluster[1] * within[2])
    found = np.array([*ctaid, *grid, *within, *cluster, *clusterid, *clusters, rank, math.prod(cluster)], "<u4")
    assert len(found) == len(PLACE)
    return found
