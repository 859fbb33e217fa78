"""Random kernels of one warp with `ldmatrix` or `stmatrix` and one more access: their answers against enumeration of all bytes."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from proof_cases import answer

LANES = 32
OWN_HALF = "and.b32 %r15, %r2, 3;\nshr.u32 %r16, %r2, 2;\nmad.lo.s32 %r15, %r15, 16, %r16;\nmad.lo.s32 %r9, %r15, 2, %r4;"


@dataclass(frozen=True)
class RowProgram:
    """Lane l gives row `(step * l) ^ mask`. It accesses `width` bytes, as far apart as `stride`; 0: the halves that it gets by `.trans`."""

    matrices: int
    transposed: bool
    stores: bool
    step: int
    mask: int
    width: int
    stride: int
    shift: int
    writes: bool
    first: bool

    @classmethod
    def drawn(cls, draw: random.Random) -> RowProgram:
        """A random one, whose accesses are aligned and may race."""
        width, stores = draw.choice((2, 4, 4)), draw.random() < 0.5
        return cls(
            draw.choice((1, 2, 4)), draw.random() < 0.5, stores, draw.choice((1, 1, 1, 3, 2)), draw.choice((0, 0, 1, 4, 8)), width,
            draw.choice((4, 16) if width == 4 else (0, 0, 2, 16)), draw.choice((0, 0, 4, 16, 64)), not stores or draw.random() < 0.6,
            draw.random() < 0.5,
        )  # fmt: skip

    def text(self) -> str:
        """The body of the kernel."""
        words = f"sync.aligned.m8n8.x{self.matrices}{'.trans' * self.transposed}.shared.b16"
        registers = ["%r10", "%r11", "%r12", "%r13"][: self.matrices]
        stored, loaded = ", ".join(["%r2"] * self.matrices), ", ".join(registers)
        matrix = f"stmatrix.{words} [%r6], {{{stored}}};" if self.stores else f"ldmatrix.{words} {{{loaded}}}, [%r6];"
        kind, register = f"shared.u{8 * self.width}", "%rs1" if self.width == 2 else "%r14"
        access = f"st.{kind} [%r9], {register};" if self.writes else f"ld.{kind} {register}, [%r9];"
        place = f"mad.lo.s32 %r9, %r2, {self.stride}, %r4;" if self.stride else OWN_HALF
        rows = f"mul.lo.s32 %r7, %r2, {self.step};\nxor.b32 %r7, %r7, {self.mask};\nmad.lo.s32 %r6, %r7, 16, %r4;"
        both = (matrix, access) if self.first else (access, matrix)
        return "\n".join((rows, place, f"add.s32 %r9, %r9, {self.shift};", *both))

    def races(self) -> bool:
        """Whether two lanes access one byte, or two rows of one instruction have it, and one writes."""
        bytes_of = defaultdict[int, list[tuple[int, bool, int]]](list)  # the lane, whether it writes, and the lane that gives the address
        for lane in range(8 * self.matrices):
            for at in range(16):
                owner = 4 * (at // 2) + lane % 8 // 2 if self.transposed else 4 * (lane % 8) + at // 4
                bytes_of[16 * ((self.step * lane) ^ self.mask) + at].append((owner, self.stores, lane))
        for lane in range(LANES):
            place = lane * self.stride if self.stride else ((lane & 3) * 16 + (lane >> 2)) * 2
            for at in range(self.width):
                bytes_of[place + self.shift + at].append((lane, self.writes, -1))
        pairs = (pair for each in bytes_of.values() for pair in combinations(each, 2))
        return any((one[1] or other[1]) and (one[0] != other[0] or min(one[2], other[2]) >= 0) for one, other in pairs)


def differing(seeds: Iterable[int]) -> tuple[list[int], int]:
    """The seeds whose answer is not that of the enumeration, and how many are proven."""
    found, proven = [], 0
    for seed in seeds:
        program = RowProgram.drawn(random.Random(seed))
        is_proven = answer(program.text(), block=LANES, seconds=10).answer == "proven"
        proven += is_proven
        if is_proven is program.races():
            found.append(seed)
    return found, proven
