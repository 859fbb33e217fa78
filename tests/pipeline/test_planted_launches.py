"""Faults planted in the rules about launches (R-GM14) change what is found in kernels of tests/kernels/launches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from launch_programs import floats, looked_up, program, situations
from planted import Plant, break_checker, plant

from consan.checker.compiled import concurrent_launches as checked, replay
from consan.checker.judging import grid
from consan.session.comparing import launch_memory, streams
from consan.session.comparing.pairs import pair
from consan.session.modules import prepared


def dependent(racy: bool) -> Any:
    with program(racy) as (run, live):
        x, y, z, weights = (floats() for _ in range(4))
        run("first_layer", [x, y])
        run("second_layer", [y, weights, z], programmatic=True)
    return situations(live.report)


def chain(middle: str) -> Any:
    with program() as (run, live):
        x, y, z, weights = (floats() for _ in range(4))
        run("first_layer", [x, y])
        run(middle, [y, weights, z] if middle == "second_layer" else [floats()], programmatic=True)
        run("third_layer", [x], programmatic=True)
    return situations(live.report)


def streams_of(edge: Callable[[Any], None]) -> Any:
    with program() as (run, live):
        x, y, z, weights = (floats() for _ in range(4))
        run("first_layer", [x, y])
        edge(run)
        run("second_layer", [y, weights, z], stream=run.other)
    return situations(live.report)


def sums(racy: bool) -> Any:
    with program(racy, grid=1) as (run, live):
        both = np.zeros(64, np.int32)
        run("add", [both])
        run("add", [both], stream=run.other)
    return situations(live.report)


def same_value() -> Any:
    with program(grid=1) as (run, live):
        x = floats()
        run("no_wait", [x])
        run("no_wait", [x], stream=run.other)
    return situations(live.report)


def signalled() -> Any:
    with program(grid=1) as (run, live):
        data, flag, out = (np.zeros(64, np.int32) for _ in range(3))
        run("publish", [data, flag])
        run("consume", [data, flag, out], stream=run.other)
    return live.report.verdict


def handed_on() -> Any:
    with program(True) as (run, live):
        x, y = floats(), floats()
        run("hand_on", [x, y, 0])
        run("hand_on", [x, y, 1], programmatic=True)
    return situations(live.report)


def halves() -> Any:
    with program(grid=1) as (run, live):
        x, both = floats(), floats(256)
        run("first_layer", [x, both[:64]])
        run("no_wait", [both[::2]], stream=run.other)
    return [(each.situation, each.count) for each in live.report.findings]


def short_of_room() -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(grid, "MOST_CONCURRENT", 300)
        report = looked_up(edge=False)
    return situations(report), report.verdict, [each.count for each in report.findings]


# What is replaced by what in a file of the checker, and what shows it.
OF_THE_CHECKER = {
    "a thread's own wait": ("retained.hpp", "if (known == waited_) return known;", "return 0;", lambda: dependent(False)),
    "a wait before a barrier": (
        "retained.hpp",
        "&& views_.before(other, wait.thread",
        "&& false && views_.before(other, wait.thread",
        lambda: dependent(False),
    ),
    "CTAs that share nothing": ("launch.hpp", "!grid_.retained.wanted() && ", "", lambda: dependent(True)),
    "reads stand for others": ("retained.hpp", "++known->value;", "full_ = true;", short_of_room),
    "reads that others stand for": ("retained.hpp", "++known->value;", ";", short_of_room),
    "the launch has waited": ("retained.hpp", "waited_ |= rank;", "", lambda: chain("second_layer")),
}


def by_event() -> Any:
    return streams_of(lambda run: run.other.wait(run.stream.record()))


def by_host() -> Any:
    return streams_of(lambda run: run.stream.synchronize())


def by_nothing() -> Any:
    return streams_of(lambda run: None)


def waiting_chain() -> Any:
    return chain("second_layer")


# The same in a Python module: the function that changes.
OF_THE_HOST: dict[str, tuple[ModuleType, str, str, str, Callable[[], Any]]] = {
    "events": (streams, "Stream.wait", "self._over |= reached.over if", "reached.over if", by_event),
    "the host waits": (streams, "Stream.synchronize", "self._timeline.host_waits(self._over)", "pass", by_host),
    "streams are apart": (
        streams,
        "Stream.place",
        "StreamPlace(self._over, self._over | self._waited if self._waited else self._over)",
        "StreamPlace(timeline.everything, timeline.everything)",
        by_nothing,
    ),
    "a chain of waits": (streams, "StreamPlace.end", "self.start | self.waited if waits", "self.start if waits", waiting_chain),
    "no chain without waits": (streams, "StreamPlace.end", "if waits else self.start", "", lambda: chain("no_wait")),
    "programmatic": (streams, "Stream.place", "if not programmatic or", "if True or", lambda: dependent(True)),
    "morally strong": (checked, "_may_race", "and not (strong and", "and not (False and", lambda: sums(False)),
    "scopes": (checked, "_may_race", '["scope"])) >= scope', '["scope"])) >= 0', lambda: sums(True)),
    "same value": (checked, "_same_values", "return stored >=", "return False and stored >=", same_value),
    "flags": (pair, "LaunchPair.raced", "bool(found) and may_signal(", "False and may_signal(", signalled),
    "variables of the module": (prepared, "Prepared.variables", "if each.space in", "if False and each.space in", handed_on),
    "places of arrays": (launch_memory, "Copied.move", "+ np.uint64(HOST)", '* np.uint64(0) + rows["device"][inside]', halves),
}


@pytest.mark.parametrize("rule", [pytest.param(rule, marks=pytest.mark.slow) for rule in OF_THE_CHECKER])
def test_a_fault_in_the_checker(rule: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file, old, new, shown = OF_THE_CHECKER[rule]
    right = shown()
    break_checker(monkeypatch, tmp_path, (replay, grid), file, old, new)
    assert shown() != right


@pytest.mark.slow  # it compiles the checker
@pytest.mark.parametrize("behind", [False, True])
def test_whether_an_access_is_behind_a_wait(behind: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    right = dependent(racy=behind)
    Plant(monkeypatch, (replay, grid)).decides("Edge::GRID_WAIT", behind)
    assert dependent(racy=behind) != right


@pytest.mark.parametrize("rule", OF_THE_HOST)
def test_a_fault_on_the_host(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, old, new, shown = OF_THE_HOST[rule]
    right = shown()
    plant(monkeypatch, module, old, new, name)
    assert shown() != right
