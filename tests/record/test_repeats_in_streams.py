"""Launches that repeat among several streams take the prepared way, and have the place that the long way would give them."""

from __future__ import annotations

import pytest
from framework_support import BLOCK, FakeCalls, Framework, gap
from planted import plant

from consan.reports.model import Report
from consan.session import frameworks, global_looks
from consan.session.framework_launch import FrameworkLaunch
from consan.session.repeated_launch import NOT_REPEATED

BEHIND = 4 * 256  # bytes


class Program(Framework):
    """A program of two streams. `short`: which launches took the prepared way."""

    def __init__(self) -> None:
        super().__init__(calls=FakeCalls())
        self.second, self.short = self.calls.stream(), list[bool]()

    def again(self, entry: str, *, out: int = 0, number: int = 0, stream: int = 0, way: bool = True) -> None:
        """A launch like one before it in its stream. `way`: the prepared one."""
        launch = FrameworkLaunch(entry, (2, 1, 1), BLOCK, (1, 1, 1), stream, self.module)
        values = ((self.out + out).to_bytes(8, "little"), self.source.to_bytes(8, "little"), number.to_bytes(4, "little"))
        repeated = self.session.frameworks.repeated(self.prepared, launch) if way else None
        make = lambda: self.backend.launch(self.module, entry, launch.grid, BLOCK, list(values), stream=stream)  # noqa: E731
        self.short.append(repeated is not None and repeated.make(lambda: values, make, ()) is not NOT_REPEATED)
        if not self.short[-1]:
            self.launch(entry, number, out=out, stream=stream)


def filled(*, out: int, ordered: bool = False, way: bool = True) -> Report:
    """Two launches of `fills` in each stream, the second ones by the prepared way: they have other bytes if `out` is BEHIND."""
    program = Program()
    program.launch("fills")
    program.launch("fills", out=BEHIND, stream=program.second)
    if ordered:
        program.calls.edge(0, program.second)
    program.again("fills", way=way)
    program.again("fills", out=out, stream=program.second, way=way)
    assert program.short == [way, way]
    return program.report()


@pytest.mark.parametrize("way", [True, False], ids=["prepared", "long"])
@pytest.mark.parametrize(("out", "verdict"), [(0, "violations"), (BEHIND, "clean")], ids=["race", "separate"])
def test_launches_whose_bytes_are_known_are_compared(out: int, verdict: str, way: bool) -> None:
    report = filled(out=out, way=way)
    assert (report.verdict, [finding.situation for finding in report.findings]) == (verdict, ["no-stream-edge"] * (out == 0))
    assert sum(kernel.launches for kernel in report.kernels) == 4


def test_the_order_of_the_streams_counts() -> None:
    """The edge is before the last launch of the first stream."""
    assert filled(out=0, ordered=True).verdict == "violations"
    program = Program()
    program.launch("fills")
    program.launch("fills", out=BEHIND, stream=program.second)
    program.again("fills")
    program.calls.edge(0, program.second)
    program.again("fills", stream=program.second)
    assert program.short == [True, True]
    assert program.report().verdict == "clean"


@pytest.mark.parametrize("way", [True, False], ids=["prepared", "long"])
def test_launches_whose_bytes_nobody_looks_at(monkeypatch: pytest.MonkeyPatch, way: bool) -> None:
    """`scatters` writes where memory says: after the last look, all that may run beside it has that as a reason."""
    monkeypatch.setattr(global_looks, "MOST_COMPARED", 1)
    program = Program()
    for _ in range(3):  # two with their global memory
        program.launch("scatters", 1)
    program.launch("exchanges", 1)  # this one is looked at
    program.backend.synchronize()
    program.calls.call("cuCtxSynchronize")
    program.again("scatters", number=1, way=way)
    program.launch("fills", out=BEHIND, stream=program.second)
    assert program.short == [way]
    said = gap(program.report())
    assert "between fills and what may run at the same time in another stream: all accesses of scatters are not known" in said


def test_a_launch_that_is_looked_at_takes_the_long_way() -> None:
    program = Program()
    program.launch("scatters", 1)
    program.again("scatters", number=1)
    assert program.short == [False]


def test_a_launch_without_a_place() -> None:
    """Planted: nothing is compared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frameworks.Frameworks, "launched_again", lambda *_: None)
        assert filled(out=0).verdict == "clean"


def test_a_launch_with_the_record_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: it has the accesses of the launch that was looked at last, and its own are not missed."""
    plant(monkeypatch, frameworks, "self.judge.recording.accesses.forget()", "pass", "Frameworks.launched_again")
    with pytest.raises(AssertionError):
        test_launches_whose_bytes_nobody_looks_at(monkeypatch, way=True)
