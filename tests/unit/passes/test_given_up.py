"""Polls of mbarriers that give up, and go on as if the phase were over (R-M14)."""

from __future__ import annotations

import pytest

from consan.instrument.ptx import parse
from consan.instrument.waits.given_up import given_up

WAIT = "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;"
COUNT = "add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 1000;"
READ = "ld.shared.u32 %r3, [%r1+8];"
GIVES_UP = {
    "both end it": f"L: {WAIT} {COUNT} not.pred %p3, %p1; and.pred %p4, %p2, %p3; @%p4 bra L; {READ}",
    "a fence behind each look": f"L: {WAIT} fence.acq_rel.cta; {COUNT} not.pred %p3, %p1; and.pred %p4, %p2, %p3; @%p4 bra L; {READ}",
    "either ends it": f"L: {WAIT} {COUNT} not.pred %p3, %p2; or.pred %p4, %p3, %p1; @!%p4 bra L; {READ}",
    "two exits": f"L: {COUNT} @!%p2 bra M; {WAIT} @!%p1 bra L; M: {READ}",
    "within a loop": f"K: mov.u32 %r2, 0; L: {WAIT} {COUNT} not.pred %p3, %p1; and.pred %p4, %p2, %p3; @%p4 bra L; @%p5 bra K; {READ}",
    "an exit that only branches": f"L: {WAIT} @%p1 bra M; {COUNT} @%p2 bra L; bra M; N: ret; M: {READ}",
}
WAITS = {
    "until it is over": f"L: {WAIT} @!%p1 bra L; {READ}",
    "a trap": f"L: {WAIT} {COUNT} @%p2 bra M; trap; M: @!%p1 bra L; {READ}",
    "the end of the thread": f"L: {COUNT} @!%p2 bra M; {WAIT} @!%p1 bra L; {READ} M: ret;",
    "both are needed": f"L: {WAIT} {COUNT} and.pred %p4, %p2, %p1; @!%p4 bra L; {READ}",
    "somebody looks at the result": f"L: {WAIT} {COUNT} not.pred %p3, %p1; and.pred %p4, %p2, %p3; @%p4 bra L; @%p3 bra N; {READ} N: ret;",
    "somebody looks at the number": f"L: {COUNT} @!%p2 bra M; {WAIT} @!%p1 bra L; M: @!%p2 bra N; {READ} N: ret;",
    "one wait after the other": f"L: {COUNT} M: {WAIT} @!%p1 bra M; @%p2 bra L; {READ}",
    "one wait after the other, with one head": f"L: {WAIT} @!%p1 bra L; {COUNT} @%p2 bra L; {READ}",
    "a product behind each look": f"L: {WAIT} {COUNT} tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd1, %r2, %p1; @%p2 bra L; {READ}",
    "a look ahead in a loop that works": f"L: {WAIT} {COUNT} @%p1 bra M; bra M; M: {READ} @%p2 bra L;",
}


def _found(body: str) -> int:
    head = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()"
    text = f"{head} {{ .reg .pred %p<6>; .reg .b32 %r<4>; .reg .b64 %rd<2>; mov.u32 %r2, 0; {body} st.global.u32 [0], %r3; ret; }}"
    (function,) = parse(text, "k.ptx").functions
    return len(given_up(function))


@pytest.mark.parametrize("body", GIVES_UP.values(), ids=GIVES_UP)
def test_it_gives_up(body: str) -> None:
    assert _found(body) == 1


@pytest.mark.parametrize("body", WAITS.values(), ids=WAITS)
def test_it_waits(body: str) -> None:
    assert _found(body) == 0
