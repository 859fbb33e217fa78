"""The comparer of the pass tests: it can fail, in each of its ways."""

from __future__ import annotations

from pathlib import Path

import case_file
import pytest

LINES = ["a %r1;", "b %r1, %r2;", "c;"]


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        (("a <X>;", "b <X>, <Y>;"), None),
        (("a <X>;", "", "b <Y>, <X>;"), None),
        (("a <X>;", "b <Y>, <X>;"), "not found after line 1: b <Y>, <X>;"),
        (("b <*>;", "a <X>;"), "not found after line 2: a <X>;"),
        (("a",), "not found after line 0: a"),
        (("not: c;", "b <*>;"), None),
        (("a <X>;", "not: b <X>, <*>", "c;"), "must not be there: b <X>, <*>"),
        (("b <*>", "not: c;"), "must not be there: c;"),
    ],
)
def test_mismatch(expected: tuple[str, ...], message: str | None) -> None:
    assert case_file.mismatch(LINES, expected) == message


def test_calls_are_folded() -> None:
    text = """{
.param .b64 __consan_a1; st.param.b64 [__consan_a1], %rd1;
.param .b32 __consan_a2; st.param.b32 [__consan_a2], 7;
.param .b64 __consan_r;
@!%p1 call (__consan_r), __consan_f, (__consan_a1, __consan_a2);
ld.param.b64 %__consan_t5, [__consan_r];
}
  call (r),  mine, (%r1);
"""
    assert case_file.fold(text) == ["@!%p1 call f(%rd1, 7) -> %__consan_t5", "call (r), mine, (%r1);"]


def test_a_case_expects_something(tmp_path: Path) -> None:
    path = tmp_path / "empty.ptx"
    path.write_text(".version 8.0\n")
    with pytest.raises(ValueError, match="nothing expected"):
        case_file.read(path)
