"""Threads of a stopped launch that go round loops which only read memory, and whether all threads of the launch wait (R-M7).

The checker says of each thread whether it has exited, waits at a barrier that nobody completes, or has left a loop behind a strong read
(source/cluster/waiting.hpp). Whether only memory can end such a loop is in the text (backends/cpu/decode/patience.py). The host reads
whether the memory still has the value (session/executing/hangs.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.layouts import StoppedKind
from consan.checker.compiled.replay import History
from consan.checker.judging.collected import Collected, StoppedThread
from consan.checker.judging.grid import GridChecked
from consan.dataclass import dataclass

_SHARED = 1 << 63
_OFFSET = 0xFFFFFFFF


@dataclass(frozen=True)
class Polling:
    """Lanes of a warp that have read the same from the same bytes, and where they left the loop."""

    position: StoppedThread  # its place is a line of the PTX
    site: int  # of the read
    address: int  # of shared memory: an offset
    nbytes: int
    value: int
    shared: bool
    latest: bool  # of shared memory: no strong access has written the bytes after the read


@dataclass(frozen=True)
class StoppedThreads:
    """How the threads of a stopped launch stood. `waits`: none of them is known to go on. `polls`: those of them that poll."""

    positions: tuple[StoppedThread, ...] = ()
    waits: bool = False
    polls: tuple[Polling, ...] = ()


def stopped_threads(done: Sequence[GridChecked], collected: Collected, history: History) -> StoppedThreads:
    """From the replays of a launch in both orders. `history`: of any of its clusters."""
    all_stops = [each.stopped for each in done if each.stopped is not None]
    if not all_stops:
        return StoppedThreads()
    first = all_stops[0]
    kinds = [each.stops["kind"] for each in all_stops]
    free = any((each == StoppedKind.FREE).any() for each in kinds) or any(each.contradictions for each in done)
    waits = bool(kinds[0].any()) and not free
    places = tuple(position for cluster, own in enumerate(first.positions) for position in collected.positions(cluster, own, history))
    polls = _polls(first.positions, first.stops, collected, history) if waits else ()
    return StoppedThreads(places, waits, tuple(polls))


def _polls(positions: npt.NDArray[np.uint32], stops: npt.NDArray[np.void], collected: Collected, history: History) -> Iterable[Polling]:
    """The polls of each warp: lanes that read the same are one."""
    for cluster, own in enumerate(stops):
        polling = own["kind"] == StoppedKind.POLLS
        for one in np.unique(own[polling]):
            for position in collected.positions(cluster, np.where(polling & (own == one), positions[cluster], 0), history):
                shared, address = bool(int(one["address"]) & _SHARED), int(one["address"])
                yield Polling(
                    position, int(one["site"]), (address & _OFFSET) - history.window if shared else address,
                    int(one["bytes"]), int(one["high"]) << 64 | int(one["low"]), shared, bool(one["latest"]),
                )  # fmt: skip
