"""Checks what the clusters of a launch do in global memory, all of them together (source/launch.hpp). A CTA by itself is a cluster.

Each has bytes of its own there, so clusters with equal histories are not one. Two orders are replayed where threads may synchronise through
memory: then the shared memory of CTAs is checked here too, because such synchronisation orders it.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.build import library
from consan.checker.compiled.concurrent_launches import Keep, Retained, RetainedFlags, Rows
from consan.checker.compiled.cores import replayed
from consan.checker.compiled.layouts import (
    CLUSTER_LOG,
    GRID_INPUT,
    GRID_OUTPUT,
    MEMORY_BEFORE,
    PEER_FLAG,
    RECORD,
    RETAINED,
    STOPPED,
    TEXTURE_MEMORY,
    Level,
    Reading,
    RestrictedFences,
    Status,
)
from consan.checker.compiled.patience import Patience
from consan.checker.compiled.replay import MOST_FINDINGS, History, Tables, called, filled, replay_input
from consan.checker.judging.restricted_fences import races_behind
from consan.checker.logs.memory import SMALLER
from consan.checker.logs.recorded_launch import MemoryBefore
from consan.dataclass import dataclass
from consan.instrument.findings import FindingFlags, Kind
from consan.instrument.layouts.records import dtype
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.record.recorded import Blocks
from consan.reports.verdict import scopes
from consan.reports.verdict.speaking.raw import selected
from consan.textures.description import TextureMemory

LOGS_FULL = f"the logs ran out of room ({SMALLER})"
HALTED = "the replay was ended before it was over"
_ACCESS_GAPS = {
    "full": "more accesses met than are retained",
    "unknown": "the bytes of a tensor copy are not known",
    "unseen": "threads may have synchronised by multimem instructions",
    "aliased": "surfaces of several handles, one of them written, may be of one array",
    "fetched": "a launch fetches elements of a texture that may be among those that it writes: which ones a filter or a coordinate of"
    " floating point names is not followed (fetch by tex1Dfetch of linear memory, or write in another launch)",
}
"""By fields of GridOutput."""
MOST_RETAINED = 1 << 23  # accesses of a launch that are retained at a time
MOST_PEER_FLAGS = 1 << 12  # flags of other GPUs
MOST_PEER_WORDS = 1 << 20  # of the sets of their releases and acquires
MOST_CONCURRENT = 1 << 22  # those that are retained for a comparison with other launches
_HANDLE = 0xFFFFFFFF  # the bits of a texture's handle that its name has
MemoryOf = Callable[[int], TextureMemory | None]
"""The memory of a texture object, by its handle; None: it is not known."""


@dataclass(frozen=True)
class ThreadStops:
    """Where each thread of each cluster stood (a line of the PTX, a site, or 0), and how (layouts.STOPPED): clusters x threads."""

    positions: npt.NDArray[np.uint32]
    stops: npt.NDArray[np.void]


@dataclass
class GridChecked:
    """The result of one replay. `records`: in global memory; `of_clusters`: in shared memory, each with the number of its cluster."""

    records: list[np.void] = field(default_factory=list)
    of_clusters: list[np.void] = field(default_factory=list)
    status: Status = Status.OK
    stuck: int = 0
    contradictions: int = 0
    narrow: bool = False  # some scope excludes other CTAs
    gaps: frozenset[str] = frozenset()  # why not all accesses were compared: names of _ACCESS_GAPS
    events: int = 0
    accesses: int = 0  # to global memory, by single threads
    compared: int = 0  # those of bytes that several threads touch, and one writes: all others cannot race
    retained: Retained | None = None  # the accesses, if they are to be compared with other launches and are not too many
    stopped: ThreadStops | None = None  # if the host stopped the launch

    def copied(self) -> GridChecked:
        """The same with records of its own: who reports them changes them."""
        return replace(self, records=[each.copy() for each in self.records], of_clusters=[each.copy() for each in self.of_clusters])


def check_grid(
    tables: Tables, histories: list[History], mode: Mode,
    *, whole: bool, isa: bool = False, restricted: bool = False, most: int = MOST_RETAINED, keep: Keep = Keep.NOTHING,
    patience: Patience | None = None, stopped: bool = False, ranks: int = 1, rank_memory: tuple[int, int] = (0, 0),
    memory_of: MemoryOf = lambda handle: None, before: Sequence[MemoryBefore] = (),
) -> list[GridChecked]:  # fmt: skip
    """Replay the clusters of a launch together: in two orders where they can synchronise, else in one. `whole`: shared memory too.

    `keep`: the first result has the accesses, for a comparison with other launches. `patience`: for how long. `stopped`: the host has
    stopped the launch. `restricted`: fences with .sync_restrict are not taken for whole ones. `ranks`: GPUs, each with as many clusters.
    `rank_memory`: where their symmetric memory begins, and how far it is from that of one to that of the next.
    `memory_of`: asked for each texture object that the launch fetches from.
    `before`: what memory held before the launch, where it is known.
    """
    patience = patience or Patience(math.inf)
    orders = (False, True) if mode is Mode.SYNCED else (False,)
    usual = Reading.BY_THE_ISA if isa else Reading.USUAL
    textures = _Textures(memory_of)

    def at(level: Level, *, descending: bool, reading: Reading = usual) -> GridChecked:
        keeps = bool(keep) and not descending and level is Level.EXACT and reading is usual
        how: dict[str, Any] = {"whole": whole, "reading": reading, "most": most, "keep": keeps, "halt": patience.halt, "stopped": stopped}
        how |= {"textures": textures, "before": before, "peers": keep is Keep.PEER_FLAGS}
        how["of_ranks"] = (len(histories) // ranks if ranks > 1 else 0, *rank_memory)
        some = functools.partial(_replay, tables, histories, mode, level, descending=descending, **how)
        return _restricted(some, histories[0]) if restricted and mode is Mode.SYNCED else some()

    def named(descending: bool) -> GridChecked:
        def again(level: Level) -> scopes.OfLaunch:
            found = at(level, descending=descending)
            return scopes.OfLaunch(found.records, found.of_clusters)

        exact = at(Level.EXACT, descending=descending)
        found, several = scopes.OfLaunch(exact.records, exact.of_clusters), histories[0].ctas > 1
        waits, wide = functools.partial(again, Level.WAIT_SCOPES), functools.partial(again, Level.SCOPES)
        return replace(exact, of_clusters=scopes.named_of_launch(found, waits, wide, narrow=exact.narrow, several=several))

    nbytes = sum(history.log.nbytes for history in histories)
    done = replayed(named, [(descending,) for descending in orders], nbytes, patience, most=1)  # each takes much memory
    if isa and mode is Mode.SYNCED:
        for each, descending in zip(done, orders, strict=True):
            strict = at(Level.EXACT, descending=descending, reading=Reading.STRICT)
            each.records += scopes.of_weaker_fences(each.records, strict.records)
    return done


def _restricted(some: Callable[..., GridChecked], history: History) -> GridChecked:
    """A replay in which fences with .sync_restrict order shared memory only (R-SR1)."""
    done, without = some(), some(restricted=RestrictedFences.NONE)

    def of_clusters(which: int) -> list[np.void]:
        return (without if which == RestrictedFences.NONE else some(restricted=which)).of_clusters

    more = races_behind(of_clusters, done.of_clusters, history.cta_bytes, history.ctas)
    status = without.status if done.status is Status.OK else done.status
    return replace(without, status=status, retained=done.retained, of_clusters=[*done.of_clusters, *more])


def check_copies(blocks: Blocks, history: History, isa: bool, patience: Patience, *, unordered: bool) -> list[np.void]:
    """The findings of copies and accesses of one cluster in global memory (R-GM11), where its races are not looked for.

    `unordered`: nothing orders the kernel's threads through memory. Else an order may be there that was not recorded: a copy that races is
    certain only if it is behind the issue.
    """
    (done,) = check_grid(blocks.tables, [history], Mode.ALONE, whole=False, isa=isa, patience=patience)

    def of_copies(record: np.void) -> bool:
        sites = {int(record["site"]), int(record["other_site"])}
        races = unordered and record["kind"] == Kind.DATA_RACE and not sites <= blocks.global_sites
        return races or record["kind"] in (Kind.MISSING_WAIT, Kind.MISSING_PROXY_FENCE)

    found = list(filter(of_copies, selected(done.records)))
    for record in found:
        record["flags"] &= ~np.uint32(FindingFlags.GRID)  # its threads are those of the cluster
    return found


def _replay(
    tables: Tables,
    histories: list[History],
    mode: Mode,
    level: Level,
    *,
    descending: bool,
    whole: bool,
    reading: Reading,
    most: int,
    keep: bool,
    halt: ctypes.c_uint32,
    stopped: bool,
    of_ranks: tuple[int, int, int],  # the clusters of one, if there are several, and their memory
    textures: _Textures,
    before: Sequence[MemoryBefore],
    peers: bool,
    restricted: int = RestrictedFences.ALL,
) -> GridChecked:
    logs = [np.ascontiguousarray(history.log, dtype="<u4") for history in histories]
    clusters = np.array([(log.ctypes.data, log.shape[1]) for log in logs], dtype(CLUSTER_LOG))
    records, of_clusters = np.empty(MOST_FINDINGS, dtype(RECORD)), np.empty(MOST_FINDINGS, dtype(RECORD))
    first, more = replace(histories[0], log=logs[0]), {"closed": stopped, "restricted": restricted}
    one = replay_input(tables, first, records, more, descending=descending, level=level, reading=reading, halt=halt)
    retained = np.empty(MOST_CONCURRENT if keep else 0, dtype(RETAINED))
    flags = _room(MOST_PEER_FLAGS, MOST_PEER_WORDS) if keep and peers else _room(0, 0)
    begun = np.zeros(len(logs) // of_ranks[0] if of_ranks[0] else 0, np.uint32)
    shape = (len(logs) if stopped else 0, first.ctas * first.cta_threads)
    positions, stops = np.zeros(shape, np.uint32), np.zeros(shape, dtype(STOPPED))
    wanted = {
        "before": (_known_before(before), True),
        "of_clusters": (of_clusters, whole),
        "retained": (retained, keep),
        "begun_before_end": (begun, keep),
        "peer_flags": (flags.rows, len(flags.rows) > 0),
        "peer_sets": (flags.sets, len(flags.rows) > 0),
        "positions": (positions, stopped),
        "stops": (stops, stopped),
    }
    values = {name: array.ctypes.data if is_wanted else 0 for name, (array, is_wanted) in wanted.items()}
    numbers = {
        "count": len(logs),
        "synced": mode is Mode.SYNCED,
        "capacity": MOST_FINDINGS,
        "most": most,
        "retained_capacity": len(retained),
        **dict(zip(("rank_clusters", "rank_memory", "rank_stride"), of_ranks, strict=True)),
        "peer_capacity": len(flags.rows),
        "peers": peers,
        "peer_sets_capacity": len(flags.sets),
        "before_count": len(before),
    }
    result = textures.answered(lambda known: _called({"one": one, "clusters": clusters.ctypes.data, **values, **numbers, **known}))
    return GridChecked(
        _rows(records, result["records"]), _rows(of_clusters, result["of_clusters"]), Status(result["status"]), result["stuck"],
        result["contradictions"], bool(result["narrow"]),
        frozenset(name for name in _ACCESS_GAPS if result[name]), result["lane_events"], result["accesses"], result["compared"],
        _retained(retained, flags, begun, result) if keep and not result["retained_full"] else None,
        ThreadStops(positions, stops) if stopped else None,
    )  # fmt: skip


def _known_before(before: Sequence[MemoryBefore]) -> npt.NDArray[np.void]:
    return np.array([(data.ctypes.data, address, data.nbytes) for address, data in before], dtype(MEMORY_BEFORE))


def _room(flags: int, words: int) -> RetainedFlags:
    return RetainedFlags(np.empty(flags, dtype(PEER_FLAG)), np.empty(words, np.uint32))


def _retained(rows: Rows, flags: RetainedFlags, begun: npt.NDArray[np.uint32], result: Mapping[str, int]) -> Retained:
    known = len(flags.rows) and not result["peer_flags_full"]
    peers = RetainedFlags(flags.rows[: result["peer_flags"]].copy(), flags.sets[: result["peer_sets"]].copy()) if known else None
    return Retained(rows[: result["retained"]].copy(), bool(result["waited"]), tuple(map(int, begun)), peers)


def _called(values: Mapping[str, Any]) -> dict[str, int]:
    return called(library().consan_replay_launch, filled(GRID_INPUT, values), GRID_OUTPUT)


class _Textures:
    """The texture objects of a launch. Only its logs have their handles: a replay ends where it finds one that is unknown."""

    def __init__(self, memory_of: MemoryOf) -> None:
        self._memory_of, self._known = memory_of, list[tuple[int, ...]]()

    def answered(self, replay: Callable[[dict[str, int]], dict[str, int]]) -> dict[str, int]:
        """Replay until the memory of all handles has been asked for. `replay`: takes the fields of GridInput that say what is known."""
        while True:
            rows = np.array(self._known, dtype(TEXTURE_MEMORY))
            result = replay({"textures": rows.ctypes.data, "texture_count": len(rows)})
            if not result["texture"]:
                return result
            handle = result["texture"] & _HANDLE
            memory = self._memory_of(handle)
            row = (
                (0, 0, 0, False, False) if memory is None else (memory.address, memory.nbytes, memory.element_bytes, memory.numbered, True)
            )
            self._known.append((handle, *row, 0))


def _rows(records: npt.NDArray[np.void], count: int) -> list[np.void]:
    return list(records[:count])


def by_cluster(done: list[GridChecked]) -> dict[int, list[list[np.void]]]:
    """The findings in shared memory of each cluster, in each order."""
    found: dict[int, list[list[np.void]]] = {}
    for number, each in enumerate(done):
        for record in each.of_clusters:
            found.setdefault(int(record["cluster"]), [[] for _ in done])[number].append(record)
    return found


def replay_gaps(done: list[GridChecked], *, ended: bool) -> tuple[str, ...]:
    """Why the replay of a launch is not that of all its threads to their ends. `ended`: all of its threads have exited."""
    reasons = {
        LOGS_FULL: any(each.status is Status.FULL for each in done),
        HALTED: any(each.status is Status.HALTED for each in done),
        "a log does not fit the kernel": any(each.status is Status.CORRUPT for each in done),
        "there were more findings than are retained": any(each.status is Status.TOO_MANY for each in done),
        "the order of the accesses to a flag is not certain": any(each.contradictions for each in done),
        "some CTAs could not be replayed to their end": ended and any(each.stuck for each in done),
    }
    return tuple(reason for reason, holds in reasons.items() if holds)


def access_gaps(done: list[GridChecked]) -> tuple[str, ...]:
    """Why not all accesses to global memory were compared."""
    return tuple(reason for name, reason in _ACCESS_GAPS.items() if any(name in each.gaps for each in done))
