"""Decodes an instruction into a step: the machine's own instructions by table, all others through `semantics`.

An unknown instruction becomes a step that raises `UnsupportedInstruction` when it runs, because a module may hold
instructions for other paths or architectures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import access, async_steps, atomic_steps, bulk, cluster, lanes, matrix, mbarrier_steps, tensor, wgmma
from .faults import UnsupportedInstruction
from .operands import Context
from .steps import Step, effect, nothing, predicated

Decoder = Callable[[Context], Step]


def _activemask(context: Context) -> Step:
    target = context.target(context.instruction.operands[0], "b32")
    wave = context.wave

    def part(sel: Any) -> None:
        chosen = wave.ids[sel]
        target.write(sel, wave.warp_masks(chosen)[wave.warp_of[chosen]])

    return effect(lambda: part(slice(None)), part)


def _ignored(_context: Context) -> Step:
    return nothing()


TABLE: dict[str, Decoder] = {
    "mov": wgmma.decode_mov,
    "ld": access.decode_ld,
    "ldu": access.decode_ld,
    "st": access.decode_st,
    "cvta": access.decode_cvta,
    "isspacep": access.decode_isspacep,
    "alloca": access.decode_alloca,
    "stacksave": access.decode_stacksave,
    "stackrestore": access.decode_stackrestore,
    "atom": atomic_steps.decode,
    "red": atomic_steps.decode,
    "ldmatrix": matrix.decode_ldmatrix,
    "stmatrix": matrix.decode_stmatrix,
    "cp": async_steps.decode,
    "mbarrier": mbarrier_steps.decode,
    "barrier": cluster.decode_arrive,
    "mapa": cluster.decode_mapa,
    "getctarank": cluster.decode_getctarank,
    "wgmma": wgmma.decode,
    "tensormap": tensor.decode_tensormap,
    "activemask": _activemask,
    "nanosleep": _ignored,
    **dict.fromkeys(("prefetch", "prefetchu", "applypriority", "discard", "createpolicy", "pmevent", "setmaxnreg"), _ignored),
}

# Names of which the machine knows only some forms.
FORMS: dict[tuple[str, ...], Decoder] = {
    **dict.fromkeys((("membar", scope) for scope in ("cta", "gl", "sys")), _ignored),
    **dict.fromkeys((("griddepcontrol", action) for action in ("launch_dependents", "wait")), _ignored),
}
# Instructions that share only their first word with the table's.
PREFIXES: dict[tuple[str, ...], Decoder] = {
    ("st", "async"): bulk.decode_store,
    ("red", "async"): bulk.decode_reduction,
    ("st", "bulk"): bulk.decode_fill,
}
FENCE_WORDS = frozenset(
    (
        *("fence", "membar", "sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "sys"),
        *("proxy", "async", "alias", "global", "shared::cta", "shared::cluster", "async.global", "async.shared::cta"),
        *("async::generic", "tensormap::generic", "mbarrier_init"),
        *("sync_restrict::shared::cta", "sync_restrict::shared::cluster"),
    )
)


def decode(context: Context) -> Step:
    """The step of an instruction, with its guard predicate."""
    guard = context.instruction.predicate
    step = _unguarded(context)
    if guard is None:
        return step
    return predicated(step, context.predicate(guard.register), guard.negated, context.wave.ids)


def _unguarded(context: Context) -> Step:
    parts = context.parts
    decoder = FORMS.get(parts) or PREFIXES.get(parts[:2]) or TABLE.get(parts[0])
    if parts[0] in ("fence", "membar") and FENCE_WORDS.issuperset(parts):
        decoder = _ignored
    step = decoder(context) if decoder is not None else lanes.decode(context)
    if step is None:
        raise context.unsupported()
    return step


def refusal(error: UnsupportedInstruction) -> Step:
    """A step that raises when it runs."""

    def refuse(_sel: object = None) -> None:
        raise error

    return effect(refuse, refuse)
