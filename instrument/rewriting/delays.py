"""Seeded delays for `consan stress` on a GPU: schedules that the hardware does not produce by itself.

They are at the start of a kernel, and directly before synchronising and asynchronous instructions, after their hooks. There each warp
hashes the seed, the place, its CTA and its number. One warp in eight sleeps, for about 512 ns to 66 us (ISA "nanosleep": up to twice as
long). A warp that others should overtake must sleep longer than their hooks take, some microseconds each. The seed is a variable of
the module, so one assembly serves all seeds; 0 disables the delays. The snippet has no branch and works for any active lanes, so
`.aligned` instructions after it stay legal.

Not delayed: wgmma.mma_async itself, because the assembler must not find other code beside it, and plain loads and stores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from consan.instrument.isa import row_of
from consan.instrument.ptx import Edits, Function, Instruction, Module

SEED: Final = "__consan_delay_seed"

DECLARATION: Final = f".visible .global .align 4 .u32 {SEED};"
# Murmur3's finaliser (public domain) mixes the inputs. Bits 0 to 2 select the sleepers, bits 3 to 5 the duration.
_SNIPPET: Final = """{{
.reg .b32 %__consan_d<6>;
.reg .pred %__consan_z<3>;
ld.global.u32 %__consan_d0, [{seed}];
mov.u32 %__consan_d1, %tid.z;
mov.u32 %__consan_d2, %ntid.y;
mov.u32 %__consan_d3, %tid.y;
mad.lo.u32 %__consan_d1, %__consan_d1, %__consan_d2, %__consan_d3;
mov.u32 %__consan_d2, %ntid.x;
mov.u32 %__consan_d3, %tid.x;
mad.lo.u32 %__consan_d1, %__consan_d1, %__consan_d2, %__consan_d3;
shr.u32 %__consan_d1, %__consan_d1, 5;
mov.u32 %__consan_d2, %ctaid.x;
mov.u32 %__consan_d3, %ctaid.y;
mov.u32 %__consan_d4, %ctaid.z;
mad.lo.u32 %__consan_d1, %__consan_d2, 0x9e3779b1, %__consan_d1;
mad.lo.u32 %__consan_d1, %__consan_d3, 0x85ebca77, %__consan_d1;
mad.lo.u32 %__consan_d1, %__consan_d4, 0xc2b2ae3d, %__consan_d1;
mad.lo.u32 %__consan_d1, %__consan_d0, 0x27d4eb2f, %__consan_d1;
xor.b32 %__consan_d1, %__consan_d1, {site};
shr.u32 %__consan_d2, %__consan_d1, 16;
xor.b32 %__consan_d1, %__consan_d1, %__consan_d2;
mul.lo.u32 %__consan_d1, %__consan_d1, 0x85ebca6b;
shr.u32 %__consan_d2, %__consan_d1, 13;
xor.b32 %__consan_d1, %__consan_d1, %__consan_d2;
mul.lo.u32 %__consan_d1, %__consan_d1, 0xc2b2ae35;
shr.u32 %__consan_d2, %__consan_d1, 16;
xor.b32 %__consan_d1, %__consan_d1, %__consan_d2;
and.b32 %__consan_d2, %__consan_d1, 7;
setp.eq.u32 %__consan_z0, %__consan_d2, 0;
setp.ne.u32 %__consan_z1, %__consan_d0, 0;
and.pred %__consan_z2, %__consan_z0, %__consan_z1;
bfe.u32 %__consan_d2, %__consan_d1, 3, 3;
mov.u32 %__consan_d3, 512;
shl.b32 %__consan_d3, %__consan_d3, %__consan_d2;
@%__consan_z2 nanosleep.u32 %__consan_d3;
}}
"""


def insert_delays(module: Module, edits: Edits) -> None:
    """Insert a delay before each site, after the hooks there. The module must declare SEED (DECLARATION)."""
    instructions = (instruction for function in module.functions for instruction in _sites(function))
    for number, instruction in enumerate(instructions, 1):
        edits.insert_before(instruction, _SNIPPET.format(seed=SEED, site=f"{number * 0x9E3779B9 & 0xFFFFFFFF:#x}"))


def _sites(function: Function) -> Iterator[Instruction]:
    if function.body is None:
        return
    begins = function.kind == "entry"
    for instruction in function.body.instructions():
        row = row_of(instruction)
        asynchronous = row.is_asynchronous and not (row.is_product or (row.is_of_products and row.commits))
        if begins or row.synchronises or row.changes_map or asynchronous:
            yield instruction
        begins = False
