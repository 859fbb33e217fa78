"""Stored runs that somebody made up: one line that names the place, or a report; never a traceback, and nothing that a terminal acts on."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import report_samples as samples

from consan.__main__ import main
from consan.reports.formats import html, sarif, text
from consan.reports.formats.json_format import ReportError, from_json, loads, to_json
from consan.reports.formats.visible import visible, visible_lines

RUNS = {"violations": samples.violations, "deadlock": samples.deadlock}
WRONG = (None, True, -1, 1.5, "text", [], ["x"], {}, {"x": 1})


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Each place of a JSON value."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield from _places(each, (*path, key))


def _with(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(data)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", RUNS)
def test_a_wrong_value_at_any_place_is_one_line_or_a_report(name: str, step: int) -> None:
    """`step`: each place gets one wrong value of so many, in turn."""
    data = json.loads(json.dumps(to_json(RUNS[name]())))
    refused = 0
    kinds = {tuple("" if isinstance(key, int) else key for key in path): path for path in filter(None, _places(data))}
    for number, path in enumerate(kinds.values()):
        for wrong in itertools.islice(WRONG, number % step, None, step):
            try:
                report = from_json(_with(data, path, wrong))
            except ReportError:
                refused += 1
                continue
            for render in (text.render, html.render, sarif.render):
                render(report)
    assert refused > 300 // step


def test_the_line_names_the_place() -> None:
    data = to_json(samples.violations())
    with pytest.raises(ReportError, match=r"findings\[0\]\.accesses\[1\]\.line: expected a whole number, found str"):
        from_json(_with(data, ("findings", 0, "accesses", 1, "line"), "12"))


@pytest.mark.parametrize("stored", ["[" * 100_000, '{"schema": "consan.report/1", "verdict": ' + "[" * 5_000 + "]" * 5_000 + "}"])
def test_deep_nesting_is_refused(stored: str) -> None:
    with pytest.raises(ReportError):
        loads(stored)


def test_no_control_character_reaches_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b[2J\x1b[1;1Hverdict: clean\r\x9b31m\u202e\n"
    report = samples.violations()
    first = replace(report.findings[0], kernel=evil, message=evil, fix=evil)
    named = replace(report, findings=(first, *report.findings[1:]), sources={file: {8: evil} for file in report.sources}, notes=(evil,))
    stored = tmp_path / "run.json"
    stored.write_text(named.to_json())
    assert main(["report", str(stored)]) == 0
    shown = capsys.readouterr().out
    assert not {"\x1b", "\r", "\x9b", "\u202e"} & set(shown)
    assert "\\x1b[2J" in shown
    assert not [line for line in shown.splitlines() if line.startswith("verdict: clean")]
    assert main(["report", evil]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_what_is_escaped() -> None:
    assert visible("a\tb\n\x1b\x85\u2028é漢") == "a\tb\\x0a\\x1b\\x85\\u2028é漢"
    assert visible_lines("a\nb\x1b") == "a\nb\\x1b"
