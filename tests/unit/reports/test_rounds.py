"""Accesses that come after a release in the run and before it in the text: of a later round, behind it, or of another thread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
import report_samples as samples
from planted import plant

from consan.instrument.relations import Relations
from consan.instrument.sites import Site
from consan.reports.model import Finding
from consan.reports.words import ordering
from consan.reports.words.ordering import in_one_round, of_a_later_round

WRITE, RELEASE, READ = (Site(k, "k", op, "", "write", "global", 4, k, "", "k.cu", k) for k, op in enumerate(("st", "st.release", "ld"), 1))
RACE = Finding("global-race", "k", hazard="RAW", accesses=(samples.WRITE, samples.READ))
ROUND: set[tuple[int, int]] = {(1, 2), (2, 1)}  # a loop around the write and its release


class _Paths:
    """A text in which an instruction comes after another one as some pairs of lines say."""

    def __init__(self, paths: set[tuple[int, int]]) -> None:
        self._paths = paths

    def follows(self, _: str, line: int, later: int) -> bool:
        return (line, later) in self._paths


@pytest.mark.parametrize(
    ("paths", "hazard", "situation"),
    [
        (ROUND, "WAR", "released-round-before"),  # the reader is in another branch
        (ROUND | {(1, 3), (3, 1)}, "WAR", "released-round-before"),
        (ROUND | {(1, 3)}, "RAW", "released-before"),  # the read is behind the loop
        ({(1, 2), (1, 3)}, "RAW", "released-by-other"),
    ],
    ids=["two roles", "one loop", "behind the loop", "no loop"],
)
def test_the_text_tells_of_which_round_an_access_is(paths: set[tuple[int, int]], hazard: str, situation: str) -> None:
    relations: Any = _Paths(paths)
    made, _, told = of_a_later_round(RACE, (WRITE, READ), RELEASE, "released-before", cast(Relations, relations))
    assert (made.hazard, told) == (hazard, situation)


@pytest.mark.parametrize(
    ("paths", "hazard", "situation"),
    [
        ({(2, 3), (3, 9), (2, 9)}, "WAR", "released-reads-before"),  # an exchange, then the bytes are used again
        ({(2, 3), (3, 9), (9, 3)}, "RAW", "released-before"),  # rounds
        ({(2, 3), (2, 9)}, "RAW", "released-before"),  # two roles
        ({(2, 3), (9, 3)}, "RAW", "released-before"),  # the release comes too early
    ],
)
def test_a_write_behind_the_release_that_each_thread_does_behind_its_read(paths: set[tuple[int, int]], hazard: str, situation: str) -> None:
    relations: Any = _Paths(paths)
    again = replace(WRITE, line=9, ptx_line=9)
    made, (first, _), told = of_a_later_round(RACE, (again, READ), RELEASE, "released-before", cast(Relations, relations))
    assert (made.hazard, told, first is READ) == (hazard, situation, hazard == "WAR")


def test_the_first_write_of_some_bytes_is_of_no_later_round() -> None:
    relations, again = cast(Relations, _Paths({(2, 3), (3, 9), (2, 9)})), replace(WRITE, line=9, ptx_line=9)
    made, _, told = of_a_later_round(RACE, (again, READ), RELEASE, "released-before", relations, is_first=True)
    assert (made.hazard, told) == ("RAW", "released-before")


def test_a_fault_of_a_write_behind_the_read(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, ordering, "_only_behind(first, second, finding", "_only_behind(second, first, finding", "of_a_later_round")
    with pytest.raises(AssertionError):
        test_a_write_behind_the_release_that_each_thread_does_behind_its_read({(2, 3), (3, 9), (2, 9)}, "WAR", "released-reads-before")


def test_without_the_text_lines_decide() -> None:
    assert of_a_later_round(RACE, (WRITE, READ), RELEASE, "released-before", None)[2] == "released-round-before"
    behind = replace(WRITE, line=9)
    assert of_a_later_round(RACE, (behind, READ), RELEASE, "released-before", None) == (RACE, (behind, READ), "released-before")


@pytest.mark.parametrize(("line", "situation"), [(0, "flag-before"), (1, "no-synchronisation"), (9, "no-synchronisation")])
def test_a_flag_that_is_written_later_in_the_text_is_of_an_earlier_round(line: int, situation: str) -> None:
    assert in_one_round("global-race", "flag-before", WRITE, replace(RELEASE, line=line)) == situation
    assert in_one_round("global-race", "released-before", WRITE, replace(RELEASE, line=line)) == "released-before"
