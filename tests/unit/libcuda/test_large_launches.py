"""Large launches of two streams: the text and the parameters tell the bytes that they touch, so they need no log of global memory.

Bytes that a launch perhaps touches serve where its log has no room.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest
from planted import plant
from reversed_tile import HEADER
from test_libcuda import Program, Word

from consan.checker.judging import grid as judging_grid
from consan.libcuda import library
from consan.session.executing import judging
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.session.session_options import open_session

THREADS = 128
SMALL, LARGE = 4, judging.FORETOLD * 32 // THREADS  # CTAs
KERNELS = f"""{HEADER}
.visible .entry add(.param .u64 to, .param .u64 from)
{{
.reg .b64 %d<4>; .reg .b32 %r<4>;
ld.param.u64 %d0, [to]; ld.param.u64 %d1, [from];
mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r0, %r1, {THREADS}, %r0;
mul.wide.u32 %d2, %r0, 4; add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;
ld.global.u32 %r2, [%d1]; add.u32 %r2, %r2, 1; WRITE [%d0], %r2;
ret;
}}
"""
STORE, ADD = "st.global.u32", "red.relaxed.gpu.global.add.u32"


NO_ROOM = 1 << 17  # bytes for logs, where a launch needs more


@pytest.fixture
def program(session: Session) -> Iterator[Program]:
    library.enter(session)
    yield Program()
    library.leave()


def launched(program: Program, session: Session, ctas: int, *, waits: bool, write: str = STORE) -> tuple[str, list[tuple[str, str]]]:
    """One stream writes what another one reads, or both add to the same. `waits`: the second one behind the first."""
    module = program("cuModuleLoadData", ctypes.c_char_p(KERNELS.replace("WRITE", write).encode()))
    kernel, size = program("cuModuleGetFunction", module, ctypes.c_char_p(b"add")), 4 * ctas * THREADS
    first, second, third = (program("cuMemAlloc_v2", size) for _ in range(3))
    one, other, event = program("cuStreamCreate", 1), program("cuStreamCreate", 1), program("cuEventCreate", 0)

    def launch(to: int, source: int, stream: int) -> None:
        words = [Word(to), Word(source)]
        places = (ctypes.c_void_p * 2)(*(ctypes.addressof(word) for word in words))
        program.do("cuLaunchKernel", kernel, ctas, 1, 1, THREADS, 1, 1, 0, stream, places, 0)

    launch(second, first, one)
    if waits:
        program.do("cuEventRecord", event, one)
        program.do("cuStreamWaitEvent", other, event, 0)
    launch(third, second, other) if write == STORE else launch(second, first, other)
    report = session.report()
    return report.verdict, [(each.kind, each.hazard) for each in report.findings]


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The histories of each replay of global memory."""
    counts, real = list[int](), judging_grid.check_grid

    def counted(tables: Any, histories: Any, *given: Any, **more: Any) -> Any:
        counts.append(len(histories))
        return real(tables, histories, *given, **more)

    monkeypatch.setattr("consan.checker.judging.recorder.check_grid", counted)
    return counts


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("ctas", [SMALL, LARGE])
def test_launches_of_two_streams(program: Program, session: Session, replayed: list[int], ctas: int, waits: bool) -> None:
    found = launched(program, session, ctas, waits=waits)
    assert found == (("clean", []) if waits else ("violations", [("global-race", "RAW")]))
    assert bool(replayed) == (ctas == SMALL), "a large launch has no log"


def test_a_launch_whose_writes_may_meet_others_has_a_log(program: Program, session: Session) -> None:
    assert launched(program, session, LARGE, waits=False, write=ADD) == ("clean", [])
    assert session.report().kernels[0].compared_launches


def test_a_fault_planted_in_what_the_text_tells(program: Program, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, judging, "found if found is not None and found.certain else None", "found")
    launched(program, session, LARGE, waits=False, write=ADD)
    assert not session.report().kernels[0].compared_launches


def _adds(session: Session, *, stores: bool, waits: bool) -> tuple[str, int]:
    """Each thread of a launch that has no room for its log may add to a word, beside a launch that stores there.

    Gives the verdict, and how many launches were compared.
    """
    program = Program()
    text = (
        KERNELS.replace("WRITE", "setp.gt.u32 %p0, %r2, 0; @!%p0 bra none; " + ADD)
        .replace(".reg .b32", ".reg .pred %p<2>; .reg .b32")
        .replace("ret;", "none: ret;")
    )
    text = text.replace("mad.lo.u32 %r0, %r1, ", "mad.lo.u32 %r3, %r1, ").replace("mul.wide.u32", "and.b32 %r0, %r3, 127; mul.wide.u32")
    store = KERNELS[KERNELS.index(".visible") :].replace("WRITE", STORE).replace("entry add", "entry store")
    module = program("cuModuleLoadData", ctypes.c_char_p((text + store).encode()))
    add, put = (program("cuModuleGetFunction", module, ctypes.c_char_p(name)) for name in (b"add", b"store"))
    to, source = (program("cuMemAlloc_v2", 4 * THREADS) for _ in range(2))
    one, other, event = program("cuStreamCreate", 1), program("cuStreamCreate", 1), program("cuEventCreate", 0)

    def launch(kernel: int, ctas: int, stream: int, target: int) -> None:
        words = [Word(target), Word(source)]
        places = (ctypes.c_void_p * 2)(*(ctypes.addressof(word) for word in words))
        program.do("cuLaunchKernel", kernel, ctas, 1, 1, THREADS, 1, 1, 0, stream, places, 0)

    launch(add, LARGE, one, to)
    if waits:
        program.do("cuEventRecord", event, one)
        program.do("cuStreamWaitEvent", other, event, 0)
    launch(put, 1, other, to if stores else program("cuMemAlloc_v2", 4 * THREADS))
    report = session.report()
    assert not report.findings
    return report.verdict, next(each.compared_launches for each in report.kernels if each.name == "add")


@pytest.mark.parametrize(("stores", "waits"), [(True, True), (True, False), (False, False)])
def test_a_launch_whose_log_has_no_room(stores: bool, waits: bool) -> None:
    """Nobody knows whether it touches what another stream stores: then the report is incomplete."""
    session = open_session(SessionOptions(device="cpu", trace_memory=NO_ROOM))
    library.enter(session)
    try:
        assert _adds(session, stores=stores, waits=waits) == ("incomplete" if stores and not waits else "clean", 0)
    finally:
        library.leave()
        session.close()
