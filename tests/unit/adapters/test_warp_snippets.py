"""CUDA C++ in a program of Warp has the lines of the program."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from planted import plant

from consan.adapters.driven import warp_snippets

PROGRAM = '''first = """
    out[tid] = 1;
    """
snippet = """
    s[tid] = d[tid];
    """

seen = native(snippet, adj_snippet=first, replay_snippet=None)
made = native("d[tid] " + "= 0;")
empty = native("")
later = native(written_below)
written_below = """
    t[tid] = 0;
"""
'''


@pytest.fixture
def lines(tmp_path: Path) -> Callable[[], dict[str, Any]]:
    """A program in a file, run; Warp's function gives back what reaches it."""
    file = tmp_path / 'a "program".py'
    file.write_text(PROGRAM)
    linecache.checkcache(str(file))

    def run() -> dict[str, Any]:
        known: dict[str, Any] = {
            "__name__": "program",
            "written_below": "\n    t[tid] = 0;\n",
            "native": partial(warp_snippets.with_lines, lambda *each, **others: (each, others)),
        }
        exec(compile(PROGRAM, str(file), "exec"), known)
        return known

    return run


def test_a_snippet_begins_at_its_line(lines: Callable[[], dict[str, Any]]) -> None:
    known = lines()
    (snippet,), others = known["seen"]
    before, _, after = snippet.partition(known["snippet"])
    assert before.startswith("\n#line 4 ")
    assert before.endswith('a \\"program\\".py"\n')
    assert after == '\n#line 1 "generated_by_warp.cu"\n'
    assert others["adj_snippet"].startswith("\n#line 1 ")
    assert others["replay_snippet"] is None


@pytest.mark.parametrize(("name", "text"), [("made", "d[tid] = 0;"), ("empty", ""), ("later", "\n    t[tid] = 0;\n")])
def test_a_text_that_does_not_stand_before_the_call_is_as_it_was(name: str, text: str, lines: Callable[[], dict[str, Any]]) -> None:
    assert lines()[name] == ((text,), {})


def test_the_line_counts_from_one(lines: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, warp_snippets, 'count("\\n", 0, at) + 1', 'count("\\n", 0, at)')
    assert lines()["seen"][0][0].startswith("\n#line 3 ")
