"""Launches that may run beside each other (R-GM14): streams, events, programmatic dependent launches."""

from __future__ import annotations

import numpy as np
import pytest
from launch_programs import compiled, floats, looked_up, program, residual, situations

import consan
from consan._errors import UsageError
from consan.reports.verdict.suppression import make_rule
from consan.suppressions import finish

LAUNCHES = "launches: races between"


@pytest.mark.parametrize("racy", [False, True])
def test_a_programmatic_dependent_waits_before_it_reads(racy: bool) -> None:
    with program(racy) as (run, live):
        x, y, z, weights = (floats() for _ in range(4))
        run("first_layer", [x, y])
        run("second_layer", [y, weights, z], programmatic=True)
    assert situations(live.report) == ([("no-grid-wait", "RAW", "error")] if racy else [])
    assert live.report.verdict == ("violations" if racy else "clean")
    assert not any(each.startswith(LAUNCHES) for each in live.report.not_checked)
    assert (z == 2).all()


@pytest.mark.slow
@pytest.mark.parametrize("how", range(6))
def test_a_wait_before_all_reads_of_the_input(how: int) -> None:
    report = residual(how)
    assert (situations(report), report.verdict) == ([], "clean")


@pytest.mark.slow
@pytest.mark.parametrize("how", range(10, 17))
def test_reads_that_no_wait_comes_before(how: int) -> None:
    assert situations(residual(how)) == [("no-grid-wait", "RAW", "error")]


def test_what_the_report_says_of_it() -> None:
    with program(True) as (run, live):
        x, y, z, weights = (floats() for _ in range(4))
        run("first_layer", [x, y])
        run("second_layer", [y, weights, z], programmatic=True)
    (finding,) = live.report.findings
    first, second = finding.accesses
    assert (finding.kind, finding.kernel, finding.count, finding.ctas) == ("global-race", "second_layer", 128, 2)
    assert (first.role, second.role, first.bytes, first.name) == ("write", "read", second.bytes, "element 0 of argument 2 (out)")
    assert second.name == "element 0 of argument 1 (in)"
    assert "does not wait for the end of first_layer" in finding.message
    assert "cudaGridDependencySynchronize()" in finding.fix


def test_the_weights_of_an_earlier_launch_need_a_wait_too() -> None:
    with program() as (run, live):
        x, y, z, weights = (floats() for _ in range(4))
        run("no_wait", [weights])
        run("first_layer", [x, y], programmatic=True)
        run("second_layer", [y, weights, z], programmatic=True)
    assert situations(live.report) == [("no-chained-wait", "RAW", "error")]


@pytest.mark.parametrize("middle", ["second_layer", "no_wait"])
def test_a_wait_covers_what_the_launch_before_has_waited_for(middle: str) -> None:
    with program() as (run, live):
        x, y, z, weights = (floats() for _ in range(4))
        run("first_layer", [x, y])
        run(middle, [y, weights, z] if middle == "second_layer" else [floats()], programmatic=True)
        run("third_layer", [x], programmatic=True)
    assert situations(live.report) == ([] if middle == "second_layer" else [("no-chained-wait", "WAR", "error")])


@pytest.mark.parametrize(
    ("edge", "clean"), [("none", False), ("event", True), ("early event", False), ("stream", True), ("host", True), ("wrong way", False)]
)
def test_two_streams(edge: str, clean: bool) -> None:
    with program() as (run, live):
        x, y, z, weights = (floats() for _ in range(4))
        early = run.stream.record()
        run("first_layer", [x, y])
        if edge in ("event", "early event"):
            run.other.wait(run.stream.record() if edge == "event" else early)
        elif edge == "stream":
            run.other.wait(run.stream)
        elif edge == "host":
            run.stream.synchronize()
        elif edge == "wrong way":
            run.stream.wait(run.other)
        run("second_layer", [y, weights, z], stream=run.other)
    assert situations(live.report) == ([] if clean else [("no-stream-edge", "RAW", "error")])


def test_a_launch_without_a_stream_comes_after_all_and_before_all_that_follow() -> None:
    with program() as (run, live):
        x, y, z, weights = (floats() for _ in range(4))
        run("first_layer", [x, y])
        run("second_layer", [y, weights, z], stream=None)
        run("third_layer", [x], stream=run.other)
    assert situations(live.report) == []


def test_parts_of_one_array_are_other_bytes_and_views_are_the_same() -> None:
    with program(grid=1) as (run, live):
        x, both = floats(), floats(256)
        run("first_layer", [x, both[:64]])
        run("first_layer", [x, both[64:128]], stream=run.other)
        run("no_wait", [both[128:][::2]], stream=run.other)
        assert live is not None
    assert situations(live.report) == []
    with program(grid=1) as (run, live):
        x, both = floats(), floats(256)
        run("first_layer", [x, both[:64]])
        run("no_wait", [both[::2]], stream=run.other)
    assert [(each.situation, each.count) for each in live.report.findings] == [("no-stream-edge", 32)]


@pytest.mark.parametrize("racy", [False, True])
def test_a_variable_of_the_module_is_memory_of_all_its_launches(racy: bool) -> None:
    with program(racy) as (run, live):
        x, y = floats(), floats()
        run("hand_on", [x, y, 0])
        run("hand_on", [x, y, 1], programmatic=True)
    assert situations(live.report) == ([("no-grid-wait", "RAW", "error")] if racy else [])
    assert (y == 2).all()


def test_another_module_has_variables_of_its_own() -> None:
    with program() as (run, live):
        x, y = floats(), floats()
        run("hand_on", [x, y, 0])
        run.racy = True
        run("hand_on", [x, y, 1], stream=run.other)
    assert (live.report.verdict, live.report.findings) == ("clean", ())


@pytest.mark.parametrize("racy", [False, True])
def test_atomics_of_two_streams(racy: bool) -> None:
    with program(racy, grid=1) as (run, live):
        sums = np.zeros(64, np.int32)
        run("add", [sums])
        run("add", [sums], stream=run.other)
    assert (sums == 2).all()
    assert [each.situation for each in live.report.findings] == (["no-stream-edge"] if racy else [])


def test_stores_of_one_value_are_a_warning() -> None:
    with program(grid=1) as (run, live):
        x = floats()
        run("no_wait", [x])
        run("no_wait", [x], stream=run.other)
    assert situations(live.report) == [("no-stream-edge", "WAW", "warning")]
    assert live.report.verdict == "clean"


def test_launches_that_may_synchronise_through_a_flag_are_not_judged() -> None:
    with program(grid=1) as (run, live):
        data, flag, out = (np.zeros(64, np.int32) for _ in range(3))
        run("publish", [data, flag])
        run("consume", [data, flag, out], stream=run.other)
    assert live.report.findings == ()
    assert live.report.verdict == "incomplete"
    assert "may synchronise through memory" in " ".join(live.report.incomplete)


@pytest.mark.parametrize("options", [{"global_memory": "off"}, {"engine": "inline"}])
def test_launches_whose_accesses_are_not_known_are_not_judged(options: dict[str, str]) -> None:
    with program(**options) as (run, live):
        x, y = floats(), floats()
        run("first_layer", [x, y])
        run("first_layer", [x, y], stream=run.other)
    assert live.report.verdict == "incomplete"
    assert "the accesses of one are not known in full" in " ".join(live.report.incomplete)


def test_more_accesses_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consan.checker.judging.grid.MOST_CONCURRENT", 8)
    with program() as (run, live):
        x, y = floats(), floats()
        run("first_layer", [x, y])
        run("first_layer", [x, y], stream=run.other)
    assert live.report.verdict == "incomplete"


@pytest.mark.parametrize("edge", [False, True])
def test_reads_of_the_same_bytes_where_there_is_no_room_for_each(edge: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """512 reads of 4 words, and 128 writes. One word races; reads that are alike have one row."""
    monkeypatch.setattr("consan.checker.judging.grid.MOST_CONCURRENT", 300)
    report = looked_up(edge)
    assert (situations(report), report.incomplete) == ([] if edge else [("no-stream-edge", "RAW", "error")], ())
    assert [each.count for each in report.findings] == ([] if edge else [128])


def test_bad_input() -> None:
    kernel = compiled(False, "no_wait")
    with pytest.raises(UsageError, match="inside of a block of consan"):
        consan.launch(kernel, 1, 64, [floats()], device="cpu", stream=consan.Stream())
    with pytest.raises(UsageError, match="expected a consan"):
        consan.launch(kernel, 1, 64, [floats()], device="cpu", stream=0)  # type: ignore[arg-type]
    with consan.check(device="cpu"):
        with pytest.raises(UsageError, match="needs a stream"):
            consan.launch(kernel, 1, 64, [floats()], device="cpu", programmatic=True)
        with pytest.raises(UsageError, match="is no event"):
            consan.Stream().wait(3)  # type: ignore[arg-type]
        stream = consan.Stream()
        consan.launch(kernel, 1, 64, [floats()], device="cpu", stream=stream)
    with consan.check(device="cpu"), pytest.raises(UsageError, match="in which it was used first"):
        consan.launch(kernel, 1, 64, [floats()], device="cpu", stream=stream)


def test_a_race_between_launches_can_be_suppressed() -> None:
    with program(True) as (run, live):
        x, y, z, weights = (floats() for _ in range(4))
        run("first_layer", [x, y])
        run("second_layer", [y, weights, z], programmatic=True)
    report = finish(live.report, [make_rule("global-race", "known", "a table", kernel="second_layer")])
    assert (report.findings[0].suppressed is not None, report.verdict) == (True, "clean")
