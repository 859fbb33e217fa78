"""Polls that leave their rounds in the log sleep: the longer a thread has waited, the longer (instrument/record/text/backoff.py)."""

from __future__ import annotations

import numpy as np
import planted
import pytest

import consan
from consan.instrument.ptx import parse
from consan.instrument.record import record
from consan.instrument.record.analyses import awaited
from consan.instrument.record.text import backoff
from consan.toolchain.assemble import assemble_cached

# As Triton does it: one thread polls, and the others get the value through shared memory. `{more}`: in the loop.
POLL = """.version 8.6
.target {target}
.address_size 64
.visible .entry meet(.param .u64 flag, .param .u64 out) {{
  .reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<4>; .shared .align 4 .b32 got;
  ld.param.u64 %rd1, [flag]; ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
$L1:
  {more}
  @%p1 {poll};
  @%p1 st.shared.b32 [got], %r2;
  bar.sync 0;
  ld.shared.b32 %r3, [got];
  bar.sync 0;
  setp.lt.u32 %p2, %r3, 1;
  @%p2 bra $L1;
  st.global.b32 [%rd2], %r3;
  ret;
}}
"""
ADD = "atom.add.acquire.sys.global.u32 %r2, [%rd1], 0"
POLLS = {
    "add": ADD,
    "load": "ld.acquire.sys.global.u32 %r2, [%rd1]",
    "swap": "atom.cas.acquire.sys.global.b32 %r2, [%rd1], 1, 1",
    "or": "atom.or.acquire.sys.global.b32 %r2, [%rd1], 0",
}
WORKS = {
    "stores": ("st.global.b32 [%rd2], %r1;", ADD),
    "loads": ("ld.global.b32 %r4, [%rd2];", ADD),
    "counts": ("", ADD.replace("atom.add", "atom.inc")),
    "nobody reads": ("", "st.release.sys.global.u32 [%rd1], 1"),
}


def _sleeps(more: str = "", poll: str = ADD, target: str = "sm_90a") -> bool:
    text = POLL.format(more=more, poll=poll, target=target)
    done = record(text, global_races=True)
    assert assemble_cached(done.ptx, target).cubin
    assert done.expansion is None or "nanosleep" not in done.expansion.text.ptx, "the host waits for nobody"
    return "nanosleep" in done.ptx


@pytest.mark.parametrize("poll", POLLS.values(), ids=POLLS)
def test_a_loop_that_only_waits_sleeps(poll: str) -> None:
    assert _sleeps(poll=poll)


@pytest.mark.parametrize(("more", "poll"), WORKS.values(), ids=WORKS)
def test_a_loop_that_works_does_not(more: str, poll: str) -> None:
    assert not _sleeps(more, poll)


def test_a_target_without_the_instruction_has_no_sleep() -> None:
    assert [backoff.exists(parse(POLL.format(more="", poll=ADD, target=target))) for target in ("sm_60", "sm_75")] == [False, True]


def test_of_no_loop_everything_could_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of loops that work bites."""
    planted.plant(monkeypatch, awaited, "return not row.event(instruction).first.may_be_global", "return True")
    assert _sleeps(*WORKS["stores"])


# rounds, how much is added to the value in each, whether the thread polls; the least and the most ns of its sleeps
SLEEPS = {
    "short": (60, 0, True, 0, 0),
    "begins": (64 + 17, 0, True, 256 * 15, 256 * 24),
    "long": (400, 0, True, 16 << 20, 200 << 20),
    "another value each round": (400, 1, True, 0, 0),
    "another thread polls": (400, 0, False, 0, 0),
}
FAR = {
    "short": (60, 0, True, 0, 0),
    "begins": (64 + 17, 0, True, 256 * 15, 256 * 24),
    "long": (400, 0, True, 5 << 30, 8 << 30),
    "another value each round": (400, 1, True, 0, 0),
}


def _total(rounds: int, adds: int, polls: bool, *, far: bool) -> int:
    total = np.zeros(1, np.uint64)
    consan.launch(consan.Kernel(_summed(rounds, adds=adds, polls=polls, far=far)), 1, 1, [total], device="cpu")
    return int(total[0])


@pytest.mark.parametrize(("rounds", "adds", "polls", "least", "most"), SLEEPS.values(), ids=SLEEPS)
def test_sleeps_double(rounds: int, adds: int, polls: bool, least: int, most: int) -> None:
    assert least <= _total(rounds, adds, polls, far=False) <= most


@pytest.mark.parametrize(("rounds", "adds", "polls", "least", "most"), FAR.values(), ids=FAR)
def test_sleeps_for_another_gpu_double_further(rounds: int, adds: int, polls: bool, least: int, most: int) -> None:
    """The host there may check a launch for seconds: the rounds that a log has would not fit."""
    assert least <= _total(rounds, adds, polls, far=True) <= most


def test_a_fault_that_ends_the_sleeps_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FAR_DOUBLED", 12)
    assert _total(*FAR["long"][:3], far=True) < FAR["long"][3]


@pytest.mark.parametrize("scope", ["sys", "gpu"])
def test_a_scope_that_other_gpus_share_is_far(scope: str) -> None:
    text = POLL.format(more="", poll=ADD.replace("sys", scope), target="sm_90a")
    assert ["__consan_sleeps" in record(text, global_races=True, leaves=leaves).ptx for leaves in (True, False)] == [scope == "sys", False]
    assert assemble_cached(record(text, global_races=True, leaves=True).ptx, "sm_90a").cubin


def _summed(rounds: int, *, adds: int, polls: bool, far: bool) -> str:
    """A kernel that adds up the sleeps of one poll."""
    text = backoff.slept(0, "%place", "%seen", "@%guard ", "", far=far)
    slept = "@%__consan_pz nanosleep.u32 %__consan_zt;"
    assert slept in text
    text = text.replace(slept, "cvt.u64.u32 %wide, %__consan_zt;\n@%__consan_pz add.u64 %sum, %sum, %wide;")
    return f""".version 8.6
.target sm_90a
.address_size 64
.visible .entry summed(.param .u64 out) {{
{backoff.declarations(1)}
.reg .b64 %place, %seen, %sum, %wide, %to; .reg .pred %guard, %more; .reg .b32 %n;
mov.b64 %place, 4096; mov.b64 %seen, 0; mov.b64 %sum, 0; mov.b32 %n, 0; setp.eq.s32 %guard, 1, {int(polls)};
$L1:
{text}
add.u64 %seen, %seen, {adds}; add.u32 %n, %n, 1; setp.lt.u32 %more, %n, {rounds};
@%more bra $L1;
ld.param.u64 %to, [out]; st.global.u64 [%to], %sum;
ret;
}}
"""


def _looks(leaves: bool) -> int:
    return record(POLL.format(more="", poll=ADD, target="sm_90a"), global_races=True, leaves=leaves).ptx.count(
        f"or.pred %__consan_q, %__consan_q, {backoff.LONG}"
    )


def test_a_thread_that_has_slept_long_looks_whether_it_is_to_leave() -> None:
    """Others look in one of 256 rounds: these would take a second or more."""
    assert (_looks(leaves=True) > 0, _looks(leaves=False)) == (True, 0)
