"""Sparse wgmma is recorded: of A in shared memory the half that is stored, and all of B; its metadata is in a register."""

from __future__ import annotations

import pytest

from consan.instrument import effects
from consan.instrument.hazards.wgmma_state import events_of
from consan.instrument.isa import has_action
from consan.instrument.ptx import parse
from consan.instrument.record import record

KERNEL = """.version 8.5
.target sm_90a
.address_size 64
.visible .entry k()
{{
.reg .b32 %r<20>; .reg .b64 %d<5>; .reg .pred %p<3>; .reg .f32 %f<9>;
mov.u64 %d1, 0;
mov.u64 %d2, 64;
setp.eq.u32 %p1, %r9, 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sp.sync.aligned.{form} {{{registers}}}, {a}, %d2, %r9, 0, {rest};
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
ret;
}}
"""
FLOATS, WORDS, FRAGMENT = "%f1, %f2, %f3, %f4", "%r1, %r2, %r3, %r4", "{%r5, %r6, %r7, %r8}"


@pytest.mark.parametrize(
    ("form", "registers", "a", "rest", "operands"),
    [
        ("m64n8k32.f32.f16.f16", FLOATS, "%d1", "%p1, 1, 1, 0, 0", [(64, 2, False), (8, 4, False)]),
        ("m64n8k32.f32.bf16.bf16", FLOATS, "%d1", "%p1, 1, 1, 1, 1", [(64, 16, True), (8, 32, True)]),
        ("m64n8k32.f32.f16.f16", FLOATS, FRAGMENT, "%p1, 1, 1, 1", [(8, 32, True)]),
        ("m64n8k16.f32.tf32.tf32", FLOATS, "%d1", "%p1, 1, 1", [(64, 2, False), (8, 4, False)]),
        ("m64n8k64.s32.s8.s8", WORDS, "%d1", "%p1", [(64, 2, False), (8, 4, False)]),
    ],
)
def test_operands_in_memory(form: str, registers: str, a: str, rest: str, operands: list[tuple[int, int, bool]]) -> None:
    """Rows, depth in chunks of 16 bytes (transposed: in elements), and whether the operand is transposed."""
    recorded = record(KERNEL.format(form=form, registers=registers, a=a, rest=rest))
    events = [event for template in recorded.blocks.templates for event in template.events if isinstance(event, effects.ProductOperand)]
    assert [(event.rows, event.depth, event.major) for event in events] == operands
    assert (recorded.refused, [each.unmodelled for each in recorded.functions]) == ({}, [[]])


@pytest.mark.parametrize(("scale", "discards"), [("%p1", False), ("0", True), ("1", False)])
def test_whether_the_accumulators_are_kept(scale: str, discards: bool) -> None:
    """`scale-d` comes behind the metadata and its selector, which is 0 here."""
    (function,) = parse(KERNEL.format(form="m64n8k64.s32.s8.s8", registers=WORDS, a="%d1", rest=scale)).functions
    assert [each.discards for each in events_of(function).values() if has_action(each.instruction, "wgmma", "mma_async")] == [discards]
