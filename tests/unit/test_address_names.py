"""Names of global addresses over several launches of one kernel: what all of them say, or nothing. And the size of a CTA at a fault."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from consan.backends.cpu.faults import Fault, LaunchStats
from consan.faults import findings_of
from consan.reports.variables import Argument, Layout, address_name
from consan.session import Session

BUFFERS = (Argument("argument 1", 0x1000, 64, "in"), Argument("argument 2", 0x2000, 64, "out"))


def _session(*launches: tuple[Argument, ...]) -> Any:
    session: Any = SimpleNamespace(_address_names={})
    for buffers in launches:
        prepared = SimpleNamespace(number=3, address_name=lambda begin, end, buffers=buffers: address_name(buffers, begin, end))
        Session._note_names(session, prepared, "k")  # type: ignore[arg-type]
    return session


def _name(session: Any, begin: int, entry: str = "k") -> str:
    return Session._address_name(session, 3, entry, begin, begin + 4)


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


def test_a_fault_in_shared_memory_gives_the_size() -> None:
    fault = Fault("out-of-bounds", "ld.shared.u32", 1, (0, 0, 0), (1, 0, 0), 1024 + 512, 4, "shared", "read", shared_bytes=512)
    prepared: Any = SimpleNamespace(instrumented=SimpleNamespace(original=lambda line: None), layout=lambda entry: Layout())
    (finding,) = findings_of(_stats(fault), prepared, "k")
    assert finding.missing == "the CTA has 512 bytes of shared memory"


def _stats(fault: Fault) -> LaunchStats:
    stats: Any = SimpleNamespace(faults=[fault], deadlocked=False)
    return stats  # type: ignore[no-any-return]
