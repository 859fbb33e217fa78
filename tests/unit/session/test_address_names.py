"""Names of global addresses over several launches of one kernel: what all of them say, or nothing. And the size of a CTA at a fault."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from consan.backends.cpu.state.faults import Fault, LaunchStats
from consan.ranges.forms import ParameterWord
from consan.reports.source.variables import Argument, Layout, address_name
from consan.session.executing.endings import findings_of
from consan.session.modules.layouts import AddressNames, PointedBuffers

BUFFERS = (Argument("argument 1", 0x1000, 64, "in"), Argument("argument 2", 0x2000, 64, "out"))


def _session(*launches: tuple[Argument, ...]) -> AddressNames:
    names = AddressNames()
    for buffers in launches:
        prepared: Any = SimpleNamespace(number=3, address_name=lambda begin, end, buffers=buffers: address_name(buffers, begin, end))
        names.note(prepared, "k")
    return names


def _name(names: AddressNames, begin: int, entry: str = "k") -> str:
    return names.name(3, entry, begin, begin + 4)


def test_one_launch_names_its_arguments() -> None:
    session = _session(BUFFERS)
    assert (_name(session, 0x2010), _name(session, 0x2010, "other")) == ("bytes 16..19 of argument 2 (out)", "")


def test_launches_with_other_buffers_name_nothing() -> None:
    swapped = (Argument("argument 1", 0x2000, 64, "in"), Argument("argument 2", 0x1000, 64, "out"))
    assert _name(_session(BUFFERS, BUFFERS), 0x2010) == "bytes 16..19 of argument 2 (out)"
    assert _name(_session(BUFFERS, swapped), 0x2010) == ""
    assert _name(_session(BUFFERS, ()), 0x2010) == "", "a launch whose arguments are not known may be the one"


def test_after_many_launches_nothing_is_named() -> None:
    assert _name(_session(*[BUFFERS] * 64), 0x2010)
    assert _name(_session(*[BUFFERS] * 65), 0x2010) == ""


def _pointed(*values: int) -> PointedBuffers:
    words = {ParameterWord(number, 0, 8): 4 if number < 2 else 1 for number in range(len(values))}
    kernel: Any = SimpleNamespace(words=words, name=lambda number: ("", "x", "out", "n")[number])
    return PointedBuffers(kernel, tuple(value.to_bytes(8, "little") for value in values))


def test_pointers_among_the_parameters_name_what_lies_behind_them() -> None:
    name = _pointed(0x7F0000001000, 0x7F0000003000, 1 << 20)
    assert name(0x7F0000001010, 0x7F0000001014) == "element 4 of argument 1 (x)"
    assert name(0x7F0000002FFC, 0x7F0000003000) == "element 2047 of argument 1 (x)"
    assert name(0x7F0000003008, 0x7F0000003010) == "elements 2..3 of argument 2 (out)"
    assert name(0x7F0000000FFC, 0x7F0000001000) == "", "a number is no pointer, though one is less than the address"


def test_an_array_that_is_given_twice_is_the_first_parameters() -> None:
    name = _pointed(0x7F0000001000, 0x7F0000001000)
    assert name(0x7F0000001010, 0x7F0000001014) == "element 4 of argument 1 (x)"
    assert _pointed()(0x7F0000001010, 0x7F0000001014) == ""


@pytest.mark.parametrize(
    ("offset", "dynamic", "more"),
    [(512, None, False), (512, 0, True), (-4, 0, False)],
)
def test_a_fault_in_shared_memory_gives_the_size(offset: int, dynamic: int | None, more: bool) -> None:
    fault = Fault("out-of-bounds", "ld.shared.u32", 1, (0, 0, 0), (1, 0, 0), 1024 + offset, 4, "shared", "read", shared_bytes=512)
    layout = Layout(dynamic=dynamic)
    prepared: Any = SimpleNamespace(plain="", instrumented=SimpleNamespace(original=lambda *_: None), layout=lambda entry: layout)
    (finding,) = findings_of(_stats(fault), prepared, "k")
    assert f"touches 4 bytes at offset {offset} of shared memory; the CTA's shared memory is bytes 0..511" in finding.message
    assert (finding.missing, "more dynamic shared memory" in finding.fix) == ("", more)


def _stats(fault: Fault) -> LaunchStats:
    stats: Any = SimpleNamespace(faults=[fault], deadlocked=False)
    return stats  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        (0x2010, 0x2014, "element 4 of argument 2 (out)"),
        (0x2010, 0x2020, "elements 4..7 of argument 2 (out)"),
        (0x2010, 0x2012, "bytes 16..17 of argument 2 (out)"),
        (0x2012, 0x2016, "bytes 18..21 of argument 2 (out)"),
    ],
)
def test_whole_elements_have_their_index(begin: int, end: int, expected: str) -> None:
    assert address_name([Argument("argument 2", 0x2000, 64, "out", 4)], begin, end) == expected
