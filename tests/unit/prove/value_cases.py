"""Kernels in which several threads of a CTA store to one place: one value, one sum that each rounds in its own way, or several values.

Registers from 9 on hold the value: 9 is what a thread begins with, and each step of an exchange makes the next two.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

import numpy as np
import numpy.typing as npt
from proof_cases import COUNTED, SYNC

from consan.dataclass import dataclass

FIRST: Final = 9
LANES: Final = (16, 8, 4, 2, 1)


def load(mask: int = 63, first: int = FIRST) -> str:
    """The element of `b` that some bits of the thread's number name."""
    return (
        f"and.b32 %r{first + 16}, %r2, {mask};\nmul.wide.u32 %rd{first}, %r{first + 16}, 4;\nadd.s64 %rd{first + 9}, %rd2, %rd{first};\n"
        f"ld.global.b32 %r{first}, [%rd{first + 9}];\n"
    )


def exchange(at: int, bits: int, last: int = 31, lanes: int = -1) -> str:
    """A shuffle of register `at` to the next one."""
    return f"shfl.sync.bfly.b32 %r{at + 1}, %r{at}, {bits}, {last}, {lanes};\n"


def joined(bits: Sequence[int] = LANES, how: str = "add.f32", first: int = FIRST) -> str:
    """Exchanges of some bits. Each one joins two numbers."""
    return "".join(
        exchange(at, bit) + f"{how} %r{at + 2}, %r{at}, %r{at + 1};\n" for at, bit in zip(range(first, 31, 2), bits, strict=False)
    )


def stored(register: int, mask: int = 32, word: int = 0) -> str:
    """A store of all threads to the word that some bits of their numbers name."""
    return f"and.b32 %r30, %r2, {mask};\nmad.lo.s32 %r31, %r30, 4, %r4;\nst.shared.b32 [%r31+{word}], %r{register};\n"


SUM: Final = joined()
PAIR: Final = load() + "setp.lt.u32 %p1, %r2, 24;\n{}" + stored(11, 47)  # threads whose numbers differ by 16 meet
WAY: Final = "setp.lt.u32 %p2, %r2, {};\n@%p2 bra $W;\n{}$W:\n"
VOLATILE: Final = "ld.volatile.global.b32 %r9, [%rd2];\n"
GUESSED: Final = "setp.lt.u32 %p1, %r2, 8;\n{}@%p1 ld.global.b32 %r9, [%rd2];\n"

# All of one value. The last part of a sum of two warps is what all threads load behind a barrier.
SAME: Final = {
    "a sum of all lanes": load() + SUM + stored(19),
    "the largest number of all lanes": load() + joined(how="max.f32") + stored(19),
    "a sum of whole numbers": load() + joined(how="add.s32") + stored(19),
    "a sum of products that are rounded": load() + "mul.rn.f32 %r10, %r9, %r9;\n" + joined(first=10) + stored(20),
    "sums of warps that load the same": load(31) + SUM + stored(19, 0),
    "a sum over two warps": load() + SUM + "shr.u32 %r20, %r2, 5;\nmad.lo.s32 %r21, %r20, 4, %r4;\nst.shared.b32 [%r21], %r19;\n" + SYNC
    + "and.b32 %r22, %r2, 1;\nmad.lo.s32 %r23, %r22, 4, %r4;\nld.shared.b32 %r26, [%r23];\n" + joined((1,), first=26) + stored(28, 0, 64),
    "sums in rounds": COUNTED.format(load() + SUM + stored(19) + SYNC).replace("%r7", "%r29"),
    "the same element": load(0) + stored(9, 0),
    "an element of pairs": load(15) + stored(9, 15),
    "a sum by one instruction": load() + "redux.sync.add.s32 %r10, %r9, -1;\n" + stored(10),
    "the element of each group of lanes": load() + "shfl.sync.idx.b32 %r10, %r9, 0, 31, -1;\n" + load(31, 11)
    + "shfl.sync.up.b32 %r12, %r11, 1, 0, -1;\n" + stored(12, 31),
    "a choice of one kind": load(31) + "mov.b32 %r10, 1;\nsetp.lt.s32 %p2, %r9, 0;\n@%p2 bra $W;\nmov.b32 %r10, 2;\n$W:\n" + stored(10, 31),
    "a choice beside a sum": load() + "mov.b32 %r20, 1;\nsetp.lt.s32 %p2, %r9, 0;\n@%p2 bra $W;\nmov.b32 %r20, 2;\n$W:\n" + SUM
    + stored(19),
    "a guess that is loaded by some": GUESSED.format("mov.b32 %r9, 0;\n") + stored(9, 56),
}  # fmt: skip
# One sum: lanes of a pair may round in their own ways.
ROUNDED: Final = {
    "a product that is joined to the sum": load() + "mul.f32 %r10, %r9, %r9;\n" + exchange(10, 16) + "fma.rn.f32 %r12, %r9, %r9, %r11;\n"
    + joined((8, 4, 2, 1), first=12) + stored(20),
    "a product that may be joined to the sum": load() + "mul.f32 %r10, %r9, %r9;\n" + joined(first=10) + stored(20),
    "a sum in 64 bits": load() + "mov.b64 %rd6, {%r9, %r9};\nshfl.sync.bfly.b32 %r10, %r9, 16, 31, -1;\nadd.f64 %r11, %r9, %r10;\n"
    + stored(11, 47),
}  # fmt: skip
DIFFER: Final = {
    "a sum of half of the lanes": load() + joined((16, 8, 4, 2)) + stored(17),
    "a sum in which two lanes come twice": load() + joined((16, 8, 4, 2, 2)) + stored(19),
    "a sum of all lanes but one": load() + SUM + "setp.eq.u32 %p1, %r2, 3;\nselp.b32 %r20, %r9, %r19, %p1;\n" + stored(20),
    "sums of two warps": load() + SUM + stored(19, 0),
    "sums of two CTAs": load() + SUM + "st.global.b32 [%rd1], %r19;\n",
    "sums by two instructions": load() + SUM + "setp.lt.u32 %p1, %r2, 8;\n@%p1 st.shared.b32 [s], %r19;\n@!%p1 st.shared.b32 [s], %r19;\n",
    "a difference": PAIR.format(joined((16,), "sub.f32")),
    "a sum of some lanes": PAIR.format(exchange(9, 16, 31, 65535) + "add.f32 %r11, %r9, %r10;\n"),
    "a sum of lanes in segments": PAIR.format(exchange(9, 16, 4127) + "add.f32 %r11, %r9, %r10;\n"),
    "a sum under a guard": PAIR.format(exchange(9, 16) + "mov.b32 %r11, %r9;\n@%p1 add.f32 %r11, %r9, %r10;\n"),
    "a sum of all but one guard": PAIR.format("@%p1 cvt.rn.f32.u32 %r9, 1;\n").replace("%r11", "%r9").replace(load(), load(0)),
    "an exchange under a guard": PAIR.format("mov.b32 %r10, 0;\n@%p1 " + exchange(9, 16) + "add.f32 %r11, %r9, %r10;\n"),
    "a sum with another number": PAIR.format("add.f32 %r12, %r9, 0f3F800000;\n" + exchange(9, 16) + "add.f32 %r11, %r12, %r10;\n"),
    "a sum with a number that has changed": PAIR.format(exchange(9, 16) + "cvt.rn.f32.u32 %r9, %r2;\nadd.f32 %r11, %r9, %r10;\n"),
    "a sum with a number that has changed in some": PAIR.format(
        exchange(9, 16) + "setp.lt.f32 %p2, %r9, %r10;\n@%p2 bra $W;\ncvt.rn.f32.u32 %r9, %r2;\n$W:\nadd.f32 %r11, %r9, %r10;\n"
    ),
    "a product of another number": PAIR.format("mul.f32 %r12, %r9, %r9;\n" + exchange(12, 16).replace("%r13", "%r10")
        + "add.f32 %r13, %r9, %r9;\nfma.rn.f32 %r11, %r9, %r13, %r10;\n"),
    "elements of threads": load() + stored(9),
    "elements of lanes, by a shuffle": load() + "shfl.sync.up.b32 %r10, %r9, 1, 0, -1;\n" + stored(10),
    "a sum of each warp by one instruction": load() + "redux.sync.add.s32 %r10, %r9, -1;\n" + stored(10, 0),
    "a sum of some lanes by one instruction": load() + "redux.sync.add.s32 %r10, %r9, 65535;\n" + stored(10),
    "values of rounds that all load": COUNTED.format(
        "mad.wide.s32 %rd5, %r7, 4, %rd2;\nld.global.b32 %r8, [%rd5];\nst.shared.b32 [s], %r8;\n"
    ),
    "a word that others write meanwhile": VOLATILE + "st.volatile.global.b32 [%rd2], %r3;\n" + stored(9, 0),
    "a word that nobody has loaded": GUESSED.format("") + stored(9, 56),
    "a guess that other threads load": GUESSED.format("mov.b32 %r9, 0;\n") + stored(9, 0),
    "a choice of threads": "mov.b32 %r9, 1;\n" + WAY.format(24, "mov.b32 %r9, 2;\n") + stored(9, 47),
    "a choice of threads in rounds": "mov.b32 %r9, 1;\nmov.b32 %r10, %r2;\n$L:\nadd.s32 %r9, %r9, 1;\nsub.s32 %r10, %r10, 1;\n"
    "setp.gt.s32 %p2, %r10, 0;\n@%p2 bra $L;\n" + stored(9, 47),
    "a choice of threads that also store": "mov.b32 %r9, 1;\n" + WAY.format(24, "mov.b32 %r9, 2;\nst.global.b32 [%rd4], %r9;\n")
    + stored(9, 47),
}  # fmt: skip


@dataclass
class ValueProgram:
    """A random kernel without branches, and the bits that each thread of a block of 64 has in its registers from 9 on."""

    text: str
    registers: dict[int, npt.NDArray[np.uint32]]


def value_program(seed: int) -> ValueProgram:
    """Loads, exchanges, sums and choices, each of registers before it."""
    random = Random(seed)
    elements = np.random.default_rng(seed).random(64, np.float32) - np.float32(0.5)
    threads, text, at = np.arange(64), "", FIRST
    held = dict[int, npt.NDArray[np.uint32]]()
    while at < 29:
        kind = random.choice(("load", "exchange", "exchange", "exchange", "exchange", "choice", "pass")) if held else "load"
        own = random.choice([*held][-2:]) if held else 0
        if kind == "load":
            mask = random.choice((63, 31, 15, 32, 0, 47))
            text += f"and.b32 %r{at + 1}, %r2, {mask};\nmad.wide.u32 %rd{at}, %r{at + 1}, 4, %rd2;\nld.global.b32 %r{at}, [%rd{at}];\n"
            held[at], at = elements[threads & mask].view(np.uint32), at + 2
        elif kind == "exchange":
            bits, how = random.choice((16, 8, 4, 2, 1, 3, 24)), random.choice(_JOINING)
            other = random.choice((own, own, own, random.choice([*held])))
            first, second = (f"%r{other}", f"%r{at}") if random.random() < 0.5 else (f"%r{at}", f"%r{other}")
            text += f"shfl.sync.bfly.b32 %r{at}, %r{own}, {bits}, 31, -1;\n{how} %r{at + 1}, {first}, {second};\n"
            moved = held[own][threads ^ bits]
            values = (held[other], moved) if first == f"%r{other}" else (moved, held[other])
            held[at], held[at + 1], at = moved, _computed(how, *values), at + 2
        elif kind == "choice":
            one, mask = random.choice([*held]), random.choice((1, 8, 16, 32))
            text += (
                f"and.b32 %r{at}, %r2, {mask};\nsetp.eq.s32 %p{at // 2}, %r{at}, 0;\nselp.b32 %r{at + 1}, %r{own}, %r{one}, %p{at // 2};\n"
            )
            held[at + 1], at = np.where(threads & mask == 0, held[own], held[one]), at + 2
        else:
            text += f"shfl.sync.idx.b32 %r{at}, %r{own}, 5, 31, -1;\nneg.f32 %r{at + 1}, %r{at};\n"
            moved = held[own][threads // 32 * 32 + 5]
            held[at], held[at + 1], at = moved, (-moved.view(np.float32)).view(np.uint32), at + 2
    stores = "".join(f"st.shared.b32 [%r6], %r{each};\n" for each in held)
    return ValueProgram(text + stores, held)


def _computed(how: str, one: npt.NDArray[np.uint32], other: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    if how == "xor.b32":
        return one ^ other
    a, b = one.view(np.float32), other.view(np.float32)
    with np.errstate(all="ignore"):
        found: npt.NDArray[np.uint32] = _OPERATIONS[how](a, b).view(np.uint32)
    return np.where(a == b, one & other, found) if how == "max.f32" else found  # of two zeros the positive one is larger (ISA "max")


_OPERATIONS: Final = {"add.f32": np.add, "max.f32": np.fmax, "mul.rn.f32": np.multiply, "sub.f32": np.subtract}
_JOINING: Final = ("add.f32", *_OPERATIONS, "xor.b32")
