"""Which results of mbarrier.try_wait count as ignored (R-M14)."""

from __future__ import annotations

import pytest

from consan.instrument.hazards.static import find_ignored_waits
from consan.instrument.ptx import parse

HEADER = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
 .shared .align 8 .b64 bar;
 .reg .pred %p<4>;
 .reg .b32 %r<8>;
"""
WAIT = "mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;"
LOOKED_AT = {
    "branch": f"again: {WAIT} @!%p1 bra again;",
    "guard of something else": f"{WAIT} @%p1 bar.sync 0;",
    "through arithmetic": f"again: {WAIT} selp.u32 %r1, 1, 0, %p1; and.b32 %r2, %r1, 1; setp.eq.u32 %p2, %r2, 0; @%p2 bra again;",
    "stored": f"{WAIT} selp.u32 %r1, 1, 0, %p1; st.shared.u32 [bar], %r1;",
    "earlier in the text": f"again: @%p1 bra done; {WAIT} bra again; done:",
}
IGNORED = {
    "never read": WAIT,
    "moved into a register that nobody reads": f"{WAIT} selp.u32 %r1, 1, 0, %p1; add.u32 %r2, %r1, 1;",
    "in a loop of its own": f"mov.u32 %r3, 0; again: {WAIT} add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 9; @%p2 bra again;",
    "a register of the same name elsewhere": (
        f"{{ .reg .pred q; {WAIT.replace('%p1', 'q')} }} {{ .reg .pred q; setp.eq.u32 q, %r1, 0; @q ret; }}"
    ),
}


def _found(body: str) -> list[tuple[str, str, tuple[str, ...]]]:
    module = parse(f"{HEADER} {body} ret;\n}}\n")
    return [(finding.kind, finding.reason, finding.kernels) for finding in find_ignored_waits(module)]


@pytest.mark.parametrize("body", LOOKED_AT.values(), ids=LOOKED_AT)
def test_a_result_that_decides_something_is_not_ignored(body: str) -> None:
    assert _found(body) == []


@pytest.mark.parametrize("body", IGNORED.values(), ids=IGNORED)
def test_a_result_that_decides_nothing_is_ignored(body: str) -> None:
    assert _found(body) == [("barrier-misuse", "result-ignored", ("k",))]


def test_an_ignored_test_wait_is_a_question_left_unanswered() -> None:
    assert _found(WAIT.replace("try_wait", "test_wait")) == []


def _copies(first: str, second: str, *, used: bool) -> list[tuple[str, str, tuple[str, ...]]]:
    """Two waits at two places, the second one ignored, in a module with lines."""
    look, ignored = WAIT + (" @%p1 bar.sync 0;" if used else ""), WAIT.replace("%p1", "%p2")
    head = HEADER.replace(".visible", '.file 1 "k.py"\n.visible')
    module = parse(f"{head} {first}\n{look}\n {second}\n{ignored} ret;\n}}\n")
    return [(finding.kind, finding.reason, finding.kernels) for finding in find_ignored_waits(module)]


def test_a_copy_of_a_statement_whose_result_another_copy_uses_looks_ahead() -> None:
    """As LLVM leaves it of CUTLASS's persistent GEMM, behind a loop that it has unrolled."""
    ignored = ("barrier-misuse", "result-ignored", ("k",))
    assert _copies(".loc 1 927 50", ".loc 1 927 50", used=True) == []
    assert _copies(".loc 1 927 50", ".loc 1 927 50", used=False) == [ignored, ignored]
    assert _copies(".loc 1 927 50", ".loc 1 927 51", used=True) == [ignored], "another statement of the line"
    assert _copies("", "", used=True) == [ignored], "without lines nothing is known of copies"
    assert _copies(".loc 1 0 0", ".loc 1 0 0", used=True) == [ignored]
