"""Bulk asynchronous copies and related instructions (PTX ISA, "cp.async.bulk", "cp.reduce.async.bulk", "st.async", "red.async", "st.bulk").

Addresses and sizes are checked at issue, so a fault names the instruction. Bytes move when the operation lands (copies.py). Each
lane's copy is a separate operation. A size or an address that is no multiple of 16 is undefined in the ISA and a fault here.
An mbarrier gets a complete-tx of the bytes. With .multicast::cluster the copy to each destination CTA is a separate
operation that lands by itself. So are the stores of one st.async that complete on different mbarriers.

A multimem address is that of the memory itself (access.py).

Not handled: tensor copies (tensor.py). Cache policies have no effect. Bytes that .ignore_oob leaves out are poison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.address import shared_start
from consan.backends.cpu.decode.operands import DecodeContext, Steps
from consan.backends.cpu.decode.steps import Step, nothing, selective
from consan.backends.cpu.state.copies import EMPTY, BulkOperation
from consan.backends.cpu.state.faults import LaneError
from consan.backends.cpu.state.memory import GLOBAL_BASE, RANK_SHIFT, SHARED_WINDOW
from consan.backends.cpu.state.registers import RAW_DTYPES, WORD_DTYPES
from consan.instrument.ptx import Operand
from consan.instrument.ptx.operands import flatten

from .access import SPACES, locator, scatter, space_of
from .atomics import read_modify_write
from .lanes import halves
from .mbarrier_steps import barrier_locator, per_lane, units_of
from .ops import atomic_function

Array = npt.NDArray[Any]
Lanes = npt.NDArray[np.intp]
Function = Callable[..., Any]

_POISON = 0xFF  # indeterminate bytes
OPERATIONS = frozenset(["and", "or", "xor", "add", "inc", "dec", "min", "max"])


class Range:
    """One side of a bulk copy: maps an address operand and sizes to offsets in the arena."""

    def __init__(self, context: DecodeContext, space: str, operand: Operand, access: str, granule: int = 16) -> None:
        self.wave, self.site = context.wave, context.site
        self.space = SPACES.get(space, space)
        self.ranked = space in ("shared::cluster", "generic")
        self.access = access
        self.granule = granule
        self.place = context.place(operand)

    def part(self, lanes: Lanes, sizes: Array, unread: Sequence[Array] = ()) -> Array:
        """Offsets in the arena's bytes. Raises for the first lane whose range is invalid.

        `unread`: how many bytes at the beginning and at the end may lie outside.
        """
        addresses = self._addresses(lanes)
        for values, what in ((sizes, "the size"), (addresses, "the address")):
            wrong = (values % self.granule).nonzero()[0]
            if len(wrong):
                message = f"{what}, {int(values[wrong[0]]):#x}, is not a multiple of {self.granule}"
                raise self._fault("misaligned", lanes, addresses, sizes, int(wrong[0]), message)
        first, last = unread or (np.int64(0), np.int64(0))
        valid, offsets = (self._global if self.space == "global" else self._shared)(lanes, addresses + first, sizes - first - last)
        wrong = (~valid).nonzero()[0]
        if len(wrong):
            raise self._fault("out-of-bounds", lanes, addresses, sizes, int(wrong[0]), "")
        return offsets - first

    def _addresses(self, lanes: Lanes) -> Array:
        base, offset = self.place.base, self.place.offset
        if base is None:
            return np.full(len(lanes), offset, np.int64)
        addresses = base[lanes].astype(np.int64) + offset
        return addresses & 0xFFFFFFFF if base.dtype.itemsize == 4 else addresses

    def _global(self, _lanes: Lanes, addresses: Array, sizes: Array) -> tuple[Array, Array]:
        return self.wave.arena.valid(addresses.view(np.uint64), sizes.astype(np.uint64)), addresses - GLOBAL_BASE

    def _shared(self, lanes: Lanes, addresses: Array, sizes: Array) -> tuple[Array, Array]:
        given = addresses - (SHARED_WINDOW if self.space == "generic" else 0)
        return shared_start(self.wave, lanes, given, self.ranked, sizes)

    def _fault(self, kind: str, lanes: Lanes, addresses: Array, sizes: Array, index: int, message: str) -> LaneError:
        return LaneError(
            kind, int(lanes[index]), self.site, address=int(addresses[index]), nbytes=int(sizes[index]),
            space=self.space, access=self.access, message=message,
        )  # fmt: skip


def operation_of(context: DecodeContext) -> str:
    """The operation of a reduction; empty for a copy."""
    return next((word for word in context.words if word in OPERATIONS), "")


def decode(context: DecodeContext) -> Step:
    """cp.async.bulk and cp.reduce.async.bulk, without tensors."""
    target, source = context.words[:2]
    return _Copies(context, target, source).step()


def _commit(context: DecodeContext) -> Step:
    copies = context.function.plan.copies
    return selective(lambda sel: copies.commit(sel, "bulk"))


def _wait(context: DecodeContext) -> Step:
    plan, ids = context.function.plan, context.wave.ids
    pending, read = int(getattr(context.instruction.operands[0], "value", 0)), "read" in context.modifiers
    return selective(lambda sel: plan.copies.wait(ids[sel], pending, "bulk", read=read))


def _prefetch(_context: DecodeContext) -> Step:
    return nothing()


def destinations(context: DecodeContext, ctas: Array | None, lane: Lanes, target: int, unit: int) -> list[tuple[int, int]]:
    """Byte distances from `target` and from the mbarrier `unit` to those of each destination CTA of a lane.

    `ctas` is the mask of .multicast::cluster. With .cta_group::2 the CTAs of a pair signal the one whose rank has the same
    parity as that of the mbarrier.
    """
    if ctas is None:
        return [(0, 0)]
    wave, mask = context.wave, int(per_lane(ctas, lane)[0])
    size, stride = wave.cluster_size, wave.windows.stride
    data, barrier = wave.windows.cta_at(target) % size, wave.windows.cta_at(8 * unit) % size
    ranks = [rank for rank in range(mask.bit_length()) if mask >> rank & 1]
    homes = [rank & ~1 | barrier & 1 for rank in ranks] if "cta_group::2" in context.words else ranks
    last = max((*ranks, *homes), default=0)
    if last >= size:
        message = f"the mask of CTAs, {mask:#x}, names rank {last}; the cluster has ranks 0 to {size - 1}"
        if context.instruction.opcode.startswith("tcgen05."):
            raise LaneError("illegal", int(lane[0]), context.site, message=message)
        address = last << RANK_SHIFT
        raise LaneError("out-of-bounds", int(lane[0]), context.site, address=address, space="shared", access="write", message=message)
    return [((rank - data) * stride, (home - barrier) * stride) for rank, home in zip(ranks, homes, strict=True)]


class _Copies:
    """A decoded bulk copy or reduction."""

    def __init__(self, context: DecodeContext, target: str, source: str) -> None:
        self.context = context
        self.wave, self.plan = context.wave, context.function.plan
        operands = list(context.instruction.operands)
        self.reduction = self._reduction(context)
        self.to = Range(context, target, operands.pop(0), "write" if self.reduction is None else "rmw")
        self.from_ = Range(context, source, operands.pop(0), "read")
        self.size = context.source(operands.pop(0), "u32")
        self.unread = [context.source(operands.pop(0), "u32") for _ in range(2 * ("ignore_oob" in context.words))]
        self.found = locator(context, "shared", operands.pop(0), 8, "rmw") if "complete_tx" in context.modifiers else None
        self.ctas = context.source(operands.pop(0), "u16") if "multicast" in context.modifiers else None
        self.keep = context.source(operands.pop(), "u16") if "cp_mask" in context.modifiers else None

    @staticmethod
    def _reduction(context: DecodeContext) -> tuple[np.dtype[Any], Function] | None:
        operation = operation_of(context)
        if not operation:
            return None
        word = context.modifiers.get("type") or context.modifiers["half"]
        function = atomic_function("add.ftz" if (operation, word) == ("add", "f32") else operation, word)
        if function is None:
            raise context.unsupported()
        return WORD_DTYPES[word], function

    def step(self) -> Step:
        ids = self.wave.ids
        return selective(lambda sel: self._issue(ids[sel]))

    def _issue(self, lanes: Lanes) -> None:
        sizes = per_lane(self.size, lanes)
        unread = [per_lane(each, lanes).astype(np.int64) for each in self.unread]
        sources, targets = self.from_.part(lanes, sizes, unread), self.to.part(lanes, sizes)
        units = units_of(self.found, lanes) if self.found is not None else None
        masks = per_lane(self.keep, lanes, 0xFFFF)
        for k in range(len(lanes)):
            source, target, size = int(sources[k]), int(targets[k]), int(sizes[k])
            lane = lanes[k : k + 1]
            if units is None:
                self._start(lane, self._reader(source, size), target, size, None, int(masks[k]))
                continue
            unit, read = int(units[k]), self._reader(source, size, [int(each[k]) for each in unread])
            for shift, signal in destinations(self.context, self.ctas, lane, target, unit):
                self._start(lane, read, target + shift, size, unit + (signal >> 3), int(masks[k]))

    def _reader(self, source: int, size: int, unread: Sequence[int] = ()) -> Callable[[], Array]:
        """The function that reads the data of a copy: what is not read is poison."""
        if not any(unread):
            return self.wave.arena.raw[source : source + size].copy
        inside = slice(unread[0], size - unread[1])

        def read() -> Array:
            data = np.full(size, _POISON, np.uint8)
            data[inside] = self.wave.arena.raw[source : source + size][inside]
            return data

        return read

    def _start(self, lane: Lanes, read: Callable[[], Array], target: int, size: int, unit: int | None, mask: int) -> None:
        receiver = None if self.ctas is None else self.wave.windows.cta_at(target)
        into = self.wave.arena.raw[target : target + size]
        complete = None if unit is None else self.plan.mbarriers.completion(unit, size)
        self.plan.copies.issue(
            BulkOperation(
                lane,
                read,
                _writer(into, self.reduction, mask),
                complete,
                "bulk" if unit is None else "",
                EMPTY if unit is None else frozenset((unit,)),
                site=self.context.site,
                receiver=receiver,
            )
        )


def _writer(into: Array, reduction: tuple[np.dtype[Any], Function] | None, mask: int) -> Callable[[Any], None]:
    """The function that stores the data of a copy."""
    if reduction is not None:
        dtype, function = reduction
        typed = into.view(dtype)

        def reduce(data: Array) -> None:
            typed[...] = function(typed, data.view(dtype), None)

        return reduce
    if mask == 0xFFFF:
        return lambda data: np.copyto(into, data)
    chosen = np.tile((mask >> np.arange(16)) & 1, len(into) // 16).astype(np.bool_)
    return lambda data: np.copyto(into, data, where=chosen)


# st.async and red.async -------------------------------------------------------------------------------------------------


def _issue_signalled(context: DecodeContext, write: Callable[[Any], Callable[[], None]], mbar: Operand | None, nbytes: int) -> Step:
    """Operations whose values are read now. `write` resolves the addresses of some lanes and returns the store that runs when they land."""
    plan, ids = context.function.plan, context.wave.ids
    found = barrier_locator(context, mbar) if mbar is not None else None

    def start(lanes: Lanes, unit: int | None) -> None:
        store = write(lanes)
        complete = None if unit is None else plan.mbarriers.completion(unit, nbytes, len(lanes))
        signals = EMPTY if unit is None else frozenset((unit,))
        plan.copies.issue(BulkOperation(lanes, lambda: None, lambda _data: store(), complete, signals=signals, site=context.site))

    def part(sel: Any) -> None:
        lanes = ids[sel]
        if found is None:
            start(lanes, None)
            return
        units = units_of(found, lanes)
        for unit in np.unique(units).tolist():
            start(lanes[units == unit], unit)

    return selective(part)


def decode_store(context: DecodeContext) -> Step:
    """st.async."""
    address, values, *rest = context.instruction.operands
    wide = context.modifiers["type"] == "b128"
    raw = RAW_DTYPES[8 if wide else WORD_DTYPES[context.modifiers["type"]].itemsize]
    sources = halves(context, values) if wide else [context.source_as(value, raw) for value in flatten(values)]
    nbytes = raw.itemsize * len(sources)
    found = locator(context, space_of(context), address, nbytes, "write")

    def write(lanes: Lanes) -> Callable[[], None]:
        view, index = found.part(lanes)
        rows = np.empty((len(lanes), len(sources)), raw)
        for column, source in enumerate(sources):
            rows[:, column] = source[lanes] if source.ndim else source
        return lambda: scatter(view, index, rows, nbytes)

    return _issue_signalled(context, write, rest[0] if rest else None, nbytes)


def decode_reduction(context: DecodeContext) -> Step:
    """red.async."""
    address, value, *rest = context.instruction.operands
    word, operation = context.modifiers["type"], operation_of(context)
    function = atomic_function(operation, word)
    if function is None:
        raise context.unsupported()
    source, dtype = context.source(value, word), WORD_DTYPES[word]
    found = locator(context, space_of(context), address, dtype.itemsize, "rmw")

    def write(lanes: Lanes) -> Callable[[], None]:
        view, index = found.part(lanes)
        given = source[lanes] if source.ndim else source
        return lambda: _discard(read_modify_write(view.view(dtype), index, operation, function, given, None))

    return _issue_signalled(context, write, rest[0] if rest else None, dtype.itemsize)


def _discard(_old: Array) -> None:
    """Accept and discard the reduction's result."""


def decode_fill(context: DecodeContext) -> Step:
    """st.bulk: zeros, stored at once."""
    address, size = context.instruction.operands[:2]
    space = space_of(context)
    to, wave = Range(context, space, address, "write", granule=8), context.wave
    sizes = context.source(size, "u64" if _wide(context, size) else "u32")

    def part(sel: Any) -> None:
        lanes = wave.ids[sel]
        counts = per_lane(sizes, lanes)
        for start, count in zip(to.part(lanes, counts).tolist(), counts.tolist(), strict=True):
            wave.arena.raw[start : start + count] = 0

    return selective(part)


def _wide(context: DecodeContext, size: Operand) -> bool:
    name = getattr(size, "name", None)
    return name is not None and context.raw(name).dtype.itemsize == 8


STEPS: Steps = {
    **dict.fromkeys(("cp.async.bulk", "cp.reduce.async.bulk", "multimem.cp.async.bulk", "multimem.cp.reduce.async.bulk"), decode),
    "cp.async.bulk.commit_group": _commit,
    "cp.async.bulk.wait_group": _wait,
    "cp.async.bulk.prefetch": _prefetch,
    "st.async": decode_store,
    "red.async": decode_reduction,
    "st.bulk": decode_fill,
}
