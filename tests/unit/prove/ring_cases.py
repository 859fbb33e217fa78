"""Rings whose answers are known, with what is changed in the text of some."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from ring_programs import BYTES, HALF, Ring, RingStep, RingWriter, answer_of_text

WAIT, READ, FREE = RingStep("wait", "full"), RingStep("read", flip=1), RingStep("arrive", "empty")
EMPTY, WRITE, FULL = RingStep("wait", "empty", flip=1), RingStep("write"), RingStep("arrive", "full")
USE = (WAIT, READ, FREE)


def stored(stages: int, **changes: object) -> Ring:
    """A ring that threads fill by stores."""
    both = {"full": stages, "empty": stages}
    found = Ring(stages, (EMPTY, WRITE, FULL), USE, {"full": HALF, "empty": HALF}, both, BYTES)
    return replace(found, **changes)  # type: ignore[arg-type]


def copied(stages: int, **changes: object) -> Ring:
    """A ring that one thread fills by bulk copies."""
    fill = replace(EMPTY, below=1), RingStep("expect", "full", below=1), RingStep("copy", "full", below=1)
    return replace(stored(stages, fill=fill, counts={"full": 1, "empty": HALF}), **changes)  # type: ignore[arg-type]


ISSUE, DRAIN = RingStep("issue"), RingStep("drain")


def issued(*fill: RingStep, **changes: object) -> Ring:
    """A ring of two stages that threads fill by `cp.async`."""
    return stored(2, fill=(EMPTY, *fill), **changes)


def sent(*use: RingStep) -> Ring:
    """A ring of two stages that bulk copies fill and bulk stores empty."""
    return copied(2, use=(WAIT, *use), counts={"full": 1, "empty": 1})


SEND, SENT, FREED = RingStep("send", below=1), RingStep("sent", below=1), replace(FREE, below=1)
NEXT = replace(FULL, ahead=-1, behind=1)  # a stage is handed over in the round behind


def late(begin: int) -> tuple[RingStep, ...]:
    """Threads that wait for an empty stage from a round on."""
    return RingStep("wait", "empty", ahead=-2, behind=begin), WRITE, FULL


def _endless(found: re.Match[str]) -> str:
    """A stage of its own for each round, and one mbarrier."""
    return f"mov.u32 {found[1]};" if found[1] else f"{found[2]}, 0,"


def _other_place(found: re.Match[str]) -> str:
    """The other one of two mbarriers."""
    before, to, stage, begin = found.groups()
    return f"{before}mad.lo.s32 {to}, {stage}, -8, {begin};\nadd.s32 {to}, {to}, 8;"


Case = tuple[Ring, str, str | Callable[[re.Match[str]], str]]
"""A ring, and a pattern in the text of its kernel with what comes in its place."""
PROVEN: dict[str, Case] = {
    "stages of stores": (stored(2), "", ""),
    "stages of copies": (copied(3), "", ""),
    "waits that begin late": (stored(2, fill=late(2)), "", ""),
    "stages of cp.async": (issued(ISSUE, DRAIN, FULL), "", ""),
    "stages of cp.async, a round behind": (issued(ISSUE, replace(DRAIN, flip=1), NEXT, longer=-1), "", ""),
    "stages that bulk stores empty": (sent(SEND, SENT, FREED), "", ""),
}
UNPROVEN: dict[str, Case] = {
    "a wait with the other parity": (stored(2, use=(replace(WAIT, flip=1), READ, FREE)), "", ""),
    "no wait for an empty stage": (stored(1, fill=(WRITE, FULL)), "", ""),
    "a stage that is handed back too early": (copied(1, use=(WAIT, FREE, READ)), "", ""),
    "a stage that is told before it is filled": (stored(1, fill=(EMPTY, FULL, WRITE)), "", ""),
    "more threads than an mbarrier counts": (stored(1, counts={"full": 1, "empty": HALF}), "", ""),
    "a reader that does not arrive": (copied(1, use=(WAIT, READ, replace(FREE, below=1)), counts={"full": 1, "empty": 1}), "", ""),
    "fewer bytes than are copied": (copied(1, expected=BYTES // 2), "", ""),
    "more bytes than are copied": (copied(1, expected=2 * BYTES), "", ""),
    "a wait at the next mbarrier": (stored(2, use=(replace(WAIT, ahead=1), READ, FREE)), "", ""),
    "a read of the next stage": (copied(2, use=(WAIT, replace(READ, ahead=1), FREE)), "", ""),
    "an mbarrier that is not initialised": (stored(2, begun={"full": 1, "empty": 2}), "", ""),
    "mbarriers beside their initialisation": (stored(1, synced=False), "", ""),
    "a stage that its readers write": (copied(1, use=(WAIT, WRITE, FREE)), "", ""),
    "copies that nobody waits for at the end": (copied(2, longer=-1), "", ""),
    "waits that begin too late": (stored(2, fill=late(3)), "", ""),
    "waits that begin a round late": (stored(1, fill=(RingStep("wait", "empty", ahead=-1, behind=2), WRITE, FULL)), "", ""),
    "a stage that is handed back before it is full": (copied(1, use=(FREE, WAIT)), "", ""),
    "writers that run ahead of each other": (stored(1, fill=(WRITE, FULL)), r"rem.u32 (%r\d+, %r\d+), 1;|(%r\d+), 8,", _endless),
    "a stage that was written before, without a fence": (copied(1), r"\$I:", "st.shared.u32 [tile], 0;\n$I:"),
    "a writer that arrives without a wait": (stored(1, fill=(replace(EMPTY, below=1), replace(WRITE, below=1), FULL)), "", ""),
    "a wait at the other mbarrier": (stored(2), r"(\$LU:[^$]*?)mad\.lo\.s32 (%r\d+), (%r\d+), 8, (%r\d+);", _other_place),
    "readers that write beside each other": (stored(1, use=(WAIT, READ, WRITE, FREE)), "", ""),
    "writers that read beside each other": (
        stored(1, fill=(EMPTY, WRITE, READ, FULL), use=(WAIT, READ, replace(FREE, behind=1))),
        "",
        "",
    ),
    "an arrival without order": (stored(1), "mbarrier.arrive.shared", "mbarrier.arrive.relaxed.cta.shared"),
    "a wait without order": (stored(1), "try_wait.parity.shared", "try_wait.parity.relaxed.cta.shared"),
    "an arrival before the wait for a cp.async": (issued(ISSUE, FULL, DRAIN), "", ""),
    "a wait that leaves the group of an arrival": (issued(ISSUE, replace(DRAIN, flip=1), FULL), "", ""),
    "a cp.async that nobody waits for before it is read": (issued(ISSUE, replace(DRAIN, flip=2), NEXT, longer=-1), "", ""),
    "a wait for groups of another kind": (issued(ISSUE, DRAIN, FULL), "cp.async.wait_group 0", "cp.async.bulk.wait_group 0"),
    "a stage that a bulk store still reads": (sent(SEND, FREED, SENT), "", ""),
    "a stage that a bulk store in flight reads": (sent(SEND, replace(SENT, flip=1), FREED), "", ""),
    "waits that give up": (stored(1), "@!%p", "@%p"),
    "a barrier that a store overwrites": (stored(1), r"\$X:", "$X:\nbar.sync 0;\nst.shared.u32 [full], 0;"),
}


def proves(case: Case) -> bool:
    """Whether a case is proven."""
    ring, old, new = case
    text = RingWriter(ring).text()
    assert re.search(old, text)
    return answer_of_text(re.sub(old, new, text) if old else text)
