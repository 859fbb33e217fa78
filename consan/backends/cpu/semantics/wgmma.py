"""wgmma: decoding, and when a product lands (PTX ISA, "wgmma.mma_async", "wgmma.fence", "commit_group", "wait_group").

The product of a warpgroup is that of its four warps: each owns 16 rows of D and reads the same rows of A and all of B, so an
operation lands warp by warp, when a wait of the warpgroup covers it or at any other moment that the seed picks (copies.py). It
reads all of its operands and the accumulators when it lands, and lands after the earlier products of its warp: a program that
does not wait computes with old values, and reads old values. A write to an accumulator in flight is lost when the product lands.
A wait of one warp ends when all warps of its warpgroup have issued what it waits for: all of them have to execute each wgmma. The
groups that it covers are then complete for all four ("per warpgroup", ISA 9.7.15.7; SEMANTICS D12).

One exception makes compiled code work: `mov` between registers. A compiler renames accumulators at will (copies around
`asm` operands and at the ends of loops), and the assembler removes such copies or waits for their source. A `mov` from a
register that an operation in flight will write is therefore itself an operation that lands after that one, in its group.

Not handled: a check that the four warps agree on their descriptors; packing and unpacking `mov` of a register
in flight (they read old values, as other instructions do).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.address import WindowLocator
from consan.backends.cpu.decode.operands import DecodeContext, Steps
from consan.backends.cpu.decode.program import FunctionCode, RegisterVariable
from consan.backends.cpu.decode.steps import Selection, Step, nothing, selective
from consan.backends.cpu.state.copies import AsyncCopies, Bools, Lanes, PendingOperation
from consan.backends.cpu.state.faults import StepSite
from consan.backends.cpu.state.wave import WARP
from consan.dataclass import dataclass
from consan.instrument.isa import row_of
from consan.instrument.ptx import Immediate, Instruction, Negated, Operand, Register, Vector
from consan.instrument.ptx.operands import flatten

from . import lanes as lane_steps
from .descriptors import chunk_addresses
from .matrix import require_whole_warps
from .wgmma_product import ROWS, Form, form_of, matrix_of, multiply, selectors

Array = npt.NDArray[Any]
FAMILY = "wgmma"


@dataclass(frozen=True, eq=False)
class Metadata:
    """Where the elements of a sparse A are: a register of each lane, and the selector of lanes."""

    register: Array
    selector: int


@dataclass(eq=False)
class Product(PendingOperation):
    """One wgmma.mma_async of some warps."""

    lanes: Lanes  # all of each warp
    form: Form
    units: Array  # shared memory as chunks
    a: list[Array] | Array  # registers, or per warp the chunks of its rows
    b: Array  # the chunks of each distinct operand B
    which: Array  # per warp: its operand B
    keep: Bools  # per warp: scale-d
    targets: list[Array]
    written: frozenset[int] = frozenset()  # identities of the targets
    site: StepSite | None = None
    metadata: Metadata | None = None  # of a sparse product
    family = FAMILY
    after = FAMILY

    def land_some(self, due: Bools) -> PendingOperation | None:  # noqa: D102 - as in PendingOperation
        warps = np.asarray(due.reshape(-1, WARP).any(1))
        self._subset(warps).land()
        return self._subset(~warps) if not warps.all() else None

    def subset(self, chosen: Bools) -> Product:  # noqa: D102 - as in PendingOperation
        return self._subset(np.asarray(chosen.reshape(-1, WARP).any(1)))

    def _subset(self, warps: Bools) -> Product:
        chosen = np.repeat(warps, WARP)
        a = self.a[warps] if isinstance(self.a, np.ndarray) else self.a
        of_warps = self.which[warps], self.keep[warps]
        part = Product(
            self.lanes[chosen], self.form, self.units, a, self.b, *of_warps, self.targets, self.written, self.site, self.metadata
        )
        part.group, part.due = self.group[chosen], self.due
        return part

    def land(self) -> None:  # noqa: D102 - as in PendingOperation
        form, lanes = self.form, self.lanes
        if isinstance(self.a, np.ndarray):
            a = matrix_of(self.units[self.a], form.a, form.major_a)
        else:
            a = form.fragment_a(gather(self.a, lanes))
        if self.metadata is not None:
            a = form.spread(a, gather([self.metadata.register], lanes)[0], self.metadata.selector)
        b = matrix_of(self.units[self.b], form.b, form.major_b)
        result = multiply(form, a, b, self.which)
        if self.keep.any():
            sums = result + form.fragment_d(gather(self.targets, lanes))
            result = sums if self.keep.all() else np.where(self.keep[:, None, None], sums, result)
        for target, values in zip(self.targets, form.registers_of(result), strict=True):
            target[lanes] = values


def gather(registers: list[Array], lanes: Lanes) -> Array:
    """Registers of whole warps: [registers, warps, 32]."""
    found = np.empty((len(registers), len(lanes)), np.uint32)
    for row, register in zip(found, registers, strict=True):
        row[...] = register[lanes] if register.ndim else register
    return found.reshape(len(registers), -1, WARP)


# mma_async -----------------------------------------------------------------------------------------------------------


def _commit(context: DecodeContext) -> Step:
    plan = context.function.plan

    def commit(sel: Selection) -> None:
        plan.copies.commit(sel, FAMILY)
        assert plan.scheduler is not None
        plan.scheduler.products_committed()

    return selective(commit)


def _wait(context: DecodeContext) -> Step:
    plan, ids = context.function.plan, context.wave.ids
    (count,) = context.instruction.operands
    if not isinstance(count, Immediate):
        raise context.unsupported(count.text)
    pending = int(count.value)
    return selective(lambda sel: plan.copies.wait_together(ids[sel], pending, FAMILY))


def _fence(_context: DecodeContext) -> Step:
    return nothing()


def _predicate(context: DecodeContext, operand: Operand) -> Callable[[Lanes], Bools]:
    flip = isinstance(operand, Negated)
    source = context.source(operand.operand if isinstance(operand, Negated) else operand, "pred")
    return lambda leaders: np.broadcast_to(source[leaders] if source.ndim else source, leaders.shape) ^ flip


def _constants(context: DecodeContext, operands: Iterable[Operand]) -> list[int]:
    values = []
    for operand in operands:
        if not isinstance(operand, Immediate):
            raise context.unsupported(operand.text)
        values.append(int(operand.value))
    return values


@dataclass(frozen=True)
class _Matrix:
    """An operand in shared memory: a register of descriptors and what they describe."""

    descriptor: Array
    locator: WindowLocator
    rows: int
    elements: int
    element_bytes: int
    major: int

    def chunks(self, leaders: Lanes, first: Array) -> Array:
        """Items of shared memory that hold the operand of each of some lanes, from row `first` of it on; out of bounds is a fault."""
        descriptor = self.descriptor[leaders] if self.descriptor.ndim else np.broadcast_to(self.descriptor, leaders.shape)
        addresses = chunk_addresses(descriptor, self.rows, self.elements, self.element_bytes, self.major, first)
        flat = addresses.reshape(-1).view(np.uint64)
        _, index = self.locator.resolve(flat, np.repeat(leaders, len(flat) // len(leaders)))
        return np.asarray(index.reshape(addresses.shape))

    def distinct(self, leaders: Lanes, ctas: Array) -> tuple[Lanes, Array]:
        """One lane for each distinct operand among those of some lanes, and the number of each lane's."""
        if self.descriptor.ndim == 0:
            _, first, which = np.unique(ctas, return_index=True, return_inverse=True)
        else:
            _, kind = np.unique(self.descriptor[leaders], return_inverse=True)
            _, first, which = np.unique(kind * (int(ctas.max()) + 1) + ctas, return_index=True, return_inverse=True)
        return leaders[first], which


def _in_shared(context: DecodeContext, form: Form, operand: Operand, rows: int, major: int, *, packed: bool = False) -> _Matrix:
    """`packed`: half of each row is stored."""
    descriptor = context.source(operand, "b64")
    locator = WindowLocator(context.wave, None, 0, 16, context.site, "read", "shared")
    nbytes = max(1, form.a.bits // 8)
    return _Matrix(descriptor, locator, rows, (32 << (form.sparse and not packed)) // nbytes, nbytes, major)


def _registers(context: DecodeContext, operand: Operand, count: int) -> list[Array]:
    flat = flatten(operand)
    if len(flat) != count:
        raise context.unsupported(f"{len(flat)} registers, {count} expected")
    return [context.source(register, "b32") for register in flat]


def _targets(context: DecodeContext, operand: Operand, count: int) -> list[Array]:
    if not all(isinstance(inner, Register) for inner in flatten(operand)):
        raise context.unsupported(operand.text)
    return _registers(context, operand, count)


def _mma(context: DecodeContext) -> Step:
    return _product(context, list(context.instruction.operands))


def _sparse_mma(context: DecodeContext) -> Step:
    operands = list(context.instruction.operands)
    return _product(context, operands[:3] + operands[5:], operands[3:5])


def _product(context: DecodeContext, operands: list[Operand], sparse: list[Operand] | None = None) -> Step:
    """`sparse`: the metadata and its selector."""
    from_registers = len(operands) > 1 and isinstance(operands[1], Vector)
    constants = _constants(context, operands[4:])
    form = form_of(context.words, from_registers, constants, sparse=sparse is not None) if len(operands) >= 4 else None
    if form is None:
        raise context.unsupported()
    targets = _targets(context, operands[0], form.count_d)
    a = _registers(context, operands[1], 4) if from_registers else _in_shared(context, form, operands[1], ROWS, form.major_a, packed=True)
    b = _in_shared(context, form, operands[2], form.n, form.major_b)
    scale = _predicate(context, operands[3])
    return selective(_issue(context, form, targets, a, b, scale, _metadata(context, form, *sparse) if sparse else None))


def _metadata(context: DecodeContext, form: Form, register: Operand, selector: Operand) -> Metadata:
    (chosen,) = _constants(context, [selector])
    if chosen not in selectors(form):
        raise context.unsupported(f"the sparsity selector {chosen}")
    return Metadata(context.source(register, "b32"), chosen)


def _issue(
    context: DecodeContext,
    form: Form,
    targets: list[Array],
    a: list[Array] | _Matrix,
    b: _Matrix,
    scale: Callable[[Lanes], Bools],
    metadata: Metadata | None,
) -> Callable[[Selection], None]:
    plan, wave = context.function.plan, context.wave
    written = frozenset(map(id, targets))
    units = b.locator.view

    def issue(sel: Selection) -> None:
        mask, slots = lane_steps.active_warps(wave, wave.ids[sel])
        require_whole_warps(context, mask, slots)
        leaders = slots[:, 0]
        rows = a.chunks(leaders, wave.warps.in_cta[leaders] % 4 * ROWS) if isinstance(a, _Matrix) else a
        sharing, which = b.distinct(leaders, wave.cta_of[leaders])
        columns = b.chunks(sharing, np.zeros(len(sharing), np.int64))
        lanes = slots.reshape(-1)
        plan.copies.issue(Product(lanes, form, units, rows, columns, which, scale(leaders), targets, written, context.site, metadata))

    return issue


# mov of registers in flight ------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Moves(PendingOperation):
    """mov instructions that wait for their sources."""

    lanes: Lanes
    pairs: list[tuple[Array, Array]]
    written: set[int] = field(default_factory=set)
    site: StepSite | None = None
    family = FAMILY
    after = FAMILY

    def land(self) -> None:  # noqa: D102 - as in PendingOperation
        for target, source in self.pairs:
            target[self.lanes] = source[self.lanes]

    def land_some(self, due: Bools) -> PendingOperation | None:  # noqa: D102 - as in PendingOperation
        self._subset(due).land()
        return self._subset(~due)

    def _subset(self, chosen: Bools) -> Moves:
        part = Moves(self.lanes[chosen], self.pairs, self.written, self.site)
        part.group, part.due = self.group[chosen], self.due
        return part


def _moved(instruction: Instruction) -> tuple[str, str] | None:
    """Target and source of a mov of one register to one."""
    if not row_of(instruction).moves or len(instruction.operands) != 2:
        return None
    target, source = instruction.operands
    return (target.name, source.name) if isinstance(target, Register) and isinstance(source, Register) else None


_carried: WeakKeyDictionary[FunctionCode, frozenset[RegisterVariable]] = WeakKeyDictionary()


def carried(code: FunctionCode) -> frozenset[RegisterVariable]:
    """Registers that may hold an accumulator: those of wgmma, and where mov takes them."""
    if code not in _carried:
        _carried[code] = frozenset(_explore(code))
    return _carried[code]


def _explore(code: FunctionCode) -> set[RegisterVariable]:
    def variable(instruction: Instruction, name: str) -> Any:
        return code.resolve(instruction.scope, name)

    products = [i for i in code.instructions if row_of(i).is_product]
    found = {variable(i, r.name) for i in products for r in flatten(i.operands[0]) if isinstance(r, Register)}
    edges: dict[Any, set[Any]] = {}
    for i in code.instructions if found else ():
        if (names := _moved(i)) is not None:
            edges.setdefault(variable(i, names[1]), set()).add(variable(i, names[0]))
    pending = list(found)
    while pending:
        new = edges.get(pending.pop(), set()) - found
        found |= new
        pending += new
    return found


def decode_mov(context: DecodeContext) -> Step:
    """mov: of a register that may be an accumulator in flight, also later."""
    step = lane_steps.decode_mov(context)
    names = _moved(context.instruction)
    if names is None or not isinstance(found := context.resolve(names[1]), RegisterVariable):
        return step
    function = context.function
    if found not in carried(function.code):
        return step
    return _following(context, step, context.raw(names[0]), context.raw(names[1]))


def _following(context: DecodeContext, step: Step, target: Array, source: Array) -> Step:
    copies, ids, site = context.function.plan.copies, context.wave.ids, context.site
    if target.dtype != np.uint32 or source.dtype != np.uint32:
        return step

    def part(sel: Selection) -> None:
        step.part(sel)
        if copies.flying:
            _follow(copies, ids[sel], target, source, site)

    def full() -> None:
        step.full()
        if copies.flying:
            _follow(copies, ids, target, source, site)

    return Step(full, part, lambda mask: part(mask.nonzero()[0]), False)


def _follow(copies: AsyncCopies, lanes: Lanes, target: Array, source: Array, site: StepSite) -> None:
    """Let the mov land after the operation in flight that writes its source."""
    wanted = id(source)
    writers = [op for op in copies.flying.values() if isinstance(op, (Product, Moves)) and wanted in op.written]
    if not writers:
        return
    group = np.full(len(copies.inside), -1, np.int64)
    for writer in writers:
        group[writer.lanes] = writer.group
    late = lanes[group[lanes] >= 0]
    if not len(late):
        return
    last = next(reversed(copies.flying.values()))
    if isinstance(last, Moves) and len(last.lanes) == len(late) and (last.lanes == late).all() and (last.group == group[late]).all():
        last.pairs.append((target, source))
        last.written.add(id(target))
        return
    moves = Moves(late, [(target, source)], {id(target)}, site)
    copies.issue(moves)
    moves.group = group[late]


STEPS: Steps = {
    "mov": decode_mov,
    "wgmma.mma_async": _mma,
    "wgmma.mma_async.sp": _sparse_mma,
    "wgmma.commit_group": _commit,
    "wgmma.wait_group": _wait,
    "wgmma.fence": _fence,
}
