"""Names of Triton's buffers: the line that writes them, and the call in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from consan.reports.decoding.buffers import enclosing_call, named_by_line
from consan.reports.model import Access, AsyncInfo, Buffer, Finding
from consan.reports.source.names import name_without_element
from consan.reports.words.frameworks import CUDA, GLUON, TRITON

LINE = "    total = tl.dot(tl.load(a), tl.load(b + k * stride_of_b, mask=m), total)"
COPY = Access("asynchronous copy", "cp.async.cg.shared.global", asynchronous=AsyncInfo("cp.async"))
READ = Access("read", "ldmatrix", file="k.py", line=9)


@pytest.mark.parametrize(
    ("line", "at", "expected"),
    [
        (LINE, "a)", "tl.load(a)"),
        (LINE, "b +", "tl.load"),  # longer than what is shown
        (LINE, "total)", "tl.dot"),
        (LINE, "total =", ""),
        ("  x = tl.load(", "", "tl.load"),  # goes on in the next line
        ("  x = (a + b)", "b)", ""),
        ("  f((a), b)", "b)", "f((a), b)"),
        ("  ring.index(k).load(layout)", "layout", "load(layout)"),
    ],
)
def test_the_call_that_a_column_is_in(line: str, at: str, expected: str) -> None:
    assert enclosing_call(line, line.rindex(at) if at else len(line)) == expected


@pytest.mark.parametrize(("at", "expected"), [("tl.load(a)", "tl.load(a)"), ("tl.dot", "tl.dot"), ("tl.load(b", "tl.load")])
def test_the_call_that_begins_at_a_column(at: str, expected: str) -> None:
    """As Triton 3.9 counts them: from 1."""
    assert enclosing_call(LINE, LINE.index(at) + 1) == expected


def test_a_column_beyond_the_line() -> None:
    assert enclosing_call("x", 99) == enclosing_call("", 0) == ""


def _finding(tmp_path: Path, name: str = "dynamic shared memory", *accesses: Access) -> Finding:
    file = tmp_path / "k.py"
    file.write_text(f"{LINE}\n")
    copy = replace(COPY, file=str(file), line=1, column=LINE.index("a)"))
    return Finding("missing-wait", "k", accesses=accesses or (copy, READ), buffer=Buffer(name, "shared", 0, 64))


@pytest.mark.parametrize("framework", [TRITON, GLUON])
def test_a_buffer_is_named_by_the_line_that_writes_it(tmp_path: Path, framework: str) -> None:
    named = named_by_line(_finding(tmp_path), framework).buffer
    assert named is not None
    assert named.name == "the buffer written at k.py:1 (tl.load(a))"
    assert name_without_element(named.name) == named.name


def test_the_owner_of_a_buffer_stays(tmp_path: Path) -> None:
    named = named_by_line(_finding(tmp_path, "dynamic shared memory of the CTA of rank 1"), TRITON).buffer
    assert named is not None
    assert named.name == "the buffer written at k.py:1 (tl.load(a)) of the CTA of rank 1"


def test_what_is_known_by_name_or_not_written_stays(tmp_path: Path) -> None:
    for finding, framework in (
        (_finding(tmp_path), CUDA),
        (_finding(tmp_path, "tile"), TRITON),
        (_finding(tmp_path, "dynamic shared memory", READ, READ), TRITON),
        (_finding(tmp_path, "dynamic shared memory", COPY, READ), TRITON),  # no line
        (replace(_finding(tmp_path), buffer=None), TRITON),
    ):
        assert named_by_line(finding, framework) is finding
