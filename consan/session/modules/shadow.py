"""Host side of the shadow runtime: one arena and one set of tables per device, shared by all instrumented modules.

It works on any backend that offers memory, a host-visible ring, reads and writes. The device finds everything through the
`Runtime` record (instrument/abi/records.py); each module's control block holds its address. `arena_bytes` bounds the memory. CTAs
that get no slot run unchecked; they are counted, and the verdict becomes `incomplete`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from consan.backends.base import DeviceLost
from consan.dataclass import dataclass
from consan.instrument.abi import events, records, sizes
from consan.instrument.findings import FindingRecord

if TYPE_CHECKING:
    from consan.backends.base import Backend

MiB = 1 << 20
_TABLES = {
    "directory": sizes.DIRECTORY_ENTRIES * records.size(records.DIRECTORY),
    "class_slots": sizes.CLASS_COUNT * sizes.SLOTS_PER_CLASS * 8,
    "hints": sizes.HINT_SHAPES * sizes.HINT_PLACES * sizes.HINT_DEPTH * 8,
    "hint_tops": sizes.HINT_SHAPES * sizes.HINT_PLACES * 4,
    "table": sizes.TABLE_ENTRIES * records.size(records.TABLE_ENTRY),
    "launches": sizes.LAUNCH_COUNTERS * 8,
}
_FINDINGS_BYTES = sizes.RING_ENTRIES * records.size(events.FINDING)
_RING_BYTES = _FINDINGS_BYTES + sizes.STANDS * records.size(records.STAND)  # behind the findings: where threads stood
_MODULE_LIMIT = 1 << 12
_WORDS = 1 << 16  # of all modules together, for addresses of shared variables; kernels of further modules store none


@dataclass(frozen=True)
class Counters:
    """The device's counters since the shadow was made."""

    dropped_findings: int = 0
    dropped_ctas: int = 0
    foreign_ctas: int = 0  # in clusters larger than their module was instrumented for
    evicted: int = 0
    checked_ctas: int = 0
    arena_used: int = 0

    def plus(self, later: Counters) -> Counters:
        """Add two counts. For the memory used, the later figure counts: it includes the earlier one."""
        return Counters(
            self.dropped_findings + later.dropped_findings,
            self.dropped_ctas + later.dropped_ctas,
            self.foreign_ctas + later.foreign_ctas,
            self.evicted + later.evicted,
            self.checked_ctas + later.checked_ctas,
            later.arena_used,
        )


@dataclass(frozen=True)
class Drained:
    """Findings and counters read back. If the context was lost, counts are lower bounds."""

    found: list[FindingRecord]
    counters: Counters
    launches: npt.NDArray[np.uint64]

    def plus(self, later: Drained) -> Drained:
        """Add the counts. The findings are the later ones: each drain is decoded once, with its own table."""
        return replace(later, counters=self.counters.plus(later.counters), launches=self.launches + later.launches)


def default_arena_bytes(total_memory: int) -> int:
    """Default limit of shadow memory: a twelfth of the device's memory, between 64 MiB and 8 GiB."""
    return max(64 * MiB, min(total_memory // 12, 8192 * MiB)) // MiB * MiB


# The virtual machine's memory costs nothing until it is touched, so slots of many shapes fit (a cluster of 16 CTAs
# takes 64 MiB).
_SPARSE_ARENA = 768 * MiB


def arena_bytes_of(backend: Backend) -> int:
    """The default limit for a device."""
    return _SPARSE_ARENA if backend.allocates_zeros else default_arena_bytes(backend.memory_bytes)


@dataclass(frozen=True)
class Room:
    """Shadow memory in bytes that one CTA or one cluster takes. Known before the launch."""

    slot: int
    shared: int  # shared memory of the CTAs of a slot
    ctas: int
    most: int  # for all slots

    def __str__(self) -> str:
        whose = f"a cluster of {self.ctas} CTAs" if self.ctas > 1 else "a CTA"
        share = f" ({self.slot / self.shared:.1f} bytes per byte of shared memory)" if self.shared else ""
        return f"shadow memory: {self.slot / 1024:,.0f} KiB for {whose}{share}, {describe_most(self.most)}"


def describe_most(most: int) -> str:
    """The limit on shadow cells, as text."""
    return f"at most {most / MiB:,.0f} MiB at a time"


class Shadow:
    """The shadow state of one device."""

    def __init__(self, backend: Backend, *, arena_bytes: int) -> None:
        self.backend = backend
        self.arena_bytes = arena_bytes
        self._offsets = records.offsets(records.RUNTIME)
        self._places = {name: backend.alloc_separate(nbytes) for name, nbytes in _TABLES.items()}
        if backend.allocates_zeros:
            self._places["arena"] = backend.alloc_separate(self.arena_bytes)
        else:
            for name, address in self._places.items():
                backend.fill(address, 0, _TABLES[name])
        self._ring_address, pinned = backend.host_ring(_RING_BYTES + 4 * _WORDS)
        self.ring, self._words = pinned[:_RING_BYTES], pinned[_RING_BYTES:].view("<u4")
        self._first_words: dict[int, int] = {}  # of modules whose kernels report addresses
        self._used_words = 0
        self._counters = 0
        self.address = backend.alloc_separate(records.size(records.RUNTIME))
        self.renew()

    def renew(self) -> None:
        """Write the record that the device starts from. The rest of the shadow must read as zero."""
        self.backend.write(self.address, self._runtime(self._ring_address))

    def close(self) -> None:
        """Free everything, once. Modules that point here must not run again."""
        places, self._places = [*self._places.values()], {}
        if places:
            for address in (*places, self.address):
                self.backend.free(address)
            self.backend.free_ring(self._ring_address)

    def _runtime(self, ring_address: int) -> bytes:
        record = np.zeros(1, records.dtype(records.RUNTIME))
        for name, address in self._places.items():
            record[name] = address
        record["arena_bytes"] = self.arena_bytes
        record["ring"] = ring_address
        return record.tobytes()

    def register(self, module: int, entries: int, words: int = 0) -> int:
        """The number of a new module's first launch counter; its kernels store `words` addresses of shared variables."""
        counter = self._counters
        if module >= _MODULE_LIMIT or counter + entries > sizes.LAUNCH_COUNTERS:
            raise OverflowError("too many instrumented modules in one process")
        self._counters += entries
        if 0 < words <= _WORDS - self._used_words:
            self._first_words[module] = self._used_words
            self._used_words += words
        return counter

    def control_block(self, module: int, counter: int) -> bytes:
        """The 32 bytes of a module's `__consan_ctl`. Its kernels call hooks, so the cells must be there."""
        if "arena" not in self._places:
            self._take_arena()
        first = self._first_words.get(module)
        words = 0 if first is None else self._ring_address + _RING_BYTES + 4 * first
        return np.array([self.address, module | counter << 32, words, 0], dtype="<u8").tobytes()

    def _take_arena(self) -> None:
        """Allocate the cells. A program whose kernels are all recorded keeps that memory for itself."""
        address = self._places["arena"] = self.backend.alloc_separate(self.arena_bytes)
        self.backend.fill(address, 0, self.arena_bytes)
        self.backend.write(self.address + self._offsets["arena"], address.to_bytes(8, "little"))

    def placed(self, module: int, first: int, count: int) -> list[int | None]:
        """The offsets of shared variables that a kernel has stored; None before its first launch. Readable after a lost context."""
        if module not in self._first_words:
            return [None] * count
        begin = self._first_words[module] + first
        return [int(word) - 1 if word else None for word in self._words[begin : begin + count]]

    def reset(self, *, cta_limit: int = 0) -> None:
        """Forget all findings and counts. The modules stay. No kernel may be running.

        On a GPU slots and their epochs stay. On the virtual machine they are forgotten: a slot that is used again takes other paths
        than a new one, and the seed's schedule counts the steps of both.

        `cta_limit`: CTAs to watch. 0 watches all, as does a number too large for its field.
        """
        cta_limit = cta_limit if cta_limit < 1 << 32 else 0
        self.ring[...] = 0
        if self.backend.allocates_zeros:
            self._forget_slots()
        for name in ("table", "launches"):
            self.backend.fill(self._places[name], 0, _TABLES[name])
        for name in ("dropped_findings", "dropped_ctas", "foreign_ctas", "evicted", "checked_ctas"):
            self.backend.write(self.address + self._offsets[name], bytes(8))
        for name, value in (("ring_count", 0), ("abort", 0), ("cta_limit", cta_limit), ("stands", 0), ("stands_over", 0)):
            self.backend.write(self.address + self._offsets[name], value.to_bytes(4, "little"))

    def _forget_slots(self) -> None:
        """Make the shadow as it was before the first launch, except for the findings."""
        used = int(self._read(self.address, records.RUNTIME, 1)[0]["arena_next"])
        for name in ("directory", "class_slots", "hints", "hint_tops"):
            self.backend.fill(self._places[name], 0, _TABLES[name])
        self.backend.fill(self._places["arena"], 0, used)
        self.renew()

    def set_abort(self, value: bool) -> None:
        """Make running kernels exit when they next read the abort word, or withdraw that."""
        self.backend.poke(self.address + self._offsets["abort"], int(value).to_bytes(4, "little"))

    def take_stands(self, *, lost: bool = False) -> tuple[npt.NDArray[np.void], int]:
        """The places of threads that exited because their launch was stopped, and the number of those without a place. Clears both."""
        behind = self.ring[_FINDINGS_BYTES:]
        found = behind.view(records.dtype(records.STAND)).copy()
        found = found[found["valid"] == 1]
        if lost:
            return found, 0
        over = int(self._read(self.address, records.RUNTIME, 1)[0]["stands_over"])
        behind[...] = 0
        for name in ("stands", "stands_over"):
            self.backend.write(self.address + self._offsets[name], bytes(4))
        return found, over

    def found(self) -> int:
        """How many findings the ring holds."""
        return int(np.count_nonzero(self.ring[:_FINDINGS_BYTES].view(records.dtype(events.FINDING))["event"]["valid"]))

    def drain(self, *, lost: bool = False) -> Drained:
        """Read everything back; after a lost context only the ring is readable."""
        ring = self.ring[:_FINDINGS_BYTES].view(records.dtype(events.FINDING)).copy()
        nothing = Drained(events.records_of(ring, None), Counters(), np.zeros(sizes.LAUNCH_COUNTERS, "<u8"))
        if lost:
            return nothing
        try:
            runtime = self._read(self.address, records.RUNTIME, 1)[0]
            table = self._read(self._places["table"], records.TABLE_ENTRY, sizes.TABLE_ENTRIES)
            launches = np.frombuffer(self.backend.read(self._places["launches"], _TABLES["launches"]), dtype="<u8")
        except DeviceLost:
            return nothing
        counters = Counters(
            dropped_findings=int(runtime["dropped_findings"]),
            dropped_ctas=int(runtime["dropped_ctas"]),
            foreign_ctas=int(runtime["foreign_ctas"]),
            evicted=int(runtime["evicted"]),
            checked_ctas=int(runtime["checked_ctas"]),
            arena_used=int(runtime["arena_next"]),
        )
        return Drained(events.records_of(ring, table), counters, launches)

    def _read(self, address: int, struct: records.Record, count: int) -> npt.NDArray[np.void]:
        return np.frombuffer(self.backend.read(address, count * records.size(struct)), dtype=records.dtype(struct))


def describe_bounds(total_memory: int | None = None) -> list[tuple[str, str]]:
    """Rows for `consan doctor`: the limits of the shadow, and the kind of memory it uses."""
    tables = sum(_TABLES.values())
    pinned = (_RING_BYTES + 4 * _WORDS) / MiB
    rows = [("tables", f"{tables / MiB:.1f} MiB, fixed"), ("findings ring", f"{pinned:.1f} MiB of pinned host memory")]
    if total_memory:
        most = default_arena_bytes(total_memory)
        rows.append(("shadow cells", f"at most {most / MiB:,.0f} MiB of {total_memory / MiB:,.0f} MiB device memory"))
    else:
        rows.append(("shadow cells", f"at most {_SPARSE_ARENA / MiB:,.0f} MiB of host memory on the virtual machine"))
    return rows
