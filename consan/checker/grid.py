"""Checks what the units of a launch, CTAs or clusters, do in global memory, all of them together (source/launch.hpp).

Each has bytes of its own there, so units with equal histories are not one. Two orders are replayed where threads may synchronise through
memory: then the shared memory of CTAs is checked here too, because such synchronisation orders it.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.checker import scopes
from consan.checker.beside import KEPT, Kept
from consan.checker.build import library
from consan.checker.cores import replayed
from consan.checker.memory import SMALLER
from consan.checker.patience import Patience
from consan.checker.replay import MOST_FINDINGS, RECORD, History, Level, Status, Tables, UnitInput
from consan.instrument.record.global_memory import Mode

HALTED = "the replay was ended before it was over"
MOST_KEPT = 1 << 23  # accesses of a launch that are kept at a time
_STRICT = 2  # of `UnitInput.isa`: no weaker fence is taken for a fence.sc (D17)
MOST_BESIDE = 1 << 22  # those that are kept for a comparison with other launches


class _Log(ctypes.Structure):
    _fields_ = (("log", ctypes.c_void_p), ("lines", ctypes.c_uint64))


class _Input(ctypes.Structure):
    _fields_ = (
        ("one", UnitInput),
        *((name, ctypes.c_void_p) for name in ("units", "of_units")),
        *((name, ctypes.c_uint32) for name in ("count", "synced", "capacity", "most", "kept_capacity")),
        *((name, ctypes.c_void_p) for name in ("kept", "stands", "stops")),
    )


class _Output(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("status", "records", "of_units", "stuck", "contradictions", "full", "unknown", "narrow")),
        *((name, ctypes.c_uint64) for name in ("lane_events", "kept")),
        *((name, ctypes.c_uint32) for name in ("kept_full", "waited", "unseen")),
        *((name, ctypes.c_uint64) for name in ("accesses", "compared")),
    )


STOPPED = np.dtype(
    [*((name, "<u8") for name in ("address", "low", "high")), *((name, "<u4") for name in ("bytes", "site", "kind", "latest"))]
)
"""How a thread stood that the host has stopped (`Stopped` of types.hpp)."""


class StoppedKind(enum.IntEnum):
    """What a stopped thread did."""

    GONE = 0
    WAITS = 1
    POLLS = 2
    FREE = 3


@dataclass
class GridChecked:
    """The result of one replay. `records`: in global memory; `of_units`: in shared memory, each with the number of its unit."""

    records: list[np.void] = field(default_factory=list)
    of_units: list[np.void] = field(default_factory=list)
    status: Status = Status.OK
    stuck: int = 0
    contradictions: int = 0
    full: bool = False
    unknown: bool = False  # the bytes of a tensor copy are not known
    narrow: bool = False  # some scope excludes other CTAs
    unseen: bool = False  # threads may have synchronised through memory that the logs do not name
    events: int = 0
    accesses: int = 0  # to global memory, by single threads
    compared: int = 0  # those of bytes that several threads touch, and one writes: all others cannot race
    kept: Kept | None = None  # the accesses, if they are to be compared with other launches and are not too many
    # Where each thread of each unit stood, and how (STOPPED), if the host has stopped the launch: a line of the PTX, a site, or 0.
    stands: npt.NDArray[np.uint32] | None = None
    stops: npt.NDArray[np.void] | None = None


def check_grid(
    tables: Tables, histories: list[History], mode: Mode,
    *, whole: bool, isa: bool = False, most: int = MOST_KEPT, keep: bool = False, patience: Patience | None = None, stopped: bool = False,
) -> list[GridChecked]:  # fmt: skip
    """Replay the units of a launch together: in two orders where they can synchronise, else in one. `whole`: shared memory too.

    `keep`: the first result has the accesses, for a comparison with other launches. `patience`: for how long. `stopped`: the host has
    stopped the launch.
    """
    patience = patience or Patience(math.inf)
    orders = (False, True) if mode is Mode.SYNCED else (False,)

    def at(level: Level, *, descending: bool) -> GridChecked:
        keeps = keep and not descending and level is Level.EXACT
        how: dict[str, Any] = {"whole": whole, "isa": isa, "most": most, "keep": keeps, "halt": patience.halt, "stopped": stopped}
        return _replay(tables, histories, mode, level, descending=descending, **how)

    def named(descending: bool) -> GridChecked:
        return scopes.named_of_launch(functools.partial(at, descending=descending), histories[0].ctas)

    nbytes = sum(history.log.nbytes for history in histories)
    done = replayed(named, [(descending,) for descending in orders], nbytes, patience, most=1)  # each takes much memory
    if isa and mode is Mode.SYNCED:
        for each, descending in zip(done, orders, strict=True):
            how: dict[str, Any] = {"whole": whole, "isa": _STRICT, "most": most, "keep": False, "halt": patience.halt, "stopped": stopped}
            strict = _replay(tables, histories, mode, Level.EXACT, descending=descending, **how)
            each.records += scopes.of_weaker_fences(each.records, strict.records)
    return done


def _replay(
    tables: Tables,
    histories: list[History],
    mode: Mode,
    level: Level,
    *,
    descending: bool,
    whole: bool,
    isa: int,
    most: int,
    keep: bool,
    halt: ctypes.c_uint32,
    stopped: bool,
) -> GridChecked:
    logs = [np.ascontiguousarray(history.log, dtype="<u4") for history in histories]
    units = (_Log * len(logs))(*(_Log(log.ctypes.data, log.shape[1]) for log in logs))
    records, of_units = np.zeros(MOST_FINDINGS, RECORD), np.zeros(MOST_FINDINGS, RECORD)
    one = UnitInput.of(tables, replace(histories[0], log=logs[0]), records, descending=descending, level=level, isa=isa, halt=halt)
    one.closed = int(stopped)
    kept = np.empty(MOST_BESIDE if keep else 0, KEPT)
    shape = (len(logs) if stopped else 0, histories[0].ctas * histories[0].cta_threads)
    stands, stops = np.zeros(shape, np.uint32), np.zeros(shape, STOPPED)
    given = _Input(
        one, ctypes.addressof(units), of_units.ctypes.data if whole else None, len(logs), mode is Mode.SYNCED, MOST_FINDINGS, most,
        len(kept), kept.ctypes.data if keep else None, *(each.ctypes.data if stopped else None for each in (stands, stops)),
    )  # fmt: skip
    output = _Output()
    library().consan_replay_launch(ctypes.byref(given), ctypes.byref(output))
    return GridChecked(
        _rows(records, output.records), _rows(of_units, output.of_units), Status(output.status), int(output.stuck),
        int(output.contradictions), bool(output.full), bool(output.unknown), bool(output.narrow), bool(output.unseen),
        int(output.lane_events), int(output.accesses), int(output.compared),
        Kept(kept[: output.kept].copy(), bool(output.waited)) if keep and not output.kept_full else None,
        stands if stopped else None, stops if stopped else None,
    )  # fmt: skip


def _rows(records: npt.NDArray[np.void], count: int) -> list[np.void]:
    return list(records[:count])


def by_unit(done: list[GridChecked]) -> dict[int, list[list[np.void]]]:
    """The findings in shared memory of each unit, in each order."""
    found: dict[int, list[list[np.void]]] = {}
    for number, each in enumerate(done):
        for record in each.of_units:
            found.setdefault(int(record["unit"]), [[] for _ in done])[number].append(record)
    return found


def replay_gaps(done: list[GridChecked], *, ended: bool) -> tuple[str, ...]:
    """Why the replay of a launch is not that of all its threads to their ends. `ended`: all of its threads have exited."""
    reasons = {
        f"the logs ran out of room ({SMALLER})": any(each.status is Status.FULL for each in done),
        HALTED: any(each.status is Status.HALTED for each in done),
        "a log does not fit the kernel": any(each.status is Status.CORRUPT for each in done),
        "there were more findings than are kept": any(each.status is Status.TOO_MANY for each in done),
        "the order of the accesses to a flag is not certain": any(each.contradictions for each in done),
        "some CTAs could not be replayed to their end": ended and any(each.stuck for each in done),
    }
    return tuple(reason for reason, holds in reasons.items() if holds)


def access_gaps(done: list[GridChecked]) -> tuple[str, ...]:
    """Why not all accesses to global memory were compared."""
    reasons = {
        "more accesses met than are kept": any(each.full for each in done),
        "the bytes of a tensor copy are not known": any(each.unknown for each in done),
        "threads may have synchronised by multimem instructions": any(each.unseen for each in done),
    }
    return tuple(reason for reason, holds in reasons.items() if holds)
