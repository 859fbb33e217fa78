"""The most words that a thread of a launch stores in its log. `$W3:` stands for three words that are stored there."""

from __future__ import annotations

import re
from types import ModuleType

import pytest
from planted import plant

from consan.instrument.control_flow import PathStep, graph_of
from consan.instrument.ptx import parse
from consan.ranges import LaunchExtents, NotProven, Slice, walk, words
from consan.ranges.words import most_words

SHAPE = LaunchExtents((3, 1, 1), (4, 1, 1))
NONE = -1
HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 n, .param .u32 m) {
.reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<9>;
ld.param.u64 %d1, [a]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [m];
mov.u32 %r3, %tid.x; mov.u32 %r4, %ctaid.x; ld.global.u32 %r5, [%d1]; setp.eq.u32 %p1, %r5, 7; mov.u32 %r6, 0; mov.u32 %r7, 0;
"""
AGAIN = "add.s32 %r6, %r6, 1; setp.lt.s32 %p2, %r6, {end}; @%p2 bra $L;\n"
LOOP = "$L:\n$W3:\nld.global.u32 %r9, [%d1];\n" + AGAIN
OUTER = "add.s32 %r7, %r7, 1; setp.lt.s32 %p3, %r7, %r2; @%p3 bra $O;\n"
TWO_ARMS = "{first} bra $A;\n" + LOOP.replace("{end}", "%r1") + "$A:\nmov.u32 %r6, 0; setp.eq.u32 %p5, %r5, 8; @%p5 bra $B;\n"
TWO_ARMS += LOOP.replace("$L", "$M").replace("{end}", "%r2") + "$B:\n"
# A kernel, n, m, and the words.
KERNELS: dict[str, tuple[str, int, int, int]] = {
    "no round more": (LOOP.format(end="%r1"), 0, 0, 3),
    "rounds by a parameter": (LOOP.format(end="%r1"), 5, 0, 15),
    "many rounds": (LOOP.format(end="%r1"), 1000, 0, 3000),
    "rounds by the thread": (LOOP.format(end="%r3"), 0, 0, 9),
    "rounds by the CTA": ("add.s32 %r4, %r4, %r1;\n" + LOOP.format(end="%r4"), 7, 0, 27),
    "rounds by a loaded value": (LOOP.format(end="%r5"), 5, 0, NONE),
    "an end by a loaded value": (f"$L:\n$W3:\n@%p1 bra $E;\n{AGAIN.format(end='%r1')}$E:\n", 6, 0, 18),
    "words behind an end by a loaded value": (f"$L:\n@%p1 bra $E;\n$W3:\n{AGAIN.format(end='%r1')}$E:\n$W2:\n", 6, 0, 20),
    "many rounds with an end by a loaded value": (f"$L:\n$W3:\n@%p1 bra $E;\n{AGAIN.format(end='%r1')}$E:\n", 60, 0, NONE),
    "an arm in each round": (f"$L:\n@%p1 bra $S;\n$W3:\nld.global.u32 %r9, [%d1];\n$S:\n{AGAIN.format(end='%r1')}", 100, 0, 300),
    "two arms": ("@%p1 bra $A;\n$W3:\nbra.uni $B;\n$A:\n$W4:\n$B:\n$W5:\nret;", 0, 0, 12),
    "an arm that exits": ("$W1:\n@%p1 bra $A;\n$W3:\nret;\n$A:\n$W4:\n", 0, 0, 8),
    "an arm that decides the rounds": ("mov.u32 %r8, 4;\n@%p1 bra $A;\nmov.u32 %r8, 9;\n$W1:\n$A:\n" + LOOP.format(end="%r8"), 0, 0, NONE),
    "a loop in an arm": ("@%p1 bra $A;\n" + LOOP.format(end="%r1") + "$A:\n$W2:\n", 5, 0, 17),
    "a loop in each arm": (
        "@%p1 bra $A;\n" + LOOP.format(end="%r1") + "bra.uni $B;\n$A:\n" + LOOP.format(end="%r2").replace("$L", "$M") + "$B:\n$W2:\n",
        *(5, 9, 29),
    ),
    "the same, the other way round": (
        "@%p1 bra $A;\n" + LOOP.format(end="%r1") + "bra.uni $B;\n$A:\n" + LOOP.format(end="%r2").replace("$L", "$M") + "$B:\n$W2:\n",
        *(9, 5, 29),
    ),
    "loops in two arms": (TWO_ARMS.format(first="@%p1"), 5, 9, 42),
    "the same by the other way": (TWO_ARMS.format(first="@!%p1"), 5, 9, 42),
    "rounds of rounds": ("$O:\n$W1:\nmov.u32 %r6, 0;\n" + LOOP.format(end="%r1") + OUTER, 20, 30, 30 * 61),
    "a wait by a loaded value": ("$L:\nld.volatile.global.u32 %r9, [%d1]; setp.ne.u32 %p2, %r9, 1; @%p2 bra $L;\n$W3:\n", 0, 0, 3),
    "threads that go other ways": ("setp.lt.u32 %p4, %r3, 2; @%p4 bra $A;\n$W3:\nbra.uni $B;\n$A:\n$W4:\n$B:\n$W5:\n", 0, 0, 9),
}


def counted(text: str, n: int, m: int) -> int:
    """The words of the kernel, by the words of its nodes."""
    marked = re.sub(r"\$W(\d+):", r"mov.u32 %r19, \1;", HEAD + text + "ret; }")
    function = parse(marked).functions[0]
    stored = {number: sum(map(_words, node.steps)) for number, node in enumerate(graph_of(function).nodes)}
    args = (1 << 33).to_bytes(8, "little"), n.to_bytes(4, "little"), m.to_bytes(4, "little")
    try:
        return most_words(Slice(function, {number: words for number, words in stored.items() if words}), args, SHAPE)
    except NotProven:
        return NONE


def _words(step: PathStep) -> int:
    found = re.fullmatch(r"mov.u32 %r19, (\d+);", step.instruction.text)
    return 0 if found is None else int(found[1])


@pytest.mark.parametrize("name", KERNELS)
def test_words(name: str) -> None:
    text, n, m, wanted = KERNELS[name]
    assert counted(text, n, m) == wanted


FAULTS: dict[str, tuple[ModuleType, str, str, str]] = {
    "rounds at once count once": (walk, "made.words = count * iterations.words", "made.words = iterations.words", "many rounds"),
    "arms do not count": (words, "return sum(stored[number] for number in marked)", "return 0", "two arms"),
    "loops in arms count once": (
        *(words, "if any(number in behind(edges, (number,), within=region) for number in marked):", "if False:"),
        "a loop in an arm",
    ),
    "what an arm writes stays known": (
        *(words, "for key in (key for step in self._kernel.steps[number] for key in step.written):", "for key in ():"),
        "an arm that decides the rounds",
    ),
    "the first way stands for both": (words, "path.words <= each.words and ", "", "the same by the other way"),
    "a path goes on for ever": (words, "len(states) > _MOST_STATES", "False", "many rounds with an end by a loaded value"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, name = FAULTS[fault]
    plant(monkeypatch, module, old, new)
    text, n, m, wanted = KERNELS[name]
    assert counted(text, n, m) != wanted
