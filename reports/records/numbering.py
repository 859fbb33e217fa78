"""Threads and offsets of findings, by CTA. In clusters they are numbered through all CTAs."""

from __future__ import annotations

from consan.instrument.findings import FindingFlags, FindingRecord
from consan.reports.model import Dim3


def rank_of(found: FindingRecord, thread: int) -> int | None:
    """The rank of a thread's CTA in its cluster."""
    return None if FindingFlags.GRID in found.flags else _cta_of(found, thread)


def _cta_of(found: FindingRecord, thread: int) -> int | None:
    """The number of a thread's CTA, in its cluster or in the grid."""
    return thread // found.geometry.cta_threads if found.geometry.cta_threads else None


def in_cta(found: FindingRecord, thread: int) -> int:
    """The number of a thread in its CTA."""
    return thread % found.geometry.cta_threads if found.geometry.cta_threads else thread


def inside(found: FindingRecord, offset: int) -> int:
    """The offset in the CTA's shared memory. Records count modulo 2**32, and a kernel may go below the first byte."""
    nbytes = found.geometry.cta_bytes
    return offset % nbytes if nbytes else (offset + (1 << 31)) % (1 << 32) - (1 << 31)


def block_of(found: FindingRecord, thread: int) -> Dim3:
    """%ctaid of a thread's CTA. The record holds that of the CTA for which it was made."""
    where, rank = found.geometry, _cta_of(found, thread)
    if rank is None:
        return where.ctaid
    here, there = unflatten(where.rank, where.cluster), unflatten(rank, where.cluster)
    x, y, z = (o - h + t for o, h, t in zip(where.ctaid, here, there, strict=True))
    return (x, y, z)


def place_of(found: FindingRecord, thread: int) -> tuple[Dim3, int | None]:
    """%ctaid of a thread's CTA, and the rank of its GPU in a launch for several."""
    (x, y, z), extent = block_of(found, thread), found.geometry.rank_grid
    return ((x, y, z % extent), z // extent) if extent else ((x, y, z), None)


def unflatten(thread: int, block: Dim3) -> Dim3:
    """Linear thread index to (x, y, z), x fastest (ISA "Special Registers: %tid")."""
    return (thread % block[0], thread // block[0] % block[1], thread // (block[0] * block[1]))
