"""Steps for instructions whose meaning is pure: `ops.semantics` gives the function, this module binds it to arrays.

Lane operations with a ufunc become one `functools.partial` of it; those without call the function and copy. Warp operations
(shuffles, votes, matrix products) gather [warps, 32] arrays first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.operands import DecodeContext, Target, is_clock
from consan.backends.cpu.decode.program import RegisterVariable
from consan.backends.cpu.decode.special import CLOCKS
from consan.backends.cpu.decode.steps import Step, effect
from consan.backends.cpu.state.registers import WORD_DTYPES
from consan.backends.cpu.state.wave import WARP, Wave
from consan.instrument.ptx import Address, Immediate, Negated, Operand, Pair, Register, Symbol, SymbolOffset
from consan.instrument.ptx.operands import flatten

from .fused import FUSED, fused_full
from .ops import Op, semantics
from .ops_base import CANONICAL_NAN

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]


def decode(context: DecodeContext) -> Step | None:
    """The step of an instruction that `semantics` knows; None for others."""
    operands = context.instruction.operands
    op = semantics(context.instruction.parts, sources=len(operands) - 1)
    if op is None:
        return None
    if op.pair is not None and operands and isinstance(operands[0], Pair):
        op = op.pair
    flat = [inner for operand in operands for inner in flatten(operand)]
    targets, sources, function = _bind(context, op, flat)
    return lane_step(context, op, function, sources, targets) if op.kind == "lane" else warp_step(context, function, sources, targets)


def _bind(context: DecodeContext, op: Op, operands: list[Operand]) -> tuple[list[Target], list[Array], Callable[..., Any]]:
    implicit = sum(word == "cc" for word in op.dests)
    explicit_dests = op.dests[: len(op.dests) - implicit]
    explicit_sources = op.sources[: len(op.sources) - sum(word == "cc" for word in op.sources)]
    given = operands[len(explicit_dests) :]
    if len(given) < len(explicit_sources):
        raise context.unsupported(f"{len(operands)} operands, {len(explicit_dests) + len(explicit_sources)} expected")
    targets = [context.target(o, word) for o, word in zip(operands, explicit_dests)]  # noqa: B905 - the rest are sources
    negated = [isinstance(o, Negated) for o in given[: len(explicit_sources)]]
    plain = [o.operand if isinstance(o, Negated) else o for o in given]
    sources = [context.source(o, word) for o, word in zip(plain, explicit_sources)]  # noqa: B905 - hints may follow
    carry = context.function.carry
    if implicit:
        targets.append(Target(carry, carry.dtype, True))
    if "cc" in op.sources:
        sources.append(carry)
    return targets, sources, _inverting(op.fn, negated) if any(negated) else op.fn


def _inverting(function: Callable[..., Any], negated: list[bool]) -> Callable[..., Any]:
    """`function` with some predicate sources negated. The first argument of a warp function is its mask."""

    def inverted(*values: Any) -> Any:
        extra = len(values) - len(negated)
        return function(*values[:extra], *(~v if flip else v for v, flip in zip(values[extra:], negated, strict=True)))

    return inverted


def lane_step(context: DecodeContext, op: Op, function: Callable[..., Any], sources: list[Array], targets: list[Target]) -> Step:
    """A step for an operation on each lane alone."""
    target = targets[0]
    if len(targets) == 1 and target.array is not None and target.exact and op.ufunc is not None and function is op.fn:
        word = op.dests[0]
        nan = np.array(CANONICAL_NAN[word], f"u{WORD_DTYPES[word].itemsize}") if op.canonical_nan else None
        return ufunc_step(context.wave, op.ufunc, sources, target.array, nan)
    step = function_step(function, sources, targets)
    if context.instruction.parts in FUSED and target.array is not None and function is op.fn:
        step.full = fused_full(function, sources, target.array)
    return step


def _picker(sources: list[Array]) -> Callable[[Any], list[Array]]:
    flags = [source.ndim > 0 for source in sources]
    pairs = list(zip(sources, flags, strict=True))
    if len(sources) == 2 and all(flags):
        a, b = sources
        return lambda sel: [a[sel], b[sel]]
    return lambda sel: [source[sel] if many else source for source, many in pairs]


def ufunc_step(wave: Wave, ufunc: np.ufunc, sources: list[Array], out: Array, nan: Array | None = None) -> Step:
    """A step that is one ufunc."""
    pick = _picker(sources)
    temporary = wave.scratch.temporary(out.dtype)
    call = ufunc if nan is None else _canonical(ufunc, nan)

    def part(sel: Any) -> None:
        out[sel] = call(*pick(sel))

    # A positional output is faster, but NumPy deprecates it for these two.
    by_name = ufunc in (np.maximum, np.minimum)
    into: Callable[[], Any] = partial(call, *sources, out=temporary) if by_name else partial(call, *sources, temporary)

    def masked(mask: Bools) -> None:
        into()
        np.putmask(out, mask, temporary)

    return Step(partial(call, *sources, out=out) if by_name else partial(call, *sources, out), part, masked, True)


def _canonical(ufunc: np.ufunc, nan: Array) -> Callable[..., Any]:
    """`ufunc`, but every NaN result gets the bits that the hardware writes."""
    raw = nan.dtype
    count, isnan, fill = np.count_nonzero, np.isnan, nan[()]

    def call(*arguments: Any, **more: Any) -> Any:
        result = ufunc(*arguments, **more)
        wrong = isnan(result)
        if count(wrong):
            result = np.asarray(result)
            result.view(raw)[wrong] = fill
        return result

    return call


def function_step(function: Callable[..., Any], sources: list[Array], targets: list[Target]) -> Step:
    """A step for any function on each lane alone."""
    pick = _picker(sources)
    everything = slice(None)
    single = targets[0] if len(targets) == 1 else None

    def store(sel: Any, result: Any) -> None:
        if single is not None:
            single.write(sel, result)
        else:
            for target, values in zip(targets, result, strict=True):
                target.write(sel, values)

    def masked(mask: Bools) -> None:
        results = function(*sources)
        for target, values in zip(targets, (results,) if single is not None else results, strict=True):
            if target.array is not None:
                np.copyto(target.array, target.prepare(np.asarray(values)), where=mask, casting="unsafe")

    return Step(lambda: store(everything, function(*sources)), lambda sel: store(sel, function(*pick(sel))), masked, True)


def warp_step(context: DecodeContext, function: Callable[..., Any], sources: list[Array], targets: list[Target]) -> Step:
    """A step for an operation on whole warps."""
    wave = context.wave
    warps, present, slots = wave.warps.count, wave.warps.present, wave.warps.slots
    whole = (warps, WARP)

    def spread(source: Array) -> Array:
        if source.ndim == 0:
            return np.broadcast_to(source, whole)
        return source.reshape(whole) if wave.warps.aligned else source[slots]

    def full() -> None:
        results = function(present, *map(spread, sources))
        for target, values in zip(targets, results if isinstance(results, tuple) else (results,), strict=True):
            values = np.broadcast_to(values, whole)
            target.write(slice(None), values.reshape(-1) if wave.warps.aligned else values[present])

    def part(sel: Any) -> None:
        mask, rows = active_warps(wave, wave.ids[sel])
        lanes = rows[mask]
        gathered = [source[rows] if source.ndim else np.broadcast_to(source, rows.shape) for source in sources]
        results = function(mask, *gathered)
        for target, values in zip(targets, results if isinstance(results, tuple) else (results,), strict=True):
            target.write(lanes, np.broadcast_to(values, rows.shape)[mask])

    return effect(full, part)


def active_warps(wave: Any, lanes: Array) -> tuple[Bools, Array]:
    """For the warps of some lanes: the mask of the lanes, and the lane number of every thread, [warps, 32] each."""
    flags = np.zeros(wave.warps.count * WARP, np.bool_)
    flags[wave.warps.slot_of[lanes]] = True
    flags = flags.reshape(wave.warps.count, WARP)
    touched = flags.any(1).nonzero()[0]
    return flags[touched], wave.warps.slots[touched]


Pairs = list[tuple[Array, Array]]


def copy_step(pairs: Pairs) -> Step:
    """A step that copies arrays to arrays: moves, packing, parameters of calls."""
    if len(pairs) == 1 and pairs[0][0].dtype == pairs[0][1].dtype:
        target, source = pairs[0]
        full: Callable[[], object] = partial(np.copyto, target, source)
    else:

        def full() -> None:
            for target, source in pairs:
                target[...] = source

    def part(sel: Any) -> None:
        for target, source in pairs:
            target[sel] = source[sel] if source.ndim else source

    def masked(mask: Bools) -> None:
        for target, source in pairs:
            np.copyto(target, source, where=mask, casting="unsafe")

    return Step(full, part, masked, True)


def decode_mov(context: DecodeContext) -> Step:
    """mov, with packing and unpacking of vectors, special registers and addresses."""
    word = context.modifiers["type"]
    target, source = context.instruction.operands[:2]
    targets, sources = flatten(target), flatten(source)
    if word not in WORD_DTYPES or (len(targets) > 1 and len(sources) > 1):
        raise context.unsupported()
    if is_clock(source):
        assert isinstance(source, Register)
        return _clock(source.name, context.target(target, word))
    if word == "b128":
        return copy_step(_wide_pairs(context, targets, sources))
    if len(targets) == 1 and len(sources) == 1:
        return _plain_move(context, targets[0], sources[0], word)
    return copy_step(_packed_pairs(context, targets, sources, WORD_DTYPES[word].itemsize))


def _plain_move(context: DecodeContext, target: Operand, source: Operand, word: str) -> Step:
    bits = word if word == "pred" else f"b{8 * WORD_DTYPES[word].itemsize}"
    bound = context.target(target, bits)
    if isinstance(source, (Symbol, SymbolOffset, Address)):
        place = context.place(source)
        if place.base is not None:
            return function_step(np.add, [place.base, np.array(place.offset, np.uint32)], [bound])
    value = context.source(source, word if isinstance(source, Immediate) else bits)
    if isinstance(source, Immediate):
        value = value.view(WORD_DTYPES[bits])
    return copy_step([(bound.array, value)] if bound.array is not None else [])


def _lane_parts(raw: Array, count: int) -> list[Array]:
    """The equal parts of a register, as views, or of a number; low part first."""
    part = np.dtype(f"u{raw.dtype.itemsize // count}")
    if not raw.ndim:
        return [np.array(each) for each in raw.reshape(1).view(part)]
    return [raw.view(part)[k::count] for k in range(count)]


def _packed_pairs(context: DecodeContext, targets: tuple[Operand, ...], sources: tuple[Operand, ...], nbytes: int) -> Pairs:
    count = max(len(targets), len(sources))
    whole = np.dtype(f"u{nbytes}")
    piece = f"b{8 * nbytes // count}"
    if len(targets) == 1:
        out = context.target(targets[0], f"b{8 * nbytes}")
        parts = _lane_parts(out.array, count) if out.array is not None and out.exact else []
        if not parts:
            raise context.unsupported("packing into a wider register")
        return [(part, context.source(s, piece)) for part, s in zip(parts, sources, strict=True)]
    parts = _lane_parts(context.source_as(sources[0], whole), count)
    bound = [context.target(t, piece) for t in targets]
    return [(t.array, part) for t, part in zip(bound, parts, strict=True) if t.array is not None]


def halves(context: DecodeContext, operand: Operand) -> list[Array]:
    """The two 64-bit halves of a .b128 register."""
    found = context.resolve(operand.name) if isinstance(operand, Register) else None
    if not isinstance(found, RegisterVariable) or found.word != "b128":
        raise context.unsupported(f"{operand.text} is no .b128 register")
    return _lane_parts_128(context.function.register(found))


def _lane_parts_128(raw: Array) -> list[Array]:
    words = raw.view(np.uint64)
    return [words[0::2], words[1::2]]


def _wide_pairs(context: DecodeContext, targets: tuple[Operand, ...], sources: tuple[Operand, ...]) -> Pairs:
    left = halves(context, targets[0]) if len(targets) == 1 else [context.target(t, "b64").array for t in targets]
    right = halves(context, sources[0]) if len(sources) == 1 else [context.source(s, "b64") for s in sources]
    return [(t, s) for t, s in zip(left, right, strict=True) if t is not None]


def _clock(name: str, target: Target) -> Step:
    read, dtype = CLOCKS[name], target.dtype
    bits = np.dtype(f"u{dtype.itemsize}")
    limit = (1 << 8 * dtype.itemsize) - 1

    def now() -> Array:
        return np.array(read() & limit, bits)

    def masked(mask: Bools) -> None:
        target.write(mask.nonzero()[0], now())

    return Step(lambda: target.write(slice(None), now()), lambda sel: target.write(sel, now()), masked, True)
