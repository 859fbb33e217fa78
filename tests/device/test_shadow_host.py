"""The host's half of the shadow (consan/session/modules/shadow.py): placing the tables, registering modules, resetting and reading back."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from consan.backends.base import DeviceLost
from consan.backends.virtual import VirtualBackend
from consan.instrument.abi import events, records, sizes
from consan.instrument.findings import Kind
from consan.session.modules.shadow import Counters, MiB, Shadow, default_arena_bytes, describe_bounds


class DirtyBackend(VirtualBackend):
    """Hands out memory that holds what was there before, as a GPU's driver does."""

    allocates_zeros = False

    def alloc_separate(self, nbytes: int) -> int:
        address = super().alloc_separate(nbytes)
        self.fill(address, 0xA5, nbytes)
        return address


@pytest.fixture(params=[VirtualBackend, DirtyBackend])
def shadow(request: pytest.FixtureRequest) -> Shadow:
    made = Shadow(request.param(), arena_bytes=1 * MiB)
    made.control_block(0, 0)  # takes the memory of the cells
    return made


def record_of(shadow: Shadow) -> Any:
    data = shadow.backend.read(shadow.address, records.size(records.RUNTIME))
    return np.frombuffer(data, records.dtype(records.RUNTIME))[0]


def test_tables_are_zero_whatever_the_memory_held(shadow: Shadow) -> None:
    runtime = record_of(shadow)
    assert runtime["arena_bytes"] == MiB
    directory, launches = sizes.DIRECTORY_ENTRIES * records.size(records.DIRECTORY), 8 * sizes.LAUNCH_COUNTERS
    for name, nbytes in (("arena", MiB), ("directory", directory), ("launches", launches)):
        assert not any(shadow.backend.read(int(runtime[name]), nbytes)), name
    assert not shadow.ring.any()
    assert [int(runtime[name]) for name in ("arena_next", "ring_count", "abort", "cta_limit", "dropped_ctas", "evicted")] == [0] * 6


def test_tables_do_not_overlap(shadow: Shadow) -> None:
    runtime = record_of(shadow)
    wanted = {
        "directory": sizes.DIRECTORY_ENTRIES * records.size(records.DIRECTORY),
        "class_slots": sizes.CLASS_COUNT * sizes.SLOTS_PER_CLASS * 8,
        "hints": sizes.HINT_SHAPES * sizes.HINT_PLACES * sizes.HINT_DEPTH * 8,
        "hint_tops": sizes.HINT_SHAPES * sizes.HINT_PLACES * 4,
        "table": sizes.TABLE_ENTRIES * records.size(records.TABLE_ENTRY),
        "launches": sizes.LAUNCH_COUNTERS * 8,
        "arena": MiB,
        "ring": sizes.RING_ENTRIES * records.size(events.FINDING) + sizes.STANDS * records.size(records.STAND),
    }
    ranges = sorted((int(runtime[name]), int(runtime[name]) + nbytes) for name, nbytes in wanted.items())
    ranges.append((shadow.address, shadow.address + records.size(records.RUNTIME)))
    ranges.sort()
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ranges))
    assert all(start % 16 == 0 for start, _ in ranges)


def test_counters_are_numbered_without_gaps(shadow: Shadow) -> None:
    assert [shadow.register(module, entries) for module, entries in enumerate((3, 1, 0, 2))] == [0, 3, 4, 4]


def test_the_control_block_names_the_record_the_module_and_its_counter(shadow: Shadow) -> None:
    words = np.frombuffer(shadow.control_block(7, 41), "<u8").tolist()
    assert words[:2] == [shadow.address, 7 | 41 << 32]
    assert len(words) == 4


def test_words_for_addresses_are_a_module_s_own(shadow: Shadow) -> None:
    for module, words in enumerate((2, 0, 3)):
        shadow.register(module, 1, words)
    first, none, third = (int(np.frombuffer(shadow.control_block(module, 0), "<u8")[2]) for module in range(3))
    assert (third - first, none) == (8, 0)
    shadow.backend.write(third + 4, (1 + 48).to_bytes(4, "little"))
    assert [shadow.placed(module, 0, 2) for module in range(3)] == [[None, None], [None, None], [None, 48]]
    assert shadow.placed(2, 1, 2) == [48, None]
    assert not shadow.ring.any()


def test_without_room_for_words_nothing_is_told(shadow: Shadow) -> None:
    shadow.register(0, 1, 1 << 20)
    assert np.frombuffer(shadow.control_block(0, 0), "<u8")[2] == 0
    assert shadow.placed(0, 0, 2) == [None, None]


def test_more_launch_counters_than_there_are_is_an_error(shadow: Shadow) -> None:
    with pytest.raises(OverflowError):
        shadow.register(0, sizes.LAUNCH_COUNTERS + 1)
    assert shadow.register(0, sizes.LAUNCH_COUNTERS) == 0
    with pytest.raises(OverflowError):
        shadow.register(1, 1)


def test_drain_reads_what_the_device_wrote(shadow: Shadow) -> None:
    fields, backend = records.offsets(records.RUNTIME), shadow.backend
    wanted = Counters(dropped_findings=3, dropped_ctas=5, evicted=7, checked_ctas=11, arena_used=13)
    for name, value in (("dropped_findings", 3), ("dropped_ctas", 5), ("evicted", 7), ("checked_ctas", 11), ("arena_next", 13)):
        backend.write(shadow.address + fields[name], value.to_bytes(8, "little"))
    runtime = record_of(shadow)
    backend.write(int(runtime["launches"]) + 8 * 6, (99).to_bytes(8, "little"))
    finding = np.zeros(1, records.dtype(events.FINDING))
    event = finding["event"]
    event["valid"], event["kind"], event["site"], event["ctaid"] = 1, Kind.OUT_OF_BOUNDS, 42, (1, 2, 3)
    event["table"] = 5
    backend.write(int(runtime["ring"]) + 2 * records.size(events.FINDING), finding.tobytes())
    entry = np.zeros(1, records.dtype(records.TABLE_ENTRY))
    entry["count"], entry["ctas"], entry["low"], entry["high"] = 12, 3, ~np.uint32(4), 20
    backend.write(int(runtime["table"]) + 5 * records.size(records.TABLE_ENTRY), entry.tobytes())
    drained = shadow.drain()
    assert drained.counters == wanted
    assert drained.launches[6] == 99
    assert drained.launches.sum() == 99
    (found,) = drained.found
    assert (found.kind, found.site, found.geometry.ctaid) == (Kind.OUT_OF_BOUNDS, 42, (1, 2, 3))
    assert (found.index, found.count, found.ctas, found.low, found.high) == (5, 12, 3, 4, 20)


def test_reset_forgets_findings_and_counts_and_on_the_virtual_machine_slots(shadow: Shadow) -> None:
    fields, backend, runtime = records.offsets(records.RUNTIME), shadow.backend, record_of(shadow)
    for name in ("dropped_findings", "dropped_ctas", "evicted", "checked_ctas"):
        backend.write(shadow.address + fields[name], (9).to_bytes(8, "little"))
    backend.write(shadow.address + fields["ring_count"], (9).to_bytes(4, "little"))
    backend.write(int(runtime["table"]), b"\1" * 64)
    backend.write(int(runtime["launches"]), b"\1" * 64)
    backend.write(shadow.address + fields["arena_next"], (64).to_bytes(8, "little"))
    backend.write(int(runtime["arena"]), b"\1" * 64)
    shadow.ring[:256] = 1
    shadow.set_abort(True)
    shadow.reset(cta_limit=1 << 32)
    assert int(record_of(shadow)["cta_limit"]) == 0, "more than any launch has: all"
    shadow.reset(cta_limit=4)
    drained, after = shadow.drain(), record_of(shadow)
    virtual = backend.allocates_zeros
    assert drained.counters == Counters(arena_used=0 if virtual else 64)
    assert drained.found == []
    assert not any(backend.read(int(runtime["table"]), 64))
    assert not drained.launches.any()
    assert (int(after["ring_count"]), int(after["abort"]), int(after["cta_limit"])) == (0, 0, 4)
    assert any(backend.read(int(runtime["arena"]), 64)) is not virtual, "on a GPU slots and their epochs must stay"


def test_abort_is_seen_by_the_device(shadow: Shadow) -> None:
    shadow.set_abort(True)
    assert record_of(shadow)["abort"] == 1
    shadow.set_abort(False)
    assert record_of(shadow)["abort"] == 0


class LostBackend(VirtualBackend):
    """A context that a kernel has broken: nothing can be read."""

    lost = False

    def read(self, address: int, nbytes: int) -> bytes:
        if self.lost:
            raise DeviceLost("illegal address", code=700, name="CUDA_ERROR_ILLEGAL_ADDRESS")
        return super().read(address, nbytes)


@pytest.mark.parametrize("told", [True, False])
def test_the_ring_is_read_when_the_context_is_lost(told: bool) -> None:
    backend = LostBackend()
    shadow = Shadow(backend, arena_bytes=1 * MiB)
    event = shadow.ring[: sizes.RING_ENTRIES * records.size(events.FINDING)].view(records.dtype(events.FINDING))[3]["event"]
    event["valid"], event["kind"], event["table"] = 1, Kind.OUT_OF_BOUNDS, 7
    backend.lost = True
    drained = shadow.drain(lost=told)
    assert [(found.index, found.count, found.ctas) for found in drained.found] == [(7, 1, 1)]
    assert drained.counters == Counters()


@pytest.mark.parametrize(("total", "expected"), [(0, 64), (256 * MiB, 64), (12 * 1024 * MiB, 1024), (141 << 30, 8192)])
def test_the_arena_is_bounded_by_the_devices_memory(total: int, expected: int) -> None:
    assert default_arena_bytes(total) == expected * MiB


def test_doctor_prints_the_bounds() -> None:
    rows = dict(describe_bounds(141 << 30))
    assert "8,192 MiB" in rows["shadow cells"]
    assert all("MiB" in text for text in rows.values())
