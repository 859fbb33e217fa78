"""Asynchronous copies between the device and the host: those of pinned memory run beside others, and the host waits for pageable memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from test_graphs import Graphs, copy_words
from test_libcuda import Word

from consan.backends.base import THREAD_STREAM
from consan.libcuda import calls, library
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


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("what", ["allocation", "free"])
def test_memory_in_the_order_of_a_stream(program: Graphs, session: Session, what: str, waits: bool) -> None:
    """Its uses come behind its allocation and before its free, also where nothing else gets the memory."""
    first, second = (program.origin, program.other) if what == "allocation" else (program.other, program.origin)
    memory = program("cuMemAllocAsync", BYTES, program.origin)
    if waits or what == "free":
        program.let(program.other, program.origin)
    program.do("cuMemsetD8Async", memory, 1, BYTES, program.other)
    if waits and what == "free":
        program.let(second, first)
    if waits or what == "free":
        program.do("cuMemFreeAsync", memory, program.origin if what == "free" else program.other)
    again = program("cuMemAllocAsync", BYTES, program.origin)
    program.do("cuMemsetD8Async", again, 2, BYTES, program.origin)
    assert kinds(session) == (set() if waits else {("global-race", "WAW")})
    names = {each.op for finding in session.report().findings for each in finding.accesses}
    assert waits or f"the stream-ordered {what}" in names


@pytest.mark.parametrize("column", [31, 32])
@pytest.mark.parametrize("name", ["_cudaMemcpy2DAsync", "_cudaMemset2DAsync"])
def test_rows_beside_rows(program: Graphs, session: Session, name: str, column: int) -> None:
    """Bytes 0 to 31 of rows of 64 are set, and others copied or set."""
    rows, to = program("cuMemAlloc_v2", BYTES), program("cuMemAlloc_v2", BYTES)
    program.do("cuMemsetD2D8Async", rows, 64, 1, 32, BYTES // 64, program.origin)
    words = (to, 32, rows + column, 64, 32, BYTES // 64, 3, program.other)
    if name == "_cudaMemset2DAsync":
        words = (rows + column, 64, 2, 32, BYTES // 64, program.other)
    assert library.driver().call(name, words) == 0
    assert kinds(session) == ({("global-race", "WAW" if "set" in name else "RAW")} if column < 32 else set())


def test_a_call_that_is_not_served_is_a_gap(program: Graphs, session: Session) -> None:
    program.add(program.origin)
    assert session.report().verdict == "clean"
    assert library.driver().call("cuMemcpyAtoA_v2", (0, 0)) == calls.NOT_SUPPORTED
    assert session.report().verdict == "incomplete"


def test_pinned_memory_that_is_not_mapped_is_no_kernels(program: Graphs, session: Session) -> None:
    pinned = program("cuMemAllocHost_v2", BYTES)
    assert program.launch(program.kernel, pinned, stream=program.origin) == calls.NOT_SUPPORTED
    report = session.report()
    assert (report.verdict, report.findings) == ("incomplete", ())
    assert any("pinned memory of the host" in note for note in report.notes)


def test_memory_that_was_freed_is_no_longer_anybodys(program: Graphs, session: Session) -> None:
    program.do("cuMemFree_v2", program.memory)
    program.launch(program.kernel, program.memory, stream=program.origin)
    (finding,) = session.report().findings
    assert (finding.kind, finding.situation) == ("out-of-bounds", "freed")


def test_a_copy_of_a_box(program: Graphs, session: Session) -> None:
    """Two slices with three rows each: bytes 4 to 19 of each row are copied."""
    given, found = np.arange(192, dtype=np.uint8), np.zeros(192, np.uint8)
    source, to = program("cuMemAlloc_v2", 192), program("cuMemAlloc_v2", 192)
    program.do("cuMemcpyHtoD_v2", source, given.ctypes.data, 192)
    program.do("cuMemsetD8_v2", to, 0, 192)
    program.do("cuMemcpy3D_v2", copy_words(to, source, pitch=32, width=16, height=3, depth=2, x=4))
    program.do("cuMemcpyDtoH_v2", found.ctypes.data, to, 192)
    wanted = np.zeros((6, 32), np.uint8)
    wanted[:, :16] = given.reshape(6, 32)[:, 4:20]
    assert (found.reshape(6, 32) == wanted).all()
    assert kinds(session) == set()


@pytest.mark.parametrize("overlaps", [False, True])
def test_columns_beside_columns(program: Graphs, session: Session, overlaps: bool) -> None:
    """Two streams copy columns: those of the second are bytes 8 to 15 of each row, or begin one byte earlier."""
    to, source = program("cuMemAlloc_v2", BYTES), program("cuMemAlloc_v2", BYTES)
    at = 7 if overlaps else 8
    for stream, first in ((program.origin, 0), (program.other, at)):
        of_source = (0, 0, 2, 0, source, 0, 16)
        words = (Word * 16)(*of_source, first, 0, 2, 0, to, 0, 16, 8, 32)
        program.do("cuMemcpy2DAsync_v2", words, stream)
    assert kinds(session) == ({("global-race", "WAW")} if overlaps else set())


@pytest.mark.parametrize("suffix", ["", "_ptsz"])
@pytest.mark.parametrize("waits", [False, True])
def test_each_thread_has_a_default_stream_of_its_own(program: Graphs, session: Session, waits: bool, suffix: str) -> None:
    """It is stream 0 of calls with the suffix (nvcc --default-stream per-thread)."""

    def call(name: str, *words: int) -> None:
        words = (*words, 0 if suffix else THREAD_STREAM)
        assert library.driver().call(f"{name}{suffix}", [*words, *[0] * (16 - len(words))]) == 0

    def fill(value: int) -> None:
        call("cuMemsetD8Async", program.memory, value, BYTES)
        if waits:
            call("cuStreamSynchronize")

    for value in (1, 2):
        thread = threading.Thread(target=fill, args=(value,))
        thread.start()
        thread.join()
    fill(3)
    fill(4)
    assert kinds(session) == (set() if waits else {("global-race", "WAW")})
    assert sum(each.count for each in session.report().findings) == (0 if waits else 5), "all pairs but the last two"
