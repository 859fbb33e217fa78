"""Bytes of shadow memory per CTA, known before it runs: `shape_of` of runtime/slot.cuh, computed on the host.

The device decides. Tests compare both for every variant of the runtime.
"""

from __future__ import annotations

from consan.instrument import layout
from consan.instrument.runtime import Variant


def slot_bytes(variant: Variant, threads: int, shared: int, ctas: int = 1) -> int:
    """Bytes for one CTA with `threads` threads and `shared` bytes of shared memory, or for one cluster of `ctas` such CTAs."""
    counts = layout.counts(variant.cluster or 1)
    warps = -(-threads // 32)
    warps = ctas << max(2, _log2(warps)) if variant.cluster else 1 << _log2(warps)
    rows = warps if variant.cluster else min(warps, -(-threads // 64) * 2)
    cells = _cells(variant, shared, ctas)
    vector = counts["CLOCK"] if variant.engine else counts["MAX_WARPS"]
    bytes_ = _up(_head(variant, counts), 128) + warps * 32 * thread_bytes(variant)
    if variant.partial:
        vectors = (2 if variant.engine else 1) * counts["MAX_WARPS"] * vector * 4
        places = variant.named + 1 if variant.engine and not variant.cluster else layout.NAMED_BARRIERS * counts["MAX_CTAS"]
        deposits = places * layout.BARRIER_GENERATIONS * vector * 8
        sets = counts["MAX_CTAS"] + 1 if counts["MAX_CTAS"] > 1 else 1
        bytes_ += vectors + deposits + layout.FLAG_CELLS * sets * vector * 4
    if variant.engine:
        bytes_ += _coarse(cells * variant.granule, rows)
    return _up(bytes_ + cells * 8 + cells * 4 * (rows + 1), 256)


def thread_bytes(variant: Variant) -> int:
    """Bytes of a thread's record that a variant of the runtime uses."""
    ends = {"engine": None, "asynchronous": "bulk_commits", "partial": "commits"}
    end = next((end for part, end in ends.items() if getattr(variant, part)), "full_barriers")
    record = layout.thread(variant.cluster or 1)
    return layout.size(record) if end is None else layout.offsets(record)[end]


def class_bytes(wanted: int) -> int:
    """The size of the slot that is cut for a request of `wanted` bytes."""
    sizes = ((4 + index % 4) << layout.CLASS_SHIFT - 2 + index // 4 for index in range(layout.CLASS_COUNT))
    return next((size for size in sizes if size >= wanted), 0)


def _head(variant: Variant, counts: dict[str, int]) -> int:
    """Bytes of the slot's own record, and of what follows the asynchronous engines."""
    ctas = counts["MAX_CTAS"]
    head = _up(layout.size(layout.slot(ctas)), 128)
    if not variant.engine:
        return head
    clocks = counts["CLOCK"] * 4 * (4 if variant.cluster else 2)
    barrier = layout.size(layout.MBARRIER) + clocks + counts["MAX_WARPS"] * 4
    lists = counts["MBARRIERS"] * barrier + layout.OPERATIONS * (layout.size(layout.OPERATION) + 8)
    *_, results, tables = layout.structs(ctas)
    return _up(head + layout.size(layout.engine(ctas)) + lists + layout.size(results), 128) + layout.size(tables)


def _cells(variant: Variant, shared: int, ctas: int) -> int:
    step = 2048 if variant.cluster else 256
    while shared > step * 8:
        step *= 2
    return _up(max(shared, 1), step) // variant.granule * (ctas if variant.cluster else 1)


def _coarse(nbytes: int, rows: int) -> int:
    row = (nbytes // layout.BLOCK_BYTES + 3) // 4 * 16
    return _up(row * (7 + 3 * rows) + (row // 64 + 4) // 4 * 16 * 3 * rows, 128)


def _log2(count: int) -> int:
    """The logarithm of the next power of two."""
    return (count - 1).bit_length()


def _up(value: int, to: int) -> int:
    return -(-value // to) * to
