"""Kernels whose CTAs count rounds in words, for others that wait until such a number is large enough; and forms of them with a race.

`a` has the data, `b` the words.
"""

from __future__ import annotations

from typing import Final

_BEGIN: Final = (
    "setp.eq.u32 %p1, %r2, 0;\nsetp.eq.u32 %p2, %r3, 0;\nmul.wide.u32 %rd7, %r3, 4;\nadd.s64 %rd8, %rd2, %rd7;\nmov.u32 %r16, 0;\n$R:\n"
    "add.s32 %r15, %r16, 1;\n"
)
_AGAIN: Final = "add.s32 %r16, %r16, 1;\nsetp.lt.s32 %p5, %r16, 4;\n@%p5 bra $R;\n"
_SYNC: Final = "bar.sync 0;\n"
_PLACE: Final = "mad.lo.s32 %r9, %r3, 1024, %r2;\nmad.lo.s32 %r9, %r16, 64, %r9;\nmul.wide.s32 %rd9, %r9, 4;\nadd.s64 %rd9, %rd1, %rd9;\n"
_STORE, _READ = "st.global.u32 [%rd9], %r3;\n", "ld.global.u32 %r12, [%rd9+-4096];\n"
_SET: Final = "@%p1 st.release.gpu.global.u32 [%rd8], %r15;\n"


def _wait(label: str, word: str, least: str) -> str:
    poll = f"$L{label}:\nld.acquire.gpu.global.u32 %r10, [{word}];\nsetp.lt.u32 %p3, %r10, {least};\n@%p3 bra $L{label};\n"
    return f"@!%p1 bra $A{label};\n{poll}$A{label}:\n"


_BRANCH: Final = "setp.gt.u32 %p6, %r2, 9;\n@%p6 bra $N;\nadd.s32 %r12, %r12, 1;\n$N:\n"
_WAIT: Final = _wait("", "%rd8+-4", "%r15")
# Each CTA but the first one waits for what the one before it has done in the same round.
WAVE: Final = _BEGIN + _PLACE + "@%p2 bra $S;\n" + _WAIT + _SYNC + _READ + "$S:\n" + _STORE + _SYNC + _SET + _AGAIN
# The first CTA fills a place in each round, which the second one reads.
_OWN: Final = "mul.wide.u32 %rd9, %r2, 4;\nadd.s64 %rd9, %rd1, %rd9;\n"
_FILL: Final = _wait("F", "%rd2+4", "%r16") + _SYNC + "st.global.u32 [%rd9], %r16;\n" + _SYNC + _SET
_TAKE: Final = _wait("T", "%rd2", "%r15") + _SYNC + "ld.global.u32 %r12, [%rd9];\n" + _SYNC + _SET.replace("%rd8]", "%rd2+4]")


def _slot(fill: str = _FILL, take: str = _TAKE) -> str:
    two = "setp.gt.u32 %p6, %r3, 1;\n@%p6 bra $X;\n"
    return _OWN + two + _BEGIN + "@!%p2 bra $C;\n" + fill.replace("%rd8]", "%rd2]") + "bra $M;\n$C:\n" + take + "$M:\n" + _AGAIN + "$X:\n"


PROVEN: Final = {
    "rounds of a wave": WAVE,
    "rounds of a wave by two": WAVE.replace("add.s32 %r15, %r16, 1", "mad.lo.s32 %r15, %r16, 2, 5"),
    "rounds of a wave by fences": WAVE.replace("@%p1 st.release", "@%p1 fence.acq_rel.gpu;\n@%p1 st.relaxed"),
    "a place that is filled in rounds": _slot(),
}

RACES: Final = {
    "a round too early": WAVE.replace("%r10, %r15", "%r10, %r16"),
    "a number before the data": WAVE.replace(_STORE + _SYNC + _SET, _SYNC + _SET + _STORE),
    "a number before the end and the data": WAVE.replace(
        _STORE + _SYNC + _SET + _AGAIN,
        _SYNC + _SET + "setp.ge.s32 %p6, %r16, 3;\n@%p6 bra $X;\n" + _STORE + _SYNC + "add.s32 %r16, %r16, 1;\nbra $R;\n$X:\n",
    ),
    "a number of rounds without a barrier": WAVE.replace(_STORE + _SYNC, _STORE),
    "a number of rounds without a barrier, behind a branch": WAVE.replace(_STORE + _SYNC, _STORE + _BRANCH),
    "a wait for a round without a barrier": WAVE.replace("$A:\n" + _SYNC, "$A:\n"),
    "a number of rounds that is not released": WAVE.replace("st.release", "st.relaxed"),
    "a number of rounds that is not acquired": WAVE.replace("ld.acquire", "ld.relaxed"),
    "a number of rounds for the CTA": WAVE.replace("st.release.gpu", "st.release.cta"),
    "a number of rounds that is looked at once": WAVE.replace("@%p3 bra $L;\n", ""),
    "a number of rounds of another CTA": WAVE.replace("[%rd8+-4]", "[%rd8+-8]"),
    "one number for all rounds": WAVE.replace("%rd8], %r15", "%rd8], 9"),
    "numbers that fall": WAVE.replace("add.s32 %r15, %r16, 1", "sub.s32 %r15, 10, %r16"),
    "a first number of 0": WAVE.replace("add.s32 %r15, %r16, 1", "add.s32 %r15, %r16, 0"),
    "a number of rounds of two CTAs": WAVE.replace("mul.wide.u32 %rd7, %r3", "shr.u32 %r18, %r3, 1;\nmul.wide.u32 %rd7, %r18")
    .replace("[%rd8+-4]", "[%rd8]"),
    "numbers of threads": WAVE.replace(_SET, "add.s32 %r17, %r15, %r2;\nst.release.gpu.global.u32 [%rd8], %r17;\n")
    .replace(_STORE, "@%p1 " + _STORE).replace(_READ, "@%p1 " + _READ),
    "a wait in every other round": WAVE.replace("@%p2 bra $S;\n", "@%p2 bra $S;\nand.b32 %r18, %r16, 1;\nsetp.eq.s32 %p6, %r18, 1;\n"
                                                "@%p6 bra $E;\n").replace(_READ, "$E:\n" + _READ),
    "data of a round that its number does not wait for": WAVE.replace(
        _STORE + _SYNC + _SET, "and.b32 %r18, %r16, 1;\nsetp.eq.s32 %p6, %r18, 1;\n" + _STORE + "@%p6 bra $N;\n" + _SYNC + "$N:\n" + _SET
    ),
    "rounds that are counted again": WAVE.replace("mov.u32 %r16, 0;\n", "mov.u32 %r20, 0;\n$O:\nmov.u32 %r16, 0;\n")
    + "add.s32 %r20, %r20, 1;\nsetp.lt.s32 %p6, %r20, 2;\n@%p6 bra $O;\n",
    "a number that is stored once more": WAVE.replace("$R:\n", "@%p1 st.release.gpu.global.u32 [%rd8], 9;\n$R:\n"),
    "two numbers of rounds in one word": WAVE.replace(
        "$S:\n", "add.s32 %r17, %r15, 7;\n@%p1 st.release.gpu.global.u32 [%rd8], %r17;\n$S:\n"
    ),
    "a place that is filled too early": _slot(_FILL.replace("%r10, %r16", "%r10, %r18").replace("$LF", "sub.s32 %r18, %r16, 1;\n$LF", 1)
                                              .replace("setp.lt.u32", "setp.lt.s32")),
    "a place that nobody waits for": _slot(_FILL.replace(_wait("F", "%rd2+4", "%r16"), "")),
    "a place that is freed before it is read": _slot(take=_TAKE.replace(
        "ld.global.u32 %r12, [%rd9];\n" + _SYNC + _SET.replace("%rd8]", "%rd2+4]"),
        _SET.replace("%rd8]", "%rd2+4]") + "ld.global.u32 %r12, [%rd9];\n" + _SYNC,
    )),
    "a place that some read later": _slot(take=_TAKE.replace("[%rd9];\n" + _SYNC, "[%rd9];\n")),
}  # fmt: skip
