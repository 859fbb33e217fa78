"""tcgen05.mma, cp, shift, commit and fence: what one thread starts (PTX ISA, "TensorCore 5th Generation MMA Instructions").

An operation is checked when it is issued, so that a fault names the instruction; it reads its operands and writes tensor memory when
it lands (copies.py). The operations of a CTA (of a pair with .cta_group::2) land in the order of their issue, whichever thread issued
them: the ISA's pipelines promise that to programs with tcgen05.fence. A commit lands after the earlier operations of its own
thread only, so a commit by another thread than the product's says nothing.

Collector qualifiers have no effect, since reuse is a permission. "Down by one row" means that a lane gets what the next one holds, but the
last of 32; with `.ashift` that is done behind the product (documentation of `tcgen05_mma` in CuTe DSL; the ISA does not say it).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.operands import DecodeContext, DecodedAddress, Steps
from consan.backends.cpu.decode.steps import Selection, Step, nothing, selective
from consan.backends.cpu.state.copies import Lanes, PendingOperation
from consan.backends.cpu.state.faults import LaneError, StepSite
from consan.backends.cpu.state.mbarriers import MBarriers
from consan.backends.cpu.state.tensor_memory import COLUMNS, LANES
from consan.dataclass import dataclass
from consan.instrument.ptx import Address, Immediate, Negated, Operand
from consan.instrument.ptx.operands import flatten

from . import tcgen05_descriptors as descriptors, tcgen05_layouts as layouts
from .bulk import destinations
from .matrix import unpacked
from .mbarrier_steps import units_of
from .tcgen05_barrier import commit_locator
from .tcgen05_descriptors import Illegal, Matrix, MatrixProduct, ProductForm
from .tcgen05_product import Execution, TensorCell, move_down, per_chunk, tensor_places
from .tcgen05_registers import addresses, illegal

Array = npt.NDArray[Any]
FAMILY = "tcgen05"
_TWO = "cta_group::2"


@dataclass(eq=False)
class ThreadOperation(PendingOperation):
    """A product, copy or shift of one thread."""

    lanes: Lanes
    run: Callable[[], None]
    order: Lanes  # all threads of the CTA, or of the pair
    site: StepSite | None = None
    family = FAMILY
    after = FAMILY

    @property
    def behind(self) -> Lanes:  # noqa: D102 - as in PendingOperation
        return self.order

    def land(self) -> None:  # noqa: D102 - as in PendingOperation
        self.run()


@dataclass(eq=False)
class Commit(PendingOperation):
    """The arrivals of one commit."""

    lanes: Lanes
    barriers: MBarriers
    units: list[int]
    site: StepSite | None = None
    after = FAMILY

    def __post_init__(self) -> None:
        self.signals = frozenset(self.units)

    def land(self) -> None:  # noqa: D102 - as in PendingOperation
        for unit in self.units:
            self.barriers.signal(unit, arrivals=1)


class Issue:
    """The parts of an instruction that its issue needs: the CTAs that take part, their memories, faults."""

    def __init__(self, context: DecodeContext) -> None:
        self.context = context
        self.wave, self.plan = context.wave, context.function.plan
        self.memory = self.plan.tensor_memory
        self.pair = _TWO in context.words

    def ctas(self, lane: int) -> list[int]:
        """The CTAs of an operation of a lane, the even one of a pair first."""
        own = int(self.wave.cta_of[lane])
        if not self.pair:
            return [own]
        if self.wave.cluster_size % 2:
            size = self.wave.cluster_size
            raise illegal(self.context, lane, f".cta_group::2 in clusters of {size}: a pair needs an even number of CTAs")
        return [own & ~1, own | 1]

    def start(self, lane: Lanes, ctas: list[int], run: Callable[[], None]) -> None:
        """Put an operation of one thread in flight."""
        threads = self.wave.shape.threads
        order = self.wave.ids[ctas[0] * threads : (ctas[-1] + 1) * threads]
        self.plan.copies.issue(ThreadOperation(lane, run, order, self.context.site))

    def legally(self, lane: int, issue: Callable[[int], None]) -> None:
        """Issue an operation of a lane; what the ISA forbids is a fault of it."""
        try:
            issue(lane)
        except Illegal as error:
            raise illegal(self.context, lane, str(error)) from None

    def chunks(self, lane: int, cta: int, addresses: Array) -> Array:
        """Items of the arena for chunks of a CTA's shared memory."""
        wave = self.wave
        inside = addresses - wave.windows.reserved
        wrong = (inside < 0) | (inside + descriptors.CHUNK > wave.shape.shared_bytes)
        if wrong.any():
            first = int(addresses.reshape(-1)[wrong.reshape(-1).argmax()])
            fault = {"address": first, "nbytes": descriptors.CHUNK, "space": "shared", "access": "read"}
            raise LaneError("out-of-bounds", lane, self.context.site, **fault)  # type: ignore[arg-type]
        return np.asarray((wave.windows.shared + cta * wave.windows.stride + inside) >> 4)

    @staticmethod
    def cell(place: DecodedAddress, lane: int) -> TensorCell:
        """The cell at which an operand of a lane begins."""
        return TensorCell.of(int(addresses(place, np.array([lane]))[0]))

    def check_place(self, lane: int, what: str, place: TensorCell, lanes: int, columns: int) -> None:
        """An operand must lie in tensor memory."""
        if place.lane + lanes > LANES or place.column + columns > COLUMNS:
            reach = f"lanes {place.lane} to {place.lane + lanes - 1}, columns {place.column} to {place.column + columns - 1}"
            raise illegal(self.context, lane, f"{what} would take {reach}: tensor memory has lanes 0 to 127 and columns 0 to 511")


def _value(source: Array, lane: int) -> int:
    return int(source[lane] if source.ndim else source)


# mma ---------------------------------------------------------------------------------------------------------------------


class Multiply(Issue):
    """A decoded tcgen05.mma."""

    def __init__(self, context: DecodeContext) -> None:
        super().__init__(context)
        words = context.modifiers
        kind = next(word for name, word in words.items() if name in ("kind", "mxkind")).partition("::")[2]
        self.form = ProductForm(kind, self.pair, "ws" in words, "sp" in words, words.get("scale_vectorsize"))
        if self.form.ws and self.pair:
            raise context.unsupported(".ws exists with .cta_group::1 only")
        assert context.row is not None
        self.operands = dict(zip(context.row.roles(context.instruction), context.instruction.operands, strict=True))
        named = [role for role in ("taddr", "meta", "scale-a", "scale-b") if role in self.operands]
        self.places = {role: context.place(self.operands[role]) for role in named}
        self.a: DecodedAddress | Array
        self.a = context.place(self.operands["a"]) if isinstance(self.operands["a"], Address) else context.source(self.operands["a"], "b64")
        self.shifts = "ashift" in words
        if self.shifts and not isinstance(self.a, DecodedAddress):
            raise context.unsupported(".ashift of A in shared memory")
        self.b = context.source(self.operands["b-desc"], "b64")
        self.idesc = context.source(self.operands["idesc"], "b32")
        self.enable, self.flip = self._predicate(self.operands["enable"])
        masks = flatten(self.operands["disabled"]) if "disabled" in self.operands else ()
        self.disabled = [context.source(word, "b32") for word in masks]
        if len(self.disabled) not in (0, 8 if self.pair else 4):
            raise context.unsupported(f"{len(self.disabled)} words of disable-output-lane: {8 if self.pair else 4} expected")
        scale_d = self.operands.get("scale-d")
        self.scale_d = int(scale_d.value) if isinstance(scale_d, Immediate) else 0
        self.zero = context.source(self.operands["zero-columns"], "b64") if "zero-columns" in self.operands else np.array(0, np.uint64)

    def _predicate(self, operand: Operand) -> tuple[Array, bool]:
        flip = isinstance(operand, Negated)
        return self.context.source(operand.operand if isinstance(operand, Negated) else operand, "pred"), flip

    def issue(self, sel: Selection) -> None:
        """Start the products of some lanes, each its own."""
        for lane in self.wave.ids[sel].tolist():
            self.legally(lane, self._issue)

    def _issue(self, lane: int) -> None:
        found = descriptors.product(_value(self.idesc, lane), self.form)
        if found.form.sparse and found.selector > 1:
            raise self.context.unsupported(f"the sparsity selector {found.selector}: no text says which metadata it selects")
        if self.shifts and found.m not in (128, 256):
            raise Illegal(f".ashift with M = {found.m}: M must be 128 or 256")
        ctas = self.ctas(lane)
        zero = _value(self.zero, lane)
        shift = descriptors.column_shift(zero, found)
        # what is read when it lands: the chunks of both operands in each CTA
        a = None if isinstance(self.a, DecodedAddress) else self._chunks(lane, ctas, found, _value(self.a, lane), 0)
        b = self._chunks(lane, ctas, found, _value(self.b, lane), shift, of_b=True)
        cells, units = [self.memory.cells[cta] for cta in ctas], self.wave.arena.views[4]
        keep, off = bool(_value(self.enable, lane)) ^ self.flip, self._lanes_off(lane, len(ctas))
        start: TensorCell | list[Array] = self.cell(self.a, lane) if isinstance(self.a, DecodedAddress) else []
        plan = Execution(found, cells, self.cell(self.places["taddr"], lane), start, [], keep, self.scale_d, off, zero=zero)
        for role, name in (("meta", "meta"), ("scale-a", "sfa"), ("scale-b", "sfb")):
            if role in self.places:
                setattr(plan, name, self.cell(self.places[role], lane))
        self._check_lanes(found, plan)
        for operand in tensor_places(plan):
            self.check_place(lane, *operand)

        def run() -> None:
            if a is not None:
                plan.a = [units[each] for each in a]
            plan.b = [units[each] for each in b]
            plan.run()
            if self.shifts and isinstance(start, TensorCell):
                move_down(cells, LANES, start)

        self.start(np.array([lane]), ctas, run)

    def _chunks(self, lane: int, ctas: list[int], found: MatrixProduct, descriptor: int, more: int, *, of_b: bool = False) -> list[Array]:
        """Items of the arena of A or B in each CTA. `more`: rows of B beyond N."""
        operand, name = descriptors.matrix(descriptor), "B" if of_b else "A"
        element, mn_major = (found.b, found.mn_major_b) if of_b else (found.a, found.mn_major_a)
        descriptors.check_swizzle(operand, element, mn_major, f"the descriptor of {name}")
        rows = (found.n if of_b else found.m) // len(ctas) + more
        elements = found.k if of_b or not found.form.sparse else found.k // 2
        per = per_chunk(found, element)
        where = self._addresses(operand, rows, elements if mn_major else elements // per, per, mn_major)
        return [self.chunks(lane, cta, where) for cta in ctas]

    @staticmethod
    def _addresses(operand: Matrix, rows: int, along: int, per: int, mn_major: bool) -> Array:
        return descriptors.chunk_addresses(operand, rows, along, per, mn_major)

    def _lanes_off(self, lane: int, ctas: int) -> Array | None:
        """The lanes that are not written, [CTAs, 128]: the words from the fifth on are the odd CTA's."""
        words = np.array([_value(word, lane) for word in self.disabled], np.uint32)
        if not words.any():
            return None
        return np.unpackbits(words.view(np.uint8), bitorder="little").astype(np.bool_).reshape(ctas, LANES)

    def _check_lanes(self, found: MatrixProduct, plan: Execution) -> None:
        """Full layouts begin at lane 0, those of half the lanes at 0 or 16, the same for D, A and metadata (Table of layouts)."""
        half = len(layouts.blocks(found)[0].lanes) == 64 and int(layouts.blocks(found)[0].lanes[-1]) > 64
        allowed = (0, 16) if half else (0,)
        if plan.d.lane not in allowed:
            raise Illegal(f"D begins at lane {plan.d.lane}; M = {found.m} allows {' or '.join(map(str, allowed))}")
        others = [("A", plan.a)] if isinstance(plan.a, TensorCell) else []
        others += [("the metadata", plan.meta)] if found.form.sparse else []
        for name, place in others:
            if place.lane != plan.d.lane:
                raise Illegal(f"{name} begins at lane {place.lane}, and D at lane {plan.d.lane}: they must be the same")


# cp and shift --------------------------------------------------------------------------------------------------------------


class CopyIn(Issue):
    """A decoded tcgen05.cp."""

    def __init__(self, context: DecodeContext) -> None:
        super().__init__(context)
        modifiers = context.modifiers
        target, descriptor = context.instruction.operands
        self.target, self.descriptor = context.place(target), context.source(descriptor, "b64")
        shape, warps = modifiers["shape"], modifiers.get("warps", "")
        if {"64x128b": "warpx2", "32x128b": "warpx4"}.get(shape, "") != warps.partition("::")[0]:
            raise context.unsupported(f".{shape} with {'.' + warps if warps else 'no multicast'}")
        self.lanes = layouts.copied_lanes(shape, warps)
        self.per_row = 2 if shape.endswith("256b") else 1  # chunks
        self.source_format = modifiers.get("src_fmt", "")

    def issue(self, sel: Selection) -> None:
        """Start the copies of some lanes."""
        for lane in self.wave.ids[sel].tolist():
            self.legally(lane, self._issue)

    def _issue(self, lane: int) -> None:
        source = descriptors.matrix(_value(self.descriptor, lane))
        ctas = self.ctas(lane)
        place = self.cell(self.target, lane)
        self.check_place(lane, "the copy", place, int(self.lanes.max()) + 1, 4 * self.per_row)
        where = descriptors.chunk_addresses(source, len(self.lanes), self.per_row, 16, mn_major=False)
        items = [self.chunks(lane, cta, where) for cta in ctas]
        units, lanes = self.wave.arena.views[4], place.lane + self.lanes
        columns = slice(place.column, place.column + 4 * self.per_row)

        def run() -> None:
            for cta, chunks in zip(ctas, items, strict=True):
                octets = np.ascontiguousarray(units[chunks]).view(np.uint8).reshape(len(self.lanes), -1)
                words = unpacked(octets.reshape(len(octets), -1, 16), self.source_format).reshape(octets.shape).view(np.uint32)
                self.memory.cells[cta][lanes, columns] = words[:, None]

        self.start(np.array([lane]), ctas, run)


def _shift(context: DecodeContext) -> Step:
    issue, place = Issue(context), context.place(context.instruction.operands[0])

    def part(sel: Selection) -> None:
        for lane in issue.wave.ids[sel].tolist():
            at, ctas = issue.cell(place, lane), issue.ctas(lane)
            if at.lane % 32:
                raise illegal(context, lane, f"the address begins at lane {at.lane}; it must be a multiple of 32")
            issue.check_place(lane, "the shifted rows", at, 32, 8)
            cells = [issue.memory.cells[cta] for cta in ctas]
            issue.start(np.array([lane]), ctas, partial(move_down, cells, 32, at))

    return selective(part)


# commit and fence ------------------------------------------------------------------------------------------------------------


def _commit(context: DecodeContext) -> Step:
    plan, wave = context.function.plan, context.wave
    address, *rest = context.instruction.operands
    found, ctas = commit_locator(context, address), context.source(rest[0], "u16") if rest else None

    def part(sel: Selection) -> None:
        lanes = wave.ids[sel]
        for unit, lane in zip(units_of(found, lanes).tolist(), lanes, strict=True):
            one = np.array([lane])
            shifts = destinations(context, ctas, one, 8 * unit, unit)
            plan.copies.issue(Commit(one, plan.mbarriers, [unit + (shift >> 3) for shift, _ in shifts], context.site))

    return selective(part)


def _fence(_context: DecodeContext) -> Step:
    return nothing()


STEPS: Steps = {
    "tcgen05.mma": lambda context: selective(Multiply(context).issue),
    "tcgen05.cp": lambda context: selective(CopyIn(context).issue),
    "tcgen05.shift": _shift,
    "tcgen05.commit": _commit,
    "tcgen05.fence::before_thread_sync": _fence,
    "tcgen05.fence::after_thread_sync": _fence,
}
