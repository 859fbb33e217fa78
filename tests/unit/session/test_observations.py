"""Whether what a kernel does may depend on the schedule: "it cannot" is certain."""

from __future__ import annotations

import pytest

from consan.instrument.ptx import parse
from consan.session.planning.observations import depends_on_schedule, leaves_the_same, observations

THREADS = 64
TEXT = """
.version 8.0
.target sm_90a
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.extern .func (.param .b64 r) malloc (.param .b64 n);
.visible .entry k(.param .u64 p)
{{
    .reg .pred %p<5>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [p];
    {body}
    ret;
}}
"""
BRANCH = "setp.eq.s32 %p1, %r1, 3; @%p1 bra L; st.global.u32 [%rd1+4], 1; L:"
OTHER = "st.global.u32 [%rd1+4], 1;"
STORE = "st.global.u32 [%rd1+4], %r1;"
ADDRESS = "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], 1;"
CASES = {
    "nothing": ("mov.u32 %r1, %tid.x;" + ADDRESS, False),
    "a barrier of all": ("bar.sync 0; bar.sync 0, 64; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;", False),
    "a weak load": ("ld.global.u32 %r1, [%rd1];" + BRANCH, False),
    "a vote": ("vote.sync.ballot.b32 %r1, %p2, -1;" + BRANCH, False),
    "a sum of integers": ("red.global.add.u32 [%rd1], 1; ld.global.u32 %r1, [%rd1];" + BRANCH, False),
    "an atomic that decides": ("atom.global.add.u32 %r1, [%rd1], 1;" + BRANCH, True),
    "an atomic that gives a place": ("atom.global.add.u32 %r1, [%rd1], 1;" + ADDRESS, True),
    "an atomic whose result is stored": ("atom.shared.add.u32 %r1, [bar], 1;" + STORE, False),
    "an atomic with an order": ("atom.acq_rel.gpu.shared.add.u32 %r1, [bar], 1;" + STORE, True),
    "an atomic and a fence": ("atom.shared.add.u32 %r1, [bar], 1; fence.acq_rel.gpu;" + STORE, True),
    "an atomic that nobody looks at, and a fence": ("fence.acq_rel.gpu; atom.global.add.u32 %r1, [%rd1], 1;" + OTHER, False),
    "an atomic that acquires, and that nobody looks at": ("atom.acquire.gpu.global.add.u32 %r1, [%rd1], 1;" + OTHER, True),
    "an atomic that a predicate looks at": ("fence.acq_rel.gpu; atom.global.add.u32 %r1, [%rd1], 1; setp.eq.u32 %p1, %r1, 3;", True),
    "a load that nobody looks at, and a fence": ("ld.volatile.global.u32 %r1, [%rd1]; fence.acq_rel.gpu;" + OTHER, False),
    "an atomic that nobody looks at beside what is unknown": ("atom.global.add.u32 %r1, [%rd1], 1; frobnicate.u32 %r2, [%rd1];", True),
    "two operations that nobody looks at": (
        "atom.global.add.u32 %r3, [%rd1], 1; atom.global.max.u32 %r4, [%rd1], 1; ld.global.u32 %r1, [%rd1];" + BRANCH, True),
    "an atomic through memory": ("atom.shared.add.u32 %r1, [bar], 1;" + STORE + "ld.global.u32 %r2, [%rd1+4]; setp.eq.s32 %p1, %r2, 1;"
                                 " @%p1 bra L; st.global.u32 [%rd1+8], 1; L:", True),
    "a volatile load": ("ld.volatile.global.u32 %r1, [%rd1];" + BRANCH, True),
    "a sum of reals": ("red.global.add.f32 [%rd1], %f1; ld.global.u32 %r1, [%rd1];" + BRANCH, True),
    "two operations": ("red.global.add.u32 [%rd1], 1; red.global.max.u32 [%rd1], 1; ld.global.u32 %r1, [%rd1];" + BRANCH, True),
    "an exchange": ("atom.global.exch.b32 %r3, [%rd1], 1; ld.global.u32 %r1, [%rd1];" + BRANCH, True),
    "an mbarrier": ("mbarrier.init.shared.b64 [bar], 1;", True),
    "a wait": ("mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;", True),
    "a copy to an mbarrier": ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [bar];", True),
    "a copy of a group": ("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16; cp.async.bulk.commit_group;", False),
    "a barrier of some": ("bar.sync 1, 32;", True),
    "an arrival": ("bar.arrive 1, 64;", True),
    "who is active": ("activemask.b32 %r1;" + BRANCH, True),
    "who is active, unused": ("activemask.b32 %r1;" + STORE, False),
    "a clock": ("mov.u32 %r1, %clock;" + BRANCH, True),
    "a multiprocessor": ("mov.u32 %r1, %smid;" + ADDRESS, True),
    "a clock that is stored": ("mov.u32 %r1, %clock;" + STORE, False),
    "memory of the system": ("{ .param .b64 n; .param .b64 r; st.param.b64 [n], %rd1; call (r), malloc, (n); }", True),
    "a dependent grid": ("griddepcontrol.wait;", True),
    "unknown": ("frobnicate.u32 %r1, [%rd1];", True),
}  # fmt: skip


def _depends(body: str, racing: tuple[int, ...] = ()) -> bool:
    module = parse(TEXT.format(body=body), "k.ptx")
    return depends_on_schedule(module, observations(module, {"k"}, THREADS), racing) is not None


@pytest.mark.parametrize("name", CASES)
def test_dependence(name: str) -> None:
    body, expected = CASES[name]
    assert _depends(body) is expected


def test_a_racing_load_is_an_observation() -> None:
    body = "ld.global.u32 %r1, [%rd1];" + BRANCH
    line = next(number for number, text in enumerate(TEXT.format(body=body).splitlines(), 1) if "ld.global" in text)
    assert _depends(body, (line,))
    assert not _depends("ld.global.u32 %r1, [%rd1];" + STORE, (line,)), "its value decides nothing"


LEAVE_THE_SAME = {
    **dict.fromkeys(("nothing", "a barrier of all", "a weak load", "a vote", "a sum of integers", "a copy of a group"), True),
    **dict.fromkeys(("an atomic whose result is stored", "a volatile load", "a sum of reals", "two operations", "an exchange"), False),
    **dict.fromkeys(("an mbarrier", "a barrier of some", "a clock that is stored", "who is active, unused", "unknown"), False),
}


@pytest.mark.parametrize("name", LEAVE_THE_SAME)
def test_what_no_schedule_changes(name: str) -> None:
    """The results, too: what decides nothing may be stored."""
    assert leaves_the_same(parse(TEXT.format(body=CASES[name][0]), "k.ptx"), {"k"}, THREADS) is LEAVE_THE_SAME[name]


@pytest.mark.parametrize("store", ["st.volatile.global.u32", "st.relaxed.gpu.global.u32", "st.release.gpu.global.u32"])
def test_the_last_of_strong_stores_stays(store: str) -> None:
    assert not leaves_the_same(parse(TEXT.format(body=f"{store} [%rd1], %r1;"), "k.ptx"), {"k"}, THREADS)
