"""Calls of the driver that C notes and Python reads later mean the same as those that it gets at once (SEMANTICS 12, R-GM14)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from framework_support import gap
from noted_support import EVENT, Program


def set_beside(program: Program) -> None:
    program.memset()
    program.launch(program.stream())


def set_before(program: Program) -> None:
    program.memset()
    program.call("cuEventRecord", EVENT, 0)
    stream = program.stream()
    program.wait(EVENT, stream)
    program.launch(stream)


def set_behind_the_event(program: Program) -> None:
    program.call("cuEventRecord", EVENT, 0)
    program.memset()
    stream = program.stream()
    program.wait(EVENT, stream)
    program.launch(stream)


def waited_for(program: Program) -> None:
    program.memset()
    program.call("cuStreamSynchronize", 0)
    program.launch(program.stream())


def set_again_behind_a_wait(program: Program) -> None:
    waited_for_and_set = (program.memset, lambda: program.call("cuMemFree", 0x5000), program.memset)
    for step in waited_for_and_set:
        step()
    program.launch(program.stream())


def event_waited_for(program: Program) -> None:
    program.memset()
    program.call("cuEventRecord", EVENT, 0)
    program.call("cuEventSynchronize", EVENT)
    program.launch(program.stream())


def foreign_beside(program: Program) -> None:
    program.foreign()
    program.launch(program.stream())


def foreign_behind_an_event(program: Program) -> None:
    program.foreign()
    program.call("cuEventRecord", EVENT, 0)
    program.foreign()
    stream = program.stream()
    program.wait(EVENT, stream)
    program.launch(stream)


def many(program: Program) -> None:
    for _ in range(100):
        program.memset()
    program.launch(program.stream())


def own_launch_beside(program: Program) -> None:
    program.launch(0)
    program.foreign()  # its call of the driver, which the made-up device does not make
    program.launch(program.stream())


def stream_without_work(program: Program) -> None:
    """As cuBLAS begins."""
    program.foreign()
    program.call("cuStreamDestroy", program.stream())
    program.call("cuStreamSynchronize", 0)
    set_beside(program)


def stream_with_work(program: Program) -> None:
    stream = program.stream()
    program.framework.launch("fills", stream=stream)
    program.call("cuStreamDestroy", stream)
    program.memset()
    program.framework.backend.advance(stream)


RACY = {set_beside, stream_without_work, stream_with_work, set_behind_the_event, set_again_behind_a_wait, many}
GAPS = {foreign_beside, foreign_behind_an_event, many, own_launch_beside}
CASES = {*RACY, *GAPS, set_before, waited_for, event_waited_for}


@pytest.mark.parametrize("case", sorted(CASES, key=lambda case: case.__name__), ids=lambda case: case.__name__)
def test_noted_or_told(case: Callable[[Program], None], monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    for note in (False, True):
        with monkeypatch.context() as inside:
            program = Program(inside, note=note)
            case(program)
            report = program.framework.report()
            found.append((report.verdict, [(each.kind, each.kernel) for each in report.findings], gap(report)))
    heard, noted = found
    assert noted == heard
    assert bool(heard[1]) == (case in RACY)
    assert ("races are not looked for between" in heard[2]) == (case in GAPS), heard


@pytest.mark.parametrize("works", [False, True])
def test_there_is_one_stream_again_behind_one_without_work(works: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch, note=True)
    stream, streams = program.stream(), program.framework.session.followed
    assert not streams.noting
    if works:
        program.framework.launch("fills", stream=stream)
    program.call("cuStreamDestroy", stream)
    program.call("cuEventDestroy", EVENT + 1)
    assert (program.calls.notes, streams.noting) == (True, not works)
    program.framework.backend.advance(stream)


@pytest.mark.parametrize("name", ["cuGraphKernelNodeSetParams", "cuGraphExecKernelNodeSetParams"])
def test_nodes_are_altered_after_the_order_is_lost(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch, note=False)
    streams = program.framework.session.followed
    streams.stops("the order is lost")
    assert not streams.captures.altered
    program.call(name, 0x77)
    assert streams.captures.altered
