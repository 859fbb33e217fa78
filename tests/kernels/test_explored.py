"""Kernels of schedules/: bugs that the first schedule does not show, and other schedules do. `consan check` finds them by itself."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import twin_file

import consan
from consan.backends.cpu.engine import steered
from consan.commands.check import EXPLORES
from consan.session.planning import exploration, schedules

FILES = sorted((Path(__file__).parent / "schedules").glob("*.cu"))
LONG = 60.0  # seconds: a loaded machine needs some; the exploration ends with the first error


def _launch(path: Path, *, racy: bool, **how: Any) -> tuple[Any, dict[str, Any]]:
    spec = twin_file.read(path)
    args = spec.fresh_args()
    kernel = twin_file.kernel(path, racy)
    return consan.launch(kernel, spec.grid, spec.block, spec.parameters(args), smem=spec.smem, device="cpu", **how), args


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_another_schedule_shows_is_found(path: Path) -> None:
    report, _ = _launch(path, racy=True, explore=LONG)
    kinds = {kind for expectation in twin_file.read(path).expected for kind in expectation.kinds}
    shown = [each for each in report.findings if each.kind in kinds]
    assert report.verdict == "violations"
    assert shown
    assert report.kernels[0].schedules is not None
    assert not report.kernels[0].schedules.holds
    for finding in shown:
        again, _ = _launch(path, racy=True, seed=finding.seed or 0)
        assert finding.kind in {each.kind for each in again.findings}, "its seed repeats it"
        assert {each.seed for each in again.findings} == {None}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_time_that_check_takes_by_default_is_enough(path: Path) -> None:
    """`consan check` gives 2 s, of the processor where the machine is busy."""
    began = time.process_time()
    report, _ = _launch(path, racy=True, explore=EXPLORES)
    assert report.verdict == "violations"
    assert time.process_time() - began < EXPLORES


def test_a_schedule_has_more_seconds_of_the_clock_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a launch is slow as others use the processor, a limit by the clock would end each schedule before it can show anything."""
    given, of_clock = list[float](), schedules.Stopwatch.of_clock
    busy = SimpleNamespace(monotonic=time.monotonic, process_time=lambda: time.process_time() / 100)
    monkeypatch.setattr(schedules, "time", busy)

    def limit(watch: schedules.Stopwatch, seconds: float) -> float:
        given.append(of_clock(watch, seconds))
        return given[-1]

    monkeypatch.setattr(schedules.Stopwatch, "of_clock", limit)
    report, _ = _launch(FILES[0], racy=True, explore=EXPLORES)
    assert report.verdict == "violations"
    assert given[0] > EXPLORES


def test_a_kernel_that_observes_nothing_is_not_explored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploration.Exploration, "run", lambda each: pytest.fail("it costs nothing"))
    path = Path(__file__).parent / "twins" / "war_loop.cu"
    report, _ = _launch(path, racy=False, explore=LONG)
    schedules = report.kernels[0].schedules
    assert schedules is not None
    assert (report.verdict, schedules.holds, schedules.explored) == ("clean", True, 0)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_repaired_kernel_is_clean_in_other_schedules(path: Path) -> None:
    report, args = _launch(path, racy=False, explore=1.0)
    assert [each for each in report.findings if each.severity != "note"] == []
    assert report.verdict == "clean"
    assert report.kernels[0].schedules is not None
    assert report.kernels[0].schedules.explored
    assert report.kernels[0].launches == 1, "the other schedules are no launches of the program"
    spec = twin_file.read(path)
    for name in spec.results:
        np.testing.assert_array_equal(args[name].reshape(-1), spec.reference(name).reshape(-1), err_msg="as the launch itself leaves it")


def test_some_bugs_need_another_schedule() -> None:
    clean = [path.stem for path in FILES if _launch(path, racy=True)[0].verdict == "clean"]
    shown = {"stale_barrier", "counter_reset", "ticket_of_a_lane", "place_in_a_warp", "stale_barrier_of_stores"}
    assert shown | {"lock_found_taken", "one_cta_overtakes"} <= set(clean)


def test_the_readers_of_an_overwritten_copy_need_a_schedule_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploration, "unread_refills", lambda found: set())
    monkeypatch.setattr(exploration, "unread_laps", lambda found: set())
    (path,) = (path for path in FILES if path.stem == "refilled_before_read")
    report, _ = _launch(path, racy=True, explore=LONG)
    assert report.verdict == "violations"
    assert "data-race" not in {each.kind for each in report.findings}


def test_behind_a_wait_that_never_ends_other_schedules_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploration, "stuck_at_phases", lambda found: False)
    (path,) = (path for path in FILES if path.stem == "token_of_last_round")
    report, _ = _launch(path, racy=True, explore=LONG)
    assert {each.kind for each in report.findings} == {"deadlock"}


def _ring(**how: Any) -> tuple[str, ...]:
    report, _ = _launch(Path(__file__).parent / "twins" / "mbarrier_empty_not_waited.cu", racy=True, **how)
    return tuple(each.kind for each in report.findings)


@pytest.mark.parametrize("seed", [0, 2])
def test_a_stage_that_is_overwritten_comes_before_the_phase_that_nobody_has_waited_for(seed: int) -> None:
    """Its readers come too late in the schedules of these seeds."""
    assert "data-race" not in _ring(seed=seed)
    assert _ring(seed=seed, explore=LONG)[0] == "data-race"


def test_the_readers_of_a_lapped_stage_need_a_schedule_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploration, "unread_laps", lambda found: set())
    assert "data-race" not in _ring(seed=0, explore=LONG)


def test_all_outcomes_are_those_of_each_thread() -> None:
    (path,) = (path for path in FILES if path.stem == "ticket_of_a_lane")
    report, _ = _launch(path, racy=False, explore=LONG)
    whole = report.kernels[0].schedules
    assert whole is not None
    assert (whole.observations, whole.possible, whole.outcomes, whole.ended) == (1, 2 * 64, 2 * 64, "")


def test_without_other_orders_of_threads_not_all_outcomes_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steered, "MOST_TURNS", 0)
    monkeypatch.setattr(steered, "CHOSEN", 0)
    (path,) = (path for path in FILES if path.stem == "ticket_of_a_lane")
    report, _ = _launch(path, racy=True, explore=LONG)
    part = report.kernels[0].schedules
    assert report.verdict == "clean"
    assert part is not None
    assert part.outcomes < part.possible == 2 * 64
    assert f"{part.outcomes} of 128 outcomes of 1 observation seen" in " ".join(consan.reports.render(report).split())


def _verdict_without(action: steered.Action, name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The verdict on a racy file, where schedules are not steered in one of the ways."""
    planned = exploration.steerings
    monkeypatch.setattr(exploration, "steerings", lambda *given: (each for each in planned(*given) if each.action != action))
    (path,) = (path for path in FILES if path.stem == name)
    return _launch(path, racy=True, explore=LONG)[0].verdict


def test_a_wait_for_stores_fails_where_the_arrivals_of_others_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _verdict_without(steered.Action.AHEAD, "stale_barrier_of_stores", monkeypatch) == "clean"


def test_a_lock_is_found_taken_only_between_two_steps_of_another_cta(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _verdict_without(steered.Action.BETWEEN, "lock_found_taken", monkeypatch) == "clean"
