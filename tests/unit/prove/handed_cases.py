"""Kernels whose CTAs are ordered by words beside fences, or by what one thread has read in a word before a barrier of its CTA; and forms of
them with a race.

`a` has the data, `b` the words.
"""

from __future__ import annotations

from typing import Final

_BEGIN: Final = "setp.eq.u32 %p1, %r2, 0;\nsetp.eq.u32 %p2, %r3, 0;\nmov.u32 %r14, %nctaid.x;\n"
_FENCE, _SYNC = "fence.acq_rel.gpu;\n", "bar.sync 0;\n"
_EACH: Final = "mul.wide.u32 %rd9, %r2, 4;\nadd.s64 %rd9, %rd1, %rd9;\n"
_USE: Final = "st.global.u32 [%rd9], %r3;\n"
_SPIN: Final = "$L:\natom.global.gpu.relaxed.cas.b32 %r10, [%rd2], 0, 1;\nsetp.ne.u32 %p3, %r10, 0;\n@%p3 bra $L;\n"
_FREE: Final = f"@%p1 {_FENCE}@%p1 atom.global.gpu.relaxed.exch.b32 %r13, [%rd2], 0;\n"


def _by_first(text: str) -> str:
    return "@!%p1 bra $A;\n" + text + "$A:\n"


_TAKE: Final = _by_first(_SPIN + _FENCE)
LOCKED: Final = _BEGIN + _EACH + _TAKE + _SYNC + _USE + _SYNC + _FREE
ALONE: Final = _BEGIN + _by_first(_SPIN + _FENCE + "st.global.u32 [%rd1], %r3;\n" + _FENCE + "st.relaxed.gpu.global.u32 [%rd2], 0;\n")
_POLL: Final = "$L:\nld.relaxed.gpu.global.u32 %r10, [%rd2];\nsetp.eq.u32 %p3, %r10, 0;\n@%p3 bra $L;\n"
_READ: Final = "ld.global.u32 %r12, [%rd9];\n"
_SET: Final = f"@%p1 {_FENCE}@%p1 st.relaxed.gpu.global.u32 [%rd2], 1;\n"


def _flagged(produce: str = _USE + _SYNC + _SET, consume: str = _by_first(_POLL + _FENCE) + _SYNC + _READ) -> str:
    return _BEGIN + _EACH + "@%p2 bra $P;\n" + consume + "bra $M;\n$P:\n" + produce + "$M:\n"


_OWN: Final = "st.global.u32 [%rd4], %r3;\n"
_ALL: Final = "ld.global.u32 %r12, [%rd9];\n"  # an element of the first CTA
_ADD: Final = "red.relaxed.gpu.global.add.u32 [%rd2], 1;\n"
_WAIT: Final = "$L:\nld.relaxed.gpu.global.u32 %r10, [%rd2];\nsetp.lt.u32 %p3, %r10, %r14;\n@%p3 bra $L;\n"
GRID: Final = _BEGIN + _EACH + _OWN + _SYNC + _by_first(_FENCE + _ADD + _WAIT + _FENCE) + _SYNC + _ALL

PROVEN: Final = {
    "a lock of one thread": LOCKED,
    "a lock beside fences": ALONE,
    "a lock that an acquire takes": LOCKED.replace("relaxed.cas", "acquire.cas"),
    "a lock and a fence of all": LOCKED.replace(f"@%p1 {_FENCE}", _FENCE),
    "a lock and a fence for the system": LOCKED.replace(_FENCE, "membar.sys;\n"),
    "a lock, and some threads that write": LOCKED.replace(_USE, "setp.lt.u32 %p5, %r2, %r1;\n@%p5 " + _USE),
    "a flag that one thread waits for": _flagged(),
    "a barrier of the grid": GRID,
    "a barrier of the grid that additions wait at": GRID.replace(
        "ld.relaxed.gpu.global.u32 %r10, [%rd2]", "atom.global.gpu.relaxed.add.u32 %r10, [%rd2], 0"
    ),
}  # fmt: skip

RACES: Final = {
    "a lock without a fence behind it": LOCKED.replace(_FENCE + "$A", "$A"),
    "a lock without a fence before it is freed": LOCKED.replace(f"@%p1 {_FENCE}", ""),
    "a fence of the CTA": LOCKED.replace(_FENCE + "$A", "fence.acq_rel.cta;\n$A"),
    "a fence of the CTA before it is freed": LOCKED.replace(f"@%p1 {_FENCE}", "@%p1 membar.cta;\n"),
    "a fence behind the barrier": LOCKED.replace(_FENCE + "$A:\n" + _SYNC, "$A:\n" + _SYNC + _FENCE),
    "a fence before the barrier": LOCKED.replace(f"{_SYNC}@%p1 {_FENCE}", f"{_FENCE}{_SYNC}"),
    "a fence of another thread": LOCKED.replace(f"@%p1 {_FENCE}", f"setp.eq.u32 %p6, %r2, 1;\n@%p6 {_FENCE}"),
    "a fence whose condition changes": LOCKED.replace(
        f"@%p1 {_FENCE}@%p1", f"setp.eq.u32 %p6, %r2, 1;\n@%p6 {_FENCE}setp.eq.u32 %p6, %r2, 0;\n@%p6"
    ),
    "a fence on one of two ways": LOCKED.replace(_FENCE + "$A", f"setp.eq.u32 %p6, %r1, 0;\n@%p6 bra $A;\n{_FENCE}$A"),
    "a read between a lock and its fence": LOCKED.replace(_FENCE + "$A", "ld.global.u32 %r12, [%rd1];\n" + _FENCE + "$A"),
    "a write between a fence and the release": LOCKED.replace(
        f"@%p1 {_FENCE}", f"@%p1 {_FENCE}@%p1 st.global.u32 [%rd1], 7;\n"
    ),
    "a lock without a barrier behind it": LOCKED.replace("$A:\n" + _SYNC, "$A:\n"),
    "a lock without a barrier before it is freed": LOCKED.replace(_USE + _SYNC, _USE),
    "a lock without a barrier before it is freed, behind a branch": LOCKED.replace(
        _USE + _SYNC, _USE + "setp.gt.u32 %p6, %r2, 9;\n@%p6 bra $N;\nadd.s32 %r12, %r12, 1;\n$N:\n"
    ),
    "a write before the lock": LOCKED.replace(_TAKE, _USE + _TAKE),
    "a write behind a lock that was freed": LOCKED + _SYNC + _USE,
    "a write beside another one, behind the release": ALONE.replace(
        "st.relaxed.gpu.global.u32 [%rd2], 0;\n", "st.relaxed.gpu.global.u32 [%rd2], 0;\nst.global.u32 [%rd1+4], %r3;\n"
    ),
    "a part beside another one, behind the addition": GRID.replace(_ADD, _ADD + "st.global.u32 [%rd4+4], %r3;\n").replace(
        _OWN + _SYNC + "@!%p1 bra $A;\n", "@!%p1 bra $A;\n" + _OWN),
    "a lock that some launches take": LOCKED.replace("@!%p1 bra $A", "setp.eq.and.u32 %p6, %r1, 0, %p1;\n@!%p6 bra $A").replace(
        f"@%p1 {_FENCE}@%p1", f"@%p6 {_FENCE}@%p6"
    ),
    "a lock of each CTA": LOCKED.replace("mov.u32 %r14", "mul.wide.u32 %rd7, %r3, 4;\nadd.s64 %rd2, %rd2, %rd7;\nmov.u32 %r14"),
    "a lock that is taken in rounds": LOCKED.replace(_TAKE + _SYNC, "mov.u32 %r16, 0;\n$R:\n" + _USE + _TAKE + _SYNC
        + "add.s32 %r16, %r16, 1;\nsetp.lt.s32 %p5, %r16, %r1;\n@%p5 bra $R;\n"),
    "a lock whose barrier some pass by": LOCKED.replace("$A:\n" + _SYNC, "$A:\nsetp.eq.u32 %p6, %r1, 0;\n@%p6 bra $B;\n" + _SYNC + "$B:\n"),
    "a lock whose thread may have left": LOCKED.replace(_TAKE, "setp.eq.and.u32 %p6, %r1, 0, %p1;\n@%p6 exit;\n" + _TAKE),
    "a flag without a fence before it": _flagged(_USE + _SYNC + _SET.replace(f"@%p1 {_FENCE}", "")),
    "a flag without a fence behind it": _flagged(consume=_by_first(_POLL) + _SYNC + _READ),
    "a flag without a barrier": _flagged(consume=_by_first(_POLL + _FENCE) + _READ),
    "a flag that is looked at once": _flagged(consume=_by_first(_POLL.replace("@%p3 bra $L;\n", "") + _FENCE) + _SYNC + _READ),
    "a barrier of the grid without the first one": GRID.replace(_OWN + _SYNC, _OWN),
    "a barrier of the grid without the last one": GRID.replace("$A:\n" + _SYNC, "$A:\n"),
    "a barrier of the grid without a release": GRID.replace(_FENCE + _ADD, _ADD),
    "a barrier of the grid without an acquire": GRID.replace("bra $L;\n" + _FENCE, "bra $L;\n"),
    "a barrier of all but one": GRID.replace("mov.u32 %r14, %nctaid.x;\n", "mov.u32 %r14, %nctaid.x;\nadd.s32 %r14, %r14, -1;\n").replace(
        "setp.lt.u32", "setp.lt.s32"
    ),
    "a barrier to which one thread adds twice": GRID.replace(_ADD, _ADD + _ADD),
    "a barrier of n": GRID.replace("mov.u32 %r14, %nctaid.x", "mov.u32 %r14, %r1"),
    "a barrier to which two threads add": GRID.replace(
        "@!%p1 bra $A;\n" + _FENCE + _ADD, f"setp.lt.u32 %p6, %r2, 2;\n@%p6 {_FENCE}@%p6 {_ADD}@!%p1 bra $A;\n"
    ),
    "a barrier of two words": GRID.replace("global.u32 %r10, [%rd2]", "global.u32 %r10, [%rd2+4]"),
    "a barrier that is used again": GRID + _SYNC + _OWN,
}  # fmt: skip
