"""Calls the compiled checker for one CTA, or for those of one cluster. The structures are those of source/types.hpp."""

from __future__ import annotations

import ctypes
import enum
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from consan.checker.build import library
from consan.instrument.record.templates import LANES

MOST_FINDINGS = 4096  # of one CTA or cluster
_WARPGROUP, _CHUNK = 128, 16
_FIELDS = (
    "kind hazard reason flags site other_site thread other_thread offset bytes number came others exited how operation own_operation "
    "group commits retired address_low address_high place phase expected state_low state_high count low high unit threads "
    "lanes arrived"
)
RECORD = np.dtype([(name, "<u4") for name in _FIELDS.split()])


Tables = tuple[npt.NDArray[np.void], npt.NDArray[np.void]]


class Status(enum.IntEnum):
    """How a replay ended."""

    OK = 0
    STUCK = 1
    CORRUPT = 2
    FULL = 3
    TOO_MANY = 4
    UNDEFINED = 5  # up to a divergent .aligned instruction
    APART = 6  # source/seals.hpp
    HALTED = 7  # the host has ended it


class Level(enum.IntEnum):
    """How much is taken for an edge (source/scopes.hpp)."""

    EXACT = 0
    WAIT_SCOPES = 1  # waits of any scope
    SCOPES = 2  # releases of any scope too


_NUMBERS = (
    "block_count threads window shared_bytes descending capacity ctas cta_threads cta_bytes level isa open_block open_events closed every"
)


class UnitInput(ctypes.Structure):
    """`Input` of types.hpp."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("blocks", "events", "log", "records")),
        ("lines", ctypes.c_uint64),
        *((name, ctypes.c_uint32) for name in _NUMBERS.split()),
        ("stands", ctypes.c_void_p),
        ("halt", ctypes.c_void_p),
    )

    @classmethod
    def of(
        cls,
        tables: Tables,
        history: History,
        records: npt.NDArray[np.void],
        *,
        descending: bool,
        level: Level = Level.EXACT,
        isa: int = 0,
        halt: ctypes.c_uint32 | None = None,
    ) -> UnitInput:
        """The input for one history. The arrays must outlive it; the log must be contiguous. `halt`: ends the replay once it is not 0."""
        blocks, events = tables
        given = cls(blocks.ctypes.data, events.ctypes.data, history.log.ctypes.data, records.ctypes.data, history.log.shape[1])
        given.block_count, given.threads, given.window = len(blocks) - 1, history.threads, history.window
        given.shared_bytes, given.descending, given.capacity = history.shared_bytes, int(descending), len(records)
        given.ctas, given.cta_threads, given.cta_bytes, given.level = history.ctas, history.cta_threads, history.cta_bytes, level
        given.isa, given.halt = int(isa), ctypes.addressof(halt) if halt is not None else None
        return given


class _Output(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("status", "records", "stuck_lane", "by_address", "overtaken")),
        ("lane_events", ctypes.c_uint64),
        *((name, ctypes.c_uint32) for name in ("proven", "repeats")),
    )


@dataclass(frozen=True)
class History:
    """The history of one CTA, or of the CTAs of one cluster: the logs, and the window of shared memory that their addresses refer to."""

    log: npt.NDArray[np.uint32]  # warps of all CTAs x lines x lanes
    threads: int  # of a CTA
    window: int  # the address of the first byte of shared memory
    shared_bytes: int  # of a CTA
    ctas: int = 1

    def without_log(self) -> History:
        """The same without its log."""
        return replace(self, log=np.zeros((0, 0, LANES), np.uint32))

    @property
    def cta_threads(self) -> int:
        """Thread numbers of each CTA; in a cluster a multiple of a warpgroup."""
        return self.threads if self.ctas == 1 else -(-self.threads // _WARPGROUP) * _WARPGROUP

    @property
    def cta_bytes(self) -> int:
        """Offsets of each CTA."""
        return max(_CHUNK, -(-self.shared_bytes // _CHUNK) * _CHUNK)


MOST_SHARED = 1 << 20  # bytes of a CTA's shared memory: more than any device has; a program may write to what its launches leave


@dataclass(frozen=True)
class Replayed:
    """The findings of one replay; `events`: lane events."""

    status: Status
    records: npt.NDArray[np.void]
    events: int
    by_address: bool  # words that are not hashed decide the findings: a Decides of types.hpp
    overtaken: bool  # a wait passed for a phase that was over, though another one had ended since: at another time it would not
    proven: bool = False  # a deadlock
    stands: npt.NDArray[np.uint32] | None = None  # of a launch that was stopped, by thread: a line of the PTX, a site, or 0
    repeats: int = 0  # periods of loops that were counted and not replayed (source/repeats.hpp)


def replay(
    tables: Tables,
    history: History,
    *,
    descending: bool,
    level: Level = Level.EXACT,
    isa: bool = False,
    opened: tuple[int, int] = (0, 0),
    closed: bool = False,
    every: bool = False,
    halt: ctypes.c_uint32 | None = None,
) -> Replayed:
    """Replay in one of the two orders. `isa`: by the strict reading. `opened`: where a fault ended the launch, a block and how many of
    its events. `closed`: the host has stopped the launch; a block that has its number is complete.
    `every`: rounds that repeat are replayed each time. `halt`: ends the replay once it is not 0.
    """
    history = replace(history, log=np.ascontiguousarray(history.log, dtype="<u4"))
    assert history.log.shape[0] == history.ctas * -(-history.threads // LANES)
    assert history.log.shape[2] == LANES
    records = np.zeros(MOST_FINDINGS, RECORD)
    if history.shared_bytes > MOST_SHARED:
        return Replayed(Status.CORRUPT, records[:0], 0, False, False)
    given = UnitInput.of(tables, history, records, descending=descending, level=level, isa=isa, halt=halt)
    given.open_block, given.open_events = opened
    stands = np.zeros(history.ctas * history.cta_threads, np.uint32)
    given.closed, given.every, given.stands = int(closed), int(every), stands.ctypes.data
    output = _Output()
    library().consan_replay(ctypes.byref(given), ctypes.byref(output))
    found = records[: output.records]
    events, overtaken, proven = int(output.lane_events), bool(output.overtaken), bool(output.proven)
    return Replayed(Status(output.status), found, events, bool(output.by_address), overtaken, proven, stands, int(output.repeats))
