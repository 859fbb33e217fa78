"""Decoding of non-bulk cp.async (PTX ISA, "cp.async", "cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all").

`copies` decides when a copy lands. Bulk copies are in bulk.py, tensor copies in tensor.py, cp.async.mbarrier.arrive in mbarrier_steps.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.instrument.ptx import Immediate, Negated, Operand, Register

from . import bulk, mbarrier_steps, tensor
from .access import locator
from .address import GlobalLocator, Located
from .copies import Copy
from .operands import Context
from .registers import RAW_DTYPES
from .steps import Step, selective

Array = npt.NDArray[Any]
_MODIFIER = re.compile(r"L[12]::|global$|shared$|shared::cta$|ca$|cg$")


def decode(context: Context) -> Step:
    """Any cp instruction."""
    parts = context.parts
    if "tensor" in parts:
        return tensor.decode_copy(context)
    if "bulk" in parts:
        return bulk.decode(context)
    if parts[1:4] == ("async", "mbarrier", "arrive"):
        return mbarrier_steps.decode_arrive_on(context)
    if parts[1:3] == ("async", "commit_group"):
        copies = context.function.plan.copies
        return selective(lambda sel: copies.commit(sel, "async"))
    if parts[1:3] == ("async", "wait_group"):
        return _wait(context, int(getattr(context.instruction.operands[0], "value", 0)))
    if parts[1:3] == ("async", "wait_all"):
        return _wait(context, None)
    if parts[1:2] != ("async",) or not all(_MODIFIER.match(part) for part in parts[2:]):
        raise context.unsupported()
    return _copy(context)


def _wait(context: Context, pending: int | None) -> Step:
    plan, ids = context.function.plan, context.wave.ids
    return selective(lambda sel: plan.copies.wait(ids[sel], pending, "async"))


def _fill(context: Context, operands: list[Operand], nbytes: int) -> Callable[[Any], Array | None]:
    """Bytes that each lane takes from the source: all, `src-size`, or none under `ignore-src`."""
    extra = operands[0] if operands else None
    if isinstance(extra, Negated) or (isinstance(extra, Register) and context.raw(extra.name).dtype == np.bool_):
        name = extra.operand.name if isinstance(extra, Negated) else extra.name
        ignore, flip = context.predicate(name), isinstance(extra, Negated)
        return lambda sel: np.where(ignore[sel] ^ flip, 0, nbytes)
    if isinstance(extra, (Register, Immediate)) and not _is_cache_policy(context, operands):
        size = context.source(extra, "u32")
        if size.ndim == 0:
            return lambda sel: None if int(size) == nbytes else np.full(len(context.wave.ids[sel]), int(size))
        return lambda sel: size[sel].astype(np.int64)
    return lambda sel: None


def _is_cache_policy(context: Context, operands: list[Operand]) -> bool:
    """Whether a lone extra operand is the cache policy: it is if the opcode has .L2::cache_hint."""
    return len(operands) == 1 and "L2::cache_hint" in context.parts


def _sized_sources(from_: GlobalLocator, lanes: Array, taken: Array) -> Located:
    """Sources of which only `taken` bytes are read. A source that is not read may lie anywhere."""
    index, reading = np.zeros(len(lanes), np.int64), taken > 0
    view, index[reading] = from_.part_sized(lanes[reading], taken[reading])
    return view, index


def _copy(context: Context) -> Step:
    target, source, size, *rest = context.instruction.operands
    assert isinstance(size, Immediate)
    nbytes = int(size.value)
    if nbytes not in RAW_DTYPES or nbytes < 4:
        raise context.unsupported(f"{nbytes} bytes")
    to = locator(context, "shared", target, nbytes, "write")
    from_ = locator(context, "global", source, nbytes, "read")
    assert isinstance(from_, GlobalLocator)
    fill = _fill(context, rest, nbytes)
    plan, ids = context.function.plan, context.wave.ids

    def part(sel: Any) -> None:
        lanes, taken = ids[sel], fill(sel)
        sources = from_.part(lanes) if taken is None or (taken == nbytes).all() else _sized_sources(from_, lanes, taken)
        plan.copies.issue(Copy(lanes, sources, to.part(lanes), taken, nbytes, context.site))

    return selective(part)
