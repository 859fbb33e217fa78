"""Asynchronous copies between the device and the host: those of pinned memory run beside others, and the host waits for pageable memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from test_graphs import Graphs

from consan.libcuda import library
from consan.session.session import Session

BYTES = 512


@pytest.fixture
def program(session: Session) -> Iterator[Graphs]:
    library.enter(session)
    yield Graphs()
    library.leave()


def kinds(session: Session) -> set[tuple[str, str]]:
    return {(each.kind, each.hazard) for each in session.report().findings}


@pytest.mark.parametrize("overlaps", [False, True])
def test_two_copies_into_pinned_memory(program: Graphs, session: Session, overlaps: bool) -> None:
    pinned, other = program("cuMemAllocHost_v2", 2 * BYTES), program("cuMemAlloc_v2", BYTES)
    program.add(program.origin)
    program.do("cuMemcpyDtoHAsync_v2", pinned, program.memory, BYTES, program.origin)
    program.do("cuMemcpyDtoHAsync_v2", pinned + (BYTES // 2 if overlaps else BYTES), other, BYTES, program.other)
    assert kinds(session) == ({("global-race", "WAW")} if overlaps else set())
    program.do("cuMemFreeHost", pinned)


@pytest.mark.parametrize("waits", [False, True])
def test_pinned_memory_on_its_way_to_the_device(program: Graphs, session: Session, waits: bool) -> None:
    pinned, other = program("cuMemHostAlloc", BYTES, 0), program("cuMemAlloc_v2", BYTES)
    program.add(program.third)
    program.do("cuMemcpyHtoDAsync_v2", other, pinned, BYTES, program.origin)
    if waits:
        program.let(program.third, program.origin)
    program.do("cuMemcpyDtoHAsync_v2", pinned, program.memory, BYTES, program.third)
    assert kinds(session) == (set() if waits else {("global-race", "WAR")})


@pytest.mark.parametrize("is_pinned", [False, True])
def test_the_host_waits_for_a_copy_to_pageable_memory(program: Graphs, session: Session, is_pinned: bool) -> None:
    pageable = np.zeros(BYTES, np.uint8)
    to = program("cuMemAllocHost_v2", BYTES) if is_pinned else pageable.ctypes.data
    program.do("cuMemcpyDtoHAsync_v2", to, program.memory, BYTES, program.origin)
    program.add(program.other)
    assert kinds(session) == ({("global-race", "WAR")} if is_pinned else set())


def test_pinned_memory_that_was_freed_is_another_ones(program: Graphs, session: Session) -> None:
    other, pinned = program("cuMemAlloc_v2", BYTES), program("cuMemAllocHost_v2", BYTES)
    program.add(program.origin)
    program.do("cuMemcpyDtoHAsync_v2", pinned, program.memory, BYTES, program.origin)
    program.do("cuMemFreeHost", pinned)
    program.do("cuMemcpyDtoHAsync_v2", program("cuMemAllocHost_v2", BYTES), other, BYTES, program.other)
    assert not kinds(session)
