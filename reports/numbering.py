"""Threads and offsets of findings, by CTA. In clusters the device numbers them through all CTAs (runtime/base.cuh)."""

from __future__ import annotations

from typing import Any

from consan.instrument.abi.events import FindingFlags
from consan.reports.model import Dim3


def rank_of(event: Any, thread: int) -> int | None:
    """The rank of a thread's CTA in its cluster."""
    return None if int(event["flags"]) & FindingFlags.GRID else _cta_of(event, thread)


def _cta_of(event: Any, thread: int) -> int | None:
    """The number of a thread's CTA, in its cluster or in the grid."""
    return thread // int(event["cta_threads"]) if event["cta_threads"] else None


def in_cta(event: Any, thread: int) -> int:
    """The number of a thread in its CTA."""
    return thread % int(event["cta_threads"]) if event["cta_threads"] else thread


def inside(event: Any, offset: int) -> int:
    """The offset in the CTA's shared memory. The device counts modulo 2**32, and a kernel may go below the first byte."""
    return offset % int(event["cta_bytes"]) if event["cta_bytes"] else (offset + (1 << 31)) % (1 << 32) - (1 << 31)


def block_of(event: Any, thread: int) -> Dim3:
    """%ctaid of a thread's CTA. The record holds that of the CTA which wrote it."""
    own, rank, shape = dim3(event["ctaid"]), _cta_of(event, thread), dim3(event["cluster"])
    if rank is None:
        return own
    here, there = unflatten(int(event["rank"]), shape), unflatten(rank, shape)
    x, y, z = (o - h + t for o, h, t in zip(own, here, there, strict=True))
    return (x, y, z)


def dim3(values: Any) -> Dim3:
    """Three numbers of a record."""
    x, y, z = (int(v) for v in values)
    return (x, y, z)


def unflatten(thread: int, block: Dim3) -> Dim3:
    """Linear thread index to (x, y, z), x fastest (ISA "Special Registers: %tid")."""
    return (thread % block[0], thread // block[0] % block[1], thread // (block[0] * block[1]))
