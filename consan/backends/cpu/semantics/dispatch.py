"""Decodes an instruction into a step, by its row of the instruction table: a step of the machine's own, or one that `semantics` computes.

An unknown instruction becomes a step that raises `UnsupportedInstruction` when it runs, because a module may hold
instructions for other paths or architectures.
"""

from __future__ import annotations

from typing import Any

from consan.backends.cpu.decode.operands import DecodeContext, Steps
from consan.backends.cpu.decode.steps import Step, effect, nothing, predicated
from consan.backends.cpu.state.faults import UnsupportedInstruction

from . import (
    access,
    async_steps,
    atomic_steps,
    bulk,
    cluster,
    lanes,
    launch_control,
    matrix,
    mbarrier_steps,
    surfaces,
    tcgen05,
    tcgen05_registers,
    tensor,
    textures,
    wgmma,
    wmma,
)


def _activemask(context: DecodeContext) -> Step:
    target = context.target(context.instruction.operands[0], "b32")
    wave = context.wave

    def part(sel: Any) -> None:
        chosen = wave.ids[sel]
        target.write(sel, wave.warps.masks(chosen)[wave.warps.of_lane[chosen]])

    return effect(lambda: part(slice(None)), part)


def _ignored(_context: DecodeContext) -> Step:
    return nothing()


_IGNORED = (
    *("fence", "fence.mbarrier_init", "fence.proxy", "membar", "membar.proxy", "griddepcontrol", "nanosleep", "pmevent", "setmaxnreg"),
    *("prefetch", "prefetchu", "applypriority", "discard", "createpolicy"),
    *(
        "consan_release",
        "consan_acquire",
        "consan_ignore_begin",
        "consan_ignore_end",
        "consan_put_fence",
        "consan_put_begin",
        "consan_put_end",
    ),
)
_MODULES = (
    *(access, atomic_steps, matrix, async_steps, mbarrier_steps, cluster, wgmma, tcgen05, tcgen05_registers, tensor, bulk, wmma),
    *(launch_control, surfaces, textures),
)
STEPS: Steps = {
    **{key: decoder for module in _MODULES for key, decoder in module.STEPS.items()},
    "activemask": _activemask,
    **dict.fromkeys(_IGNORED, _ignored),
}
"""Decoders of instructions that change the machine's state; those that compute in registers are in `ops_registry.OPERATIONS`."""


def decode(context: DecodeContext) -> Step:
    """The step of an instruction, with its guard predicate."""
    guard = context.instruction.predicate
    step = tcgen05_registers.after_loads(context, _unguarded(context))
    if guard is None:
        return step
    return predicated(step, context.predicate(guard.register), guard.negated, context.wave.ids)


def _unguarded(context: DecodeContext) -> Step:
    row = context.row
    if row is None:
        raise context.unsupported()
    decoder = STEPS.get(row.form) or STEPS.get(row.name)
    step = decoder(context) if decoder is not None else lanes.decode(context)
    if step is None:
        raise context.unsupported()
    return step


def refusal(error: UnsupportedInstruction) -> Step:
    """A step that raises when it runs."""

    def refuse(_sel: object = None) -> None:
        raise error

    return effect(refuse, refuse)
