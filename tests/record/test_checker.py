"""The checker's numbers are those of the passes and the reports; a log that fits no template is said to be broken; and bad input is."""

from __future__ import annotations

import re

import numpy as np
import pytest

from consan._errors import EnvironmentFailure, UsageError
from consan.checker import build
from consan.checker.launch import History
from consan.checker.replay import RECORD, Status, replay
from consan.instrument.abi.events import FindingFlags, Hazard, Kind, Reason
from consan.instrument.record.templates import END, STOP, Event, Flag, Template, TemplateEvent, tables
from consan.session.session import Session

TYPES = build.sources()["types.hpp"]
READ = TemplateEvent(Event.READ, site=1, bytes=4, address_word=1, a=4, b=32)
WRITE = TemplateEvent(Event.WRITE, site=2, bytes=4, address_word=1, a=4, b=32)
COPY = TemplateEvent(Event.COPY, site=4, bytes=4, address_word=1, value_word=2, b=4)
INIT = TemplateEvent(Event.MBARRIER_INIT, site=5, bytes=8, address_word=1, a=2)
ARRIVE = TemplateEvent(Event.MBARRIER_ARRIVE, site=6, bytes=8, address_word=1, a=1)
BARRIER = TemplateEvent(Event.BARRIER, Flag.WAITS, site=3, b=-1)
TEMPLATES = [(1, 2, WRITE), (2, 2, READ), (3, 1, BARRIER), (4, 4, COPY), (5, 2, INIT), (6, 2, ARRIVE)]
TABLES = tables([Template(number, words, [event]) for number, words, event in TEMPLATES])


def _enumeration(name: str) -> dict[str, int]:
    body = re.search(rf"enum {name} : \w+ \{{ (.*?) \}}", TYPES)
    assert body is not None
    found, last = {}, -1
    for item in body[1].split(","):
        word, _, value = item.partition("=")
        last = int(value) if value else last + 1
        found[word.strip()] = last
    return found


NUMBERS = {"Kind": Kind, "Reason": Reason, "FindingFlag": FindingFlags, "EventKind": Event, "EventFlag": Flag}


@pytest.mark.parametrize(("name", "numbers"), NUMBERS.items())
def test_numbers_of_the_source(name: str, numbers: type) -> None:
    for word, value in _enumeration(name).items():
        assert numbers[word.replace("NO_REASON", "NONE").removesuffix("_REASON")] == value  # type: ignore[index]


def test_more_numbers_of_the_source() -> None:
    assert _enumeration("Hazard") == {"NO_HAZARD": Hazard.NONE, "RAW": Hazard.RAW, "WAR": Hazard.WAR, "WAW": Hazard.WAW}
    assert _enumeration("Status") == {status.name: status for status in Status}
    assert f"END = {END:#X}u" in TYPES.replace("0xFFFFFFFFu", "0XFFFFFFFFu")
    assert f"STOP = {STOP:#X}u" in TYPES.replace("0xFFFFFFFEu", "0XFFFFFFFEu")
    fields = re.search(r"struct Record \{\s*u32 (.*?);", TYPES)
    assert fields is not None
    assert tuple(fields[1].split(", ")) == RECORD.names


def _history(*lanes: list[int], lines: int = 16) -> History:
    log = np.zeros((-(-len(lanes) // 32), lines, 32), np.uint32)
    for lane, words in enumerate(lanes):
        log[lane // 32, : len(words), lane % 32] = words
    return History(log, len(lanes), 1024, 64)


def _replay(*lanes: list[int], descending: bool = False, lines: int = 16) -> tuple[Status, list[tuple[int, int, int]]]:
    done = replay(TABLES, _history(*lanes, lines=lines), descending=descending)
    return done.status, [(int(one["kind"]), int(one["site"]), int(one["other_site"])) for one in done.records]


def test_a_race_of_two_lanes() -> None:
    assert _replay([1, 1024, END], [2, 1024, END]) == (Status.OK, [(Kind.DATA_RACE, 1, 2)])


def test_the_address_decides() -> None:
    assert _replay([1, 1024, END], [1, 1028, END])[1] == []


def test_a_barrier_orders() -> None:
    assert _replay([1, 1024, 3, END], [3, 2, 1024, END]) == (Status.OK, [])


def test_a_copy_and_what_came_before_it() -> None:
    """Lanes of a warp go one after the other, in both orders: so the read is always first."""
    found = _replay([1, 1024, 3, 2, 1024, END], [3, 4, 1024, 0, 0, END])[1]
    assert (Kind.DATA_RACE, 4, 1) in found
    assert (Kind.LIFETIME, 4, 0) in found


def test_an_mbarrier_whose_init_is_not_published() -> None:
    for descending in (False, True):
        found = _replay([5, 1024, END], *[[END]] * 31, [6, 1024, END], descending=descending)
        assert found == (Status.OK, [(Kind.BARRIER_MISUSE, 6, 5)])
    assert _replay([5, 1024, 3, END], [3, 6, 1024, END]) == (Status.OK, [])


def test_what_did_not_happen_is_no_access() -> None:
    assert _replay([1, 1024, END], [2, 0xFFFFFFFF, END])[1] == []


def test_bytes_that_nobody_writes_and_bytes_outside() -> None:
    assert _replay([2, 1032, END])[1] == [(Kind.UNINITIALIZED_READ, 1, 0)]
    assert _replay([1, 1024 + 62, END])[1] == [(Kind.OUT_OF_BOUNDS, 2, 0)]


@pytest.mark.parametrize(
    ("lanes", "status"),
    [
        (([7, END],), Status.CORRUPT),
        (([1, 1024],), Status.STUCK),
        (([3, STOP], [3, STOP]), Status.STUCK),
        (([1, 1024] * 8,), Status.FULL),
    ],
)
def test_logs_that_cannot_be_replayed(lanes: tuple[list[int], ...], status: Status) -> None:
    assert _replay(*lanes)[0] is status


def test_a_log_without_an_end_is_corrupt() -> None:
    assert _replay([1, 1024] * 7)[0] in (Status.CORRUPT, Status.STUCK)


NOTHING = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry none() { ret; }\n"


def test_a_launch_in_clusters_takes_called_hooks() -> None:
    session = Session(device="cpu", engine="record")
    assert session.prepare(NOTHING).recorded is not None
    assert session.prepare(NOTHING, cluster=2).recorded is None
    assert "clusters" in " ".join(session.recording.notes)


def test_without_a_compiler_the_module_takes_called_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consan.session.recording.compiler", lambda: None)
    session = Session(device="cpu", engine="record", private=True)
    prepared = session.prepare(NOTHING)
    assert prepared.recorded is None
    assert "C++ compiler" in " ".join(session.recording.notes)


def test_a_compiler_that_fails_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentFailure, match="cannot run"):
        build.compile_checker(["/no/such/compiler"], build.sources())
    with pytest.raises(EnvironmentFailure, match="could not compile"):
        build.compile_checker(["c++"], {"replay.cpp": "no C++"})


def test_an_unknown_engine() -> None:
    with pytest.raises(UsageError, match="engine='fast'"):
        Session(device="cpu", engine="fast")
