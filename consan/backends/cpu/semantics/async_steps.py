"""Decoding of non-bulk cp.async (PTX ISA, "cp.async", "cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all").

`copies` decides when a copy lands. Bulk copies are in bulk.py, tensor copies in tensor.py, cp.async.mbarrier.arrive in mbarrier_steps.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.address import GlobalLocator, Located
from consan.backends.cpu.decode.operands import DecodeContext, Steps
from consan.backends.cpu.decode.steps import Step, selective
from consan.backends.cpu.state.copies import Copy
from consan.backends.cpu.state.registers import RAW_DTYPES
from consan.instrument.ptx import Immediate, Negated, Operand, Register

from .access import locator

Array = npt.NDArray[Any]


def _commit(context: DecodeContext) -> Step:
    copies = context.function.plan.copies
    return selective(lambda sel: copies.commit(sel, "async"))


def _wait_group(context: DecodeContext) -> Step:
    return _wait(context, int(getattr(context.instruction.operands[0], "value", 0)))


def _wait_all(context: DecodeContext) -> Step:
    return _wait(context, None)


def _wait(context: DecodeContext, pending: int | None) -> Step:
    plan, ids = context.function.plan, context.wave.ids
    return selective(lambda sel: plan.copies.wait(ids[sel], pending, "async"))


def _fill(context: DecodeContext, operands: list[Operand], nbytes: int) -> Callable[[Any], Array | None]:
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


def _is_cache_policy(context: DecodeContext, operands: list[Operand]) -> bool:
    """Whether a lone extra operand is the cache policy: it is if the opcode has .L2::cache_hint."""
    return len(operands) == 1 and "level::cache_hint" in context.modifiers


def _sized_sources(from_: GlobalLocator, lanes: Array, taken: Array) -> Located:
    """Sources; of each only `taken` bytes are read. A source that is not read may lie anywhere."""
    index, reading = np.zeros(len(lanes), np.int64), taken > 0
    view, index[reading] = from_.part_sized(lanes[reading], taken[reading])
    return view, index


def _copy(context: DecodeContext) -> Step:
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


STEPS: Steps = {
    "cp.async": _copy,
    "cp.async.commit_group": _commit,
    "cp.async.wait_group": _wait_group,
    "cp.async.wait_all": _wait_all,
}
