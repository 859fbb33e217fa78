"""Kernels whose CTAs are ordered by flags, locks and counters in global memory, and forms of them with a race.

`a` has the data, `b` the words. The first thread of a CTA reads a word and tells the others through shared memory, or each thread reads.
"""

from __future__ import annotations

import re
from itertools import count
from typing import Final

_BEGIN: Final = "setp.eq.u32 %p1, %r2, 0;\nsetp.eq.u32 %p2, %r3, 0;\nmov.u32 %r10, 0;\n"
_SPREAD: Final = "@%p1 st.shared.u32 [s], %r10;\nbar.sync 0;\nld.shared.u32 %r11, [s];\n"
# -- locks ------------------------------------------------------------------------------------------------------------------
TAKE: Final = (
    "$L:\nbar.sync 0;\n@%p1 atom.global.gpu.acquire.cas.b32 %r10, [%rd2], 0, 1;\n" + _SPREAD + "setp.ne.u32 %p3, %r11, 0;\n@%p3 bra $L;\n"
)
UPDATE: Final = "@%p1 ld.global.u32 %r12, [%rd1];\n@%p1 add.s32 %r12, %r12, 1;\n@%p1 st.global.u32 [%rd1], %r12;\n"
FREE: Final = "bar.sync 0;\n@%p1 atom.global.gpu.release.exch.b32 %r13, [%rd2], 0;\n"
OTHERS_UPDATE: Final = "mul.wide.u32 %rd9, %r2, 4;\nadd.s64 %rd9, %rd1, %rd9;\nst.global.u32 [%rd9], %r3;\n"
OWN_LOCK: Final = "mul.wide.u32 %rd7, %r3, 4;\nadd.s64 %rd2, %rd2, %rd7;\n"
LOCKED: Final = _BEGIN + TAKE + UPDATE + FREE
# The first thread does all by itself.
ALONE: Final = (
    _BEGIN + "@!%p1 bra $M;\n$L:\natom.global.gpu.acquire.cas.b32 %r10, [%rd2], 0, 1;\nsetp.ne.u32 %p3, %r10, 0;\n@%p3 bra $L;\n"
    + UPDATE + "st.release.gpu.global.u32 [%rd2], 0;\n$M:\n"
)  # fmt: skip
# -- flags ------------------------------------------------------------------------------------------------------------------
POLL: Final = "$L:\nbar.sync 0;\n@%p1 ld.acquire.gpu.global.u32 %r10, [%rd2];\n" + _SPREAD + "setp.ne.u32 %p3, %r11, 1;\n@%p3 bra $L;\n"
DATA: Final = "mul.wide.u32 %rd9, %r2, 4;\nadd.s64 %rd9, %rd1, %rd9;\n"
SET: Final = "bar.sync 0;\n@%p1 st.release.gpu.global.u32 [%rd2], 1;\n"
READ: Final = "ld.global.u32 %r12, [%rd9];\n"
STORE: Final = "st.global.u32 [%rd9], %r2;\n"


def _flagged(produce: str = STORE + SET, consume: str = POLL + READ, producer: str = "") -> str:
    return _BEGIN + producer + DATA + "@%p2 bra $P;\n" + consume + "bra $M;\n$P:\n" + produce + "$M:\n"


FLAGGED: Final = _flagged()
# Each CTA waits for the one before it.
CHAIN: Final = (
    _BEGIN + OWN_LOCK + "mul.wide.u32 %rd9, %r3, 4;\nadd.s64 %rd9, %rd1, %rd9;\n@%p2 bra $P;\n"
    + POLL.replace("[%rd2]", "[%rd2+-4]") + "@%p1 ld.global.u32 %r12, [%rd9+-4];\n$P:\n@%p1 st.global.u32 [%rd9], %r3;\n" + SET
)  # fmt: skip
# -- counters ---------------------------------------------------------------------------------------------------------------
ADD: Final = "@%p1 atom.global.gpu.acq_rel.add.u32 %r10, [%rd2], 1;\n"
PART: Final = "mul.wide.u32 %rd9, %r3, 4;\nadd.s64 %rd9, %rd1, %rd9;\n@%p1 st.global.u32 [%rd9], %r3;\nbar.sync 0;\n"
IS_LAST: Final = "mov.u32 %r14, %nctaid.x;\nadd.s32 %r14, %r14, -1;\nsetp.ne.u32 %p3, %r11, %r14;\n@%p3 bra $M;\n"
SUM: Final = "ld.global.u32 %r12, [%rd1];\n$M:\n"
ROUNDS: Final = "mov.u32 %r16, 0;\n$R:\n{}add.s32 %r16, %r16, 1;\nsetp.lt.s32 %p5, %r16, 2;\n@%p5 bra $R;\n"
LAST: Final = _BEGIN + PART + ADD + _SPREAD + IS_LAST + SUM
PLACE: Final = "mul.wide.s32 %rd9, %r11, 4;\nadd.s64 %rd9, %rd1, %rd9;\n@%p1 st.global.u32 [%rd9], %r3;\n"
TICKETS: Final = _BEGIN + ADD.replace("acq_rel", "relaxed") + _SPREAD + PLACE
# Each thread has a ticket of its own.
OF_THREADS: Final = (
    "atom.global.relaxed.gpu.add.u32 %r11, [%rd2], 1;\nmul.wide.s32 %rd9, %r11, 4;\nadd.s64 %rd9, %rd1, %rd9;\nst.global.u32 [%rd9], %r3;"
)
COMPARED: Final = (
    _BEGIN + "@%p2 st.global.u32 [%rd1], %r2;\nselp.b32 %r15, 0, 1, %p2;\nbar.sync 0;\n"
    "@%p1 atom.global.gpu.acq_rel.cas.b32 %r10, [%rd2], %r15, 1;\n" + _SPREAD
    + "setp.ne.u32 %p3, %r11, 1;\n@%p3 bra $M;\n@%p2 bra $M;\nld.global.u32 %r12, [%rd1];\n$M:\n"
).replace("@%p2 st", "and.pred %p4, %p1, %p2;\n@%p4 st")  # fmt: skip

BRANCH: Final = "setp.gt.u32 %p6, %r2, 9;\n@%p6 bra $N;\nadd.s32 %r12, %r12, 1;\n$N:\n"
TWO: Final = "setp.lt.u32 %p2, %r3, 2;\n"

_RUN: Final = re.compile(r"(?:^@%p1 .*;\n)+", re.MULTILINE)


def branched(body: str) -> str:
    """The same kernel with branches around what the first thread does, as compilers write it."""
    numbers = count()

    def branch(match: re.Match[str]) -> str:
        label = f"$G{next(numbers)}"
        return f"@!%p1 bra {label};\n{match[0].replace('@%p1 ', '')}{label}:\n"

    return _RUN.sub(branch, body)


# A short branch of the threads under %p1, around an addition and what else they do.
_SHORT: Final = "setp.{} %p1, %r2, {};\n{}@!%p1 bra $G;\n{}atom.global.relaxed.gpu.add.u32 %r10, [%rd2], 1;\n{}$G:\n{}".format
PROVEN: Final = {
    "a place that a short branch changes for one thread": _SHORT("eq.u32", 0, "", "", "mov.u32 %r6, s;\n", "st.shared.u32 [%r6], 1;\n"),
    "a lock": LOCKED, "a lock that all threads rely on": _BEGIN + TAKE + OTHERS_UPDATE + FREE, "a lock of one thread": ALONE,
    "a flag": FLAGGED, "flags of a chain": CHAIN, "the last CTA": LAST, "tickets of CTAs": TICKETS, "tickets of threads": OF_THREADS,
    "a flag that is compared": COMPARED, "a flag that a failing comparison finds": COMPARED.replace("0, 1, %p2", "0, 7, %p2"),
    "a flag by an exchange": FLAGGED.replace("st.release.gpu.global.u32 [%rd2], 1", "atom.global.gpu.release.exch.b32 %r13, [%rd2], 1"),
    "a flag that an addition of 0 reads": FLAGGED.replace(
        "ld.acquire.gpu.global.u32 %r10, [%rd2]", "atom.global.gpu.acquire.add.u32 %r10, [%rd2], 0"
    ),
    "a lock for the system": LOCKED.replace(".gpu", ".sys"),
}  # fmt: skip

RACES: Final = {
    # short branches
    "a place that a short branch gives to one thread": _SHORT(
        "eq.u32", 0, "mov.u32 %r9, s;\n", "", "mov.u32 %r9, %r6;\n", "st.shared.u32 [%r9], 1;\n"
    ),
    "a short branch that changes its condition": _SHORT("lt.u32", 2, "", "", "setp.eq.u32 %p1, %r2, 0;\nst.shared.u32 [s], %r2;\n", ""),
    "a short branch that others jump into": _SHORT(
        "eq.u32", 0, "setp.eq.u32 %p2, %r2, 1;\n@%p2 bra $B;\n", "$B:\n", "st.shared.u32 [s], %r2;\n", ""
    ),
    # locks
    "a lock that is freed early": _BEGIN + TAKE + FREE + UPDATE,
    "a lock that is freed before others have written": _BEGIN + TAKE + OTHERS_UPDATE + FREE.replace("bar.sync 0;\n", ""),
    "an update before the lock": _BEGIN + UPDATE + TAKE + FREE,
    "a lock that is taken by a relaxed operation": LOCKED.replace("acquire.cas", "relaxed.cas"),
    "a lock that is freed by a relaxed operation": LOCKED.replace("release.exch", "relaxed.exch"),
    "a lock of the CTA's scope": LOCKED.replace(".gpu", ".cta"),
    "a lock that is freed for the CTA": LOCKED.replace("gpu.release", "cta.release"),
    "another lock is freed": LOCKED.replace("exch.b32 %r13, [%rd2]", "exch.b32 %r13, [%rd2+4]"),
    "a lock of each CTA": _BEGIN + OWN_LOCK + TAKE + UPDATE + FREE,
    "a lock that nobody looks at": LOCKED.replace("@%p3 bra $L;\n", ""),
    "a lock that is found taken": LOCKED.replace("setp.ne.u32 %p3, %r11, 0", "setp.eq.u32 %p3, %r11, 0"),
    "a lock that is not marked": LOCKED.replace("0, 1;", "0, 0;"),
    "a lock that is freed where it is 1": LOCKED.replace("0, 1;", "1, 1;"),
    "a lock that is freed twice": LOCKED + FREE,
    "a lock that CTAs free without it": _BEGIN + "@%p2 bra $F;\n" + TAKE + UPDATE + "$F:\n" + FREE,
    "a lock that CTAs free without it, too": LOCKED + "@%p1 atom.global.gpu.release.exch.b32 %r13, [%rd2], 0;\n",
    "a lock that one CTA does not take": _BEGIN + "@%p2 bra $F;\n" + TAKE + "$F:\n" + UPDATE + FREE,
    "a lock that a store frees, too": LOCKED + "@%p2 st.global.u32 [%rd2], 0;\n",
    "a lock of words of two sizes": LOCKED.replace("cas.b32 %r10, [%rd2], 0, 1", "cas.b64 %rd10, [%rd2], 0, 1").replace(
        "st.shared.u32 [s], %r10", "cvt.u32.u64 %r10, %rd10;\n@%p1 st.shared.u32 [s], %r10"
    ),
    "a lock of the first thread that others rely on": ALONE + OTHERS_UPDATE,
    "a lock that is freed in rounds": _BEGIN + TAKE + "mov.u32 %r16, 0;\n$R:\n" + UPDATE + FREE
    + "add.s32 %r16, %r16, 1;\nsetp.lt.s32 %p5, %r16, 3;\n@%p5 bra $R;\n",
    "a lock that is handed on before it is read": _BEGIN + TAKE.replace(
        "@%p1 atom.global.gpu.acquire.cas.b32 %r10, [%rd2], 0, 1;\n" + _SPREAD,
        "@%p1 st.shared.u32 [s], %r10;\n@%p1 atom.global.gpu.acquire.cas.b32 %r10, [%rd2], 0, 1;\nbar.sync 0;\nld.shared.u32 %r11, [s];\n",
    ) + UPDATE + FREE,
    "a lock beside another word": LOCKED.replace("ld.shared.u32 %r11, [s]", "ld.shared.u32 %r11, [s+4]"),
    "a lock that is handed on and changed": LOCKED.replace(_SPREAD, "@%p1 st.shared.u32 [s], %r10;\n@%p1 st.shared.u32 [s], 0;\n"
                                                     "bar.sync 0;\nld.shared.u32 %r11, [s];\n"),
    "a lock that another thread hands on": LOCKED.replace("@%p1 st.shared.u32 [s]", "setp.eq.u32 %p6, %r2, 1;\n@%p6 st.shared.u32 [s]"),
    # flags
    "a flag before the data": _flagged(SET + STORE),
    "a flag that no barrier comes before": _flagged(STORE + SET.replace("bar.sync 0;\n", "")),
    "a flag that no barrier comes before, behind a branch": _flagged(STORE + BRANCH + SET.replace("bar.sync 0;\n", "")),
    "data behind the flag": _flagged(STORE + SET + "st.global.u32 [%rd9], 7;\n"),
    "data behind the flag and a branch": _flagged(SET + BRANCH + STORE),
    "a flag that is set by a relaxed operation": FLAGGED.replace("st.release", "st.relaxed"),
    "a flag that is read by a relaxed operation": FLAGGED.replace("ld.acquire", "ld.relaxed"),
    "a flag that is read with volatile": FLAGGED.replace("ld.acquire.gpu", "ld.volatile"),
    "a flag of the CTA's scope": FLAGGED.replace(".gpu", ".cta"),
    "a flag that is read for the CTA": FLAGGED.replace("ld.acquire.gpu", "ld.acquire.cta"),
    "another flag": FLAGGED.replace("ld.acquire.gpu.global.u32 %r10, [%rd2]", "ld.acquire.gpu.global.u32 %r10, [%rd2+4]"),
    "a flag that is not set yet": FLAGGED.replace("setp.ne.u32 %p3, %r11, 1", "setp.ne.u32 %p3, %r11, 0"),
    "any of the first flags": FLAGGED.replace("setp.ne.u32 %p3, %r11, 1", "setp.eq.u32 %p3, %r11, 1"),
    "a flag that is set to its first value": FLAGGED.replace("[%rd2], 1;", "[%rd2], 0;").replace("%r11, 1", "%r11, 0"),
    "data that are read before the flag": _flagged(consume=READ + POLL),
    "a flag that is looked at once": FLAGGED.replace("@%p3 bra $L;\n", ""),
    "a flag that is given up": FLAGGED.replace(
        "setp.ne.u32 %p3, %r11, 1", "add.s32 %r20, %r20, 1;\nsetp.gt.s32 %p4, %r20, 9;\nsetp.ne.and.u32 %p3, %r11, 1, !%p4"
    ).replace("mov.u32 %r10, 0;", "mov.u32 %r10, 0;\nmov.u32 %r20, 0;"),
    "a flag that two CTAs set": _flagged("st.global.u32 [%rd4], %r2;\n" + SET, POLL + READ + "ld.global.u32 %r12, [%rd9+256];\n", TWO),
    "a flag that only another CTA sets": _flagged(
        "setp.eq.u32 %p5, %r3, 0;\n@%p5 st.global.u32 [%rd9], %r2;\nselp.b32 %r15, 7, 0, %p5;\nbar.sync 0;\n"
        "@%p1 atom.global.gpu.release.cas.b32 %r13, [%rd2], %r15, 1;\n",
        producer=TWO,
    ),
    "a flag that each CTA sets": _BEGIN + DATA + STORE + SET + POLL + READ,
    "a flag in rounds": _flagged("mov.u32 %r16, 0;\n$R:\n" + STORE + SET
                                 + "add.s32 %r16, %r16, 1;\nsetp.lt.s32 %p5, %r16, 3;\n@%p5 bra $R;\n"),
    "a flag that all threads set": _flagged(STORE + "st.release.gpu.global.u32 [%rd2], 1;\n"),
    "a flag that is set plainly, too": _flagged(STORE + SET, POLL + READ, "@%p2 st.global.u32 [%rd2], 0;\n"),
    "a chain with a gap": CHAIN.replace("[%rd9+-4]", "[%rd9+-8]"),
    "a chain whose flag comes first": CHAIN.replace("$P:\n@%p1 st.global.u32 [%rd9], %r3;\n" + SET,
                                                    "$P:\n" + SET + "@%p1 st.global.u32 [%rd9], %r3;\n"),
    "a flag that a comparison of another CTA sets": COMPARED.replace("0, 1, %p2", "0, 0, %p2"),
    "a flag that is compared without a release": COMPARED.replace("acq_rel", "acquire"),
    "a flag that is compared without an acquire": COMPARED.replace("acq_rel", "release"),
    # counters
    "the last CTA by a relaxed addition": LAST.replace("acq_rel", "relaxed"),
    "the last CTA without a release": LAST.replace("acq_rel", "acquire"),
    "the last CTA without an acquire": LAST.replace("acq_rel", "release"),
    "the last CTA of the scope of a CTA": LAST.replace(".gpu", ".cta"),
    "the last CTA but one": LAST.replace("%r14, -1", "%r14, -2"),
    "any CTA": LAST.replace("setp.ne.u32 %p3, %r11, %r14", "setp.gt.u32 %p3, %r11, %r14"),
    "parts behind the addition": _BEGIN + ADD + _SPREAD + PART + IS_LAST + SUM,
    "additions of 2": LAST.replace("[%rd2], 1;", "[%rd2], 2;"),
    "two additions": LAST.replace(ADD, ADD + ADD),
    "additions of all threads": LAST.replace("@%p1 atom", "atom"),
    "additions in rounds": LAST.replace(ADD, ROUNDS.format(ADD)),
    "a counter that is cleared": LAST + "@%p1 st.relaxed.gpu.global.u32 [%rd2], 0;\n",
    "a counter of each CTA": LAST.replace("mov.u32 %r10, 0;\n", "mov.u32 %r10, 0;\n" + OWN_LOCK),
    "tickets of two CTAs": TICKETS.replace("mul.wide.s32 %rd9, %r11, 4", "shr.u32 %r11, %r11, 1;\nmul.wide.s32 %rd9, %r11, 4"),
    "tickets that come again": TICKETS.replace("mul.wide.s32 %rd9, %r11, 4", "and.b32 %r11, %r11, 65535;\nmul.wide.s32 %rd9, %r11, 4"),
    "tickets of a counter that is cleared": TICKETS + "@%p1 st.relaxed.gpu.global.u32 [%rd2], 0;\n",
    "tickets of counters of CTAs": TICKETS.replace("mov.u32 %r10, 0;\n", "mov.u32 %r10, 0;\n" + OWN_LOCK),
    "tickets by additions of 0": TICKETS.replace("[%rd2], 1;", "[%rd2], 0;"),
    "tickets of two threads": OF_THREADS.replace("mul.wide.s32", "shr.u32 %r11, %r11, 1;\nmul.wide.s32").replace("], %r3", "], %r2"),
    "a maximum in place of an addition": TICKETS.replace("add.u32", "max.u32"),
}  # fmt: skip
