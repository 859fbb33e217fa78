"""Calls the compiled checker for one CTA. The structures are those of source/types.hpp."""

from __future__ import annotations

import ctypes
import enum
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from consan.checker.build import library
from consan.instrument.record.templates import LANES

MOST_FINDINGS = 4096  # of one CTA
_FIELDS = (
    "kind hazard reason flags site other_site thread other_thread offset bytes number came others exited how operation own_operation "
    "group commits retired address_low address_high place phase expected state_low state_high count low high"
)
RECORD = np.dtype([(name, "<u4") for name in _FIELDS.split()])


class Status(enum.IntEnum):
    """How a replay ended."""

    OK = 0
    STUCK = 1
    CORRUPT = 2
    FULL = 3
    TOO_MANY = 4
    UNDEFINED = 5  # up to a divergent .aligned instruction


class _Input(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("blocks", "events", "log", "records")),
        ("lines", ctypes.c_uint64),
        *((name, ctypes.c_uint32) for name in ("block_count", "threads", "window", "shared_bytes", "descending", "capacity")),
    )


class _Output(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("status", "records", "stuck_lane", "by_address")),
        ("lane_events", ctypes.c_uint64),
    )


@dataclass(frozen=True)
class History:
    """What one CTA did: its log, and what the log's addresses refer to."""

    log: npt.NDArray[np.uint32]  # warps x lines x lanes
    threads: int
    window: int  # the address of the first byte of shared memory
    shared_bytes: int


@dataclass(frozen=True)
class Replayed:
    """The findings of one replay; `events`: lane events."""

    status: Status
    records: npt.NDArray[np.void]
    events: int
    by_address: bool  # the findings depend on words that are not hashed


Tables = tuple[npt.NDArray[np.void], npt.NDArray[np.void]]


def replay(tables: Tables, history: History, *, descending: bool) -> Replayed:
    """Replay a CTA in one of the two orders."""
    blocks, events = tables
    log = np.ascontiguousarray(history.log, dtype="<u4")
    assert log.shape[0] * LANES >= history.threads
    assert log.shape[2] == LANES
    records = np.zeros(MOST_FINDINGS, RECORD)
    given = _Input(blocks.ctypes.data, events.ctypes.data, log.ctypes.data, records.ctypes.data, log.shape[1])
    given.block_count, given.threads, given.window = len(blocks) - 1, history.threads, history.window
    given.shared_bytes, given.descending, given.capacity = history.shared_bytes, int(descending), len(records)
    output = _Output()
    library().consan_replay(ctypes.byref(given), ctypes.byref(output))
    return Replayed(Status(output.status), records[: output.records], int(output.lane_events), bool(output.by_address))
