"""Calls the compiled checker for one CTA, or for those of one cluster (layouts.py has the records)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.build import library
from consan.checker.compiled.layouts import INPUT, OUTPUT, RECORD, Level, Reading, RestrictedFences, Status
from consan.dataclass import dataclass
from consan.instrument.effects import LANES
from consan.instrument.layouts.records import Record, dtype

MOST_FINDINGS = 4096  # of one cluster
_WARPGROUP, _CHUNK = 128, 16
Tables = tuple[npt.NDArray[np.void], npt.NDArray[np.void]]


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


def replay_input(
    tables: Tables,
    history: History,
    records: npt.NDArray[np.void],
    more: Mapping[str, int],
    *,
    descending: bool,
    level: Level = Level.EXACT,
    reading: Reading = Reading.USUAL,
    halt: ctypes.c_uint32 | None = None,
) -> npt.NDArray[np.void]:
    """The INPUT for one history. The arrays must outlive it; the log must be contiguous. `halt`: ends the replay once it is not 0.

    `more`: other fields.
    """
    blocks, events = tables
    values = {
        "blocks": blocks.ctypes.data, "events": events.ctypes.data, "log": history.log.ctypes.data, "records": records.ctypes.data,
        "halt": ctypes.addressof(halt) if halt is not None else 0, "lines": history.log.shape[1], "block_count": len(blocks) - 1,
        "threads": history.threads, "window": history.window, "shared_bytes": history.shared_bytes, "descending": descending,
        "capacity": len(records), "ctas": history.ctas, "cta_threads": history.cta_threads, "cta_bytes": history.cta_bytes,
        "level": level, "isa": reading,
    }  # fmt: skip
    return filled(INPUT, {**values, **more})


def called(function: Callable[..., Any], given: npt.NDArray[np.void], output: Record) -> dict[str, int]:
    """Call a function of the checker with its input. Returns the fields of its output."""
    kind = dtype(output)
    made = np.zeros((), kind)
    function(ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(made.ctypes.data))
    return dict(zip(kind.names or (), made.item(), strict=True))


def filled(record: Record, values: Mapping[str, Any]) -> npt.NDArray[np.void]:
    """A record with these fields; the others are zero."""
    kind = dtype(record)
    return np.array(tuple(values.get(name, 0) for name in kind.names or ()), kind)


MOST_SHARED = 1 << 20  # bytes of a CTA's shared memory: more than any device has; a program may write to what its launches leave


@dataclass(frozen=True)
class Replayed:
    """The findings of one replay; `events`: lane events."""

    status: Status
    records: npt.NDArray[np.void]
    events: int
    by_address: bool  # words that are not hashed decide the findings: a layouts.Decides
    overtaken: bool  # a wait passed for a phase that was over, though another one had ended since: at another time it would not
    proven: bool = False  # a deadlock
    positions: npt.NDArray[np.uint32] | None = None  # of a launch that was stopped, by thread: a line of the PTX, a site, or 0
    repeats: int = 0  # periods of loops that were counted and not replayed (source/cluster/repeats.hpp)
    passed: int = 0  # accesses that were counted and not replayed: they are apart (source/cluster/disjoint.hpp)

    @property
    def has_found(self) -> bool:
        """Whether anything was found, or the replay did not end as it should."""
        return self.status is not Status.OK or bool(len(self.records)) or self.by_address or self.overtaken


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
    restricted: int = RestrictedFences.ALL,
    halt: ctypes.c_uint32 | None = None,
) -> Replayed:
    """Replay in one of the two orders. `isa`: by the strict reading. `opened`: where a fault ended the launch, a block and how many of
    its events. `closed`: the host has stopped the launch; a block that has its number is complete.
    `restricted`: the fences with .sync_restrict that are taken.
    `every`: iterations that repeat are replayed each time. `halt`: ends the replay once it is not 0.
    """
    history = replace(history, log=np.ascontiguousarray(history.log, dtype="<u4"))
    assert history.log.shape[0] == history.ctas * -(-history.threads // LANES)
    assert history.log.shape[2] == LANES
    records = np.empty(MOST_FINDINGS, dtype(RECORD))  # the checker writes whole ones
    if history.shared_bytes > MOST_SHARED:
        return Replayed(Status.CORRUPT, records[:0], 0, False, False)
    reading = Reading.BY_THE_ISA if isa else Reading.USUAL
    positions = np.zeros(history.ctas * history.cta_threads, np.uint32)
    more = {"open_block": opened[0], "open_events": opened[1], "closed": closed, "every": every, "positions": positions.ctypes.data}
    more["restricted"] = restricted
    given = replay_input(tables, history, records, more, descending=descending, level=level, reading=reading, halt=halt)
    result = called(library().consan_replay, given, OUTPUT)
    found, by_address, overtaken = records[: result["records"]], bool(result["by_address"]), bool(result["overtaken"])
    proven, repeats, passed = bool(result["proven"]), result["repeats"], result["passed"]
    return Replayed(Status(result["status"]), found, result["lane_events"], by_address, overtaken, proven, positions, repeats, passed)
