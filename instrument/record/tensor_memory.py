"""The recording of tcgen05 (ISA "TensorCore 5th Generation Family Instructions"): addresses in tensor memory, descriptors, mbarriers.

consan/checker/source/tensor_memory.hpp computes from them which cells and bytes an operation touches. An allocation has two events:
before it what was asked for, because it may wait for ever; behind it the address that was given, read from where it was stored.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from consan.instrument.effects import WordValue
from consan.instrument.effects.kinds import (
    TensorAlloc,
    TensorAllocRequest,
    TensorCommit,
    TensorCp,
    TensorLd,
    TensorMemoryEffect,
    TensorMma,
    TensorShift,
    TensorSt,
    TensorWait,
)
from consan.instrument.isa import MemoryAccess
from consan.instrument.passes.context import Work, operand_of
from consan.instrument.passes.emit import (
    Snippet,
    Unsupported,
    guard_text,
    predicate_of,
    shared_address,
    value_words,
    wide_address,
    word,
)
from consan.instrument.ptx import Address, Immediate, Operand, Vector
from consan.instrument.record import lowering, orders, text
from consan.instrument.record.consumed import consumed
from consan.instrument.record.lowering import At, at

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

_ALLOC, _LD, _WAIT_LD = "tcgen05.alloc", "tcgen05.ld", "tcgen05.wait::ld"
# The order is that of consan/checker/source/tensor_shapes.hpp.
_KINDS = ("f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4")
_IN_TENSOR_MEMORY, _SPARSE, _SCALED, _WEIGHT_STATIONARY = 1, 2, 4, 8
_CONSUMED = 3  # beside the numbers of the rows
_CELLS = (("scale-a", _SCALED), ("scale-b", _SCALED), ("meta", _SPARSE))  # addresses, and the form that has them
# Lanes of a warp, and columns of .x1 (ISA "Matrix and Data movement shape"). The last has twice the columns, `half` apart.
_MOVES = {"32x32b": (32, 1), "16x64b": (16, 2), "16x128b": (16, 4), "16x256b": (16, 8), "16x32bx2": (16, 1)}
_COPY = re.compile(r"(\d+)x(\d+)b$")
_REPEAT = re.compile(r"x(\d+)$")
_COLLECTOR = re.compile(r"collector::([ab])(\d?)::(\w+)$")
_USAGES = {"fill": 1, "use": 2, "lastuse": 3}  # of a collector buffer; others leave it empty
_HELD = "%__consan_w"


def _has(work: Work, word: str) -> bool:
    """Whether all opcodes of the form have a word."""
    return word in work.row.form.split(".")


def is_alloc(work: Work | None) -> bool:
    """Whether an instruction allocates."""
    return work is not None and work.row.name == _ALLOC


def add(kernel: KernelRewrite, work: Work) -> None:
    """An operation of the family; of an allocation what it asks for."""
    name = work.row.name
    _ADDED.get(name, lowering.add)(kernel, work)


def completions(kernel: KernelRewrite) -> dict[int, list[int]]:
    """The numbers of the loads that an instruction completes by its use of their registers, by its start."""
    works = [work for work in kernel.plan.work if work.row.name in (_LD, _WAIT_LD)]
    waits = {work.instruction.start for work in works if work.row.name == _WAIT_LD}
    loads = {work.instruction.start: number for number, work in enumerate(works) if work.row.name == _LD}
    kernel.loads = loads
    return consumed(kernel.graph, loads, waits) if loads else {}


def add_completed(kernel: KernelRewrite, load: int) -> None:
    """The registers of a load have been used."""
    kernel.open_block().add(TensorWait(what=_CONSUMED, load=load))


def _add(kernel: KernelRewrite, work: Work, kind: type[TensorMemoryEffect], touch: str = "none", **given: Any) -> None:
    groups = {"pair": "cta_group::2" in work.words, "single": "cta_group::1" in work.words}
    kernel.record(work, kind, (touch, "none", 0), counted=False, **given, **groups)
    kernel.plan.stats.sync_sites += 1


def _cells(work: Work) -> At:
    """The address in tensor memory."""
    return At(operand_of(work, "taddr"), "shared")


def _touched(work: Work) -> tuple[MemoryAccess, Operand]:
    access = next(each for each in work.event.accesses if each.address is not None)
    assert access.address is not None
    return access, access.address


def _add_request(kernel: KernelRewrite, work: Work) -> None:
    _add(kernel, work, TensorAllocRequest, columns=operand_of(work, "columns"))


def add_allocated(kernel: KernelRewrite, work: Work) -> None:
    """An allocation that has been served."""
    access, address = _touched(work)
    given = functools.partial(_given, kernel, work, access, address)
    _add(kernel, work, TensorAlloc, "write", at=at(access), columns=operand_of(work, "columns"), cells=given)


def _given(kernel: KernelRewrite, work: Work, access: MemoryAccess, address: Operand) -> WordValue:
    """The address in tensor memory that an allocation has stored."""
    instruction, snippet = work.instruction, Snippet()
    given = snippet.register("b32")
    guard, shared = guard_text(instruction), access.space != "generic"
    place = shared_address(snippet, address, instruction.scope) if shared else wide_address(snippet, address, instruction.scope)
    snippet.add(f"mov.b32 {given}, 0;")
    snippet.add(f"{guard}ld{'.shared' if shared else ''}.u32 {given}, [{place}];")
    position, code = kernel.open_block().hashed(given, snippet)
    kernel.pending += code
    return WordValue(0, position)


def _add_move(kernel: KernelRewrite, work: Work) -> None:
    """ld and st."""
    loads = work.row.name == _LD
    lanes, columns = next(_MOVES[each] for each in work.words if each in _MOVES)
    repeats = next(int(found[1]) for each in work.words if (found := _REPEAT.match(each)))
    packed = any(each.endswith("pack::16b") for each in work.words)
    half = operand_of(work, "half")
    if half is not None and not isinstance(half, Immediate):
        raise Unsupported(f"{work.instruction.opcode}: half {half!r}")
    shape = {"columns": columns * repeats * (2 if packed else 1), "lanes": lanes, "apart": 0 if half is None else int(half.value) + 1}
    kind, touch, load = TensorLd if loads else TensorSt, "read" if loads else "write", kernel.loads.get(work.instruction.start, 0)
    _add(kernel, work, kind, touch, at=_cells(work), load=load, **shape)


def _add_shift(kernel: KernelRewrite, work: Work) -> None:
    _add(kernel, work, TensorShift, "write", at=_cells(work))


def _add_commit(kernel: KernelRewrite, work: Work) -> None:
    access, address = _touched(work)
    mask = operand_of(work, "cta-mask")
    multicast = {} if mask is None else {"multicast": True, "ctas": mask}
    _add(kernel, work, TensorCommit, "none", at=At(address, access.space, widened=True), **multicast, **orders.reach_of(work, access))


class _Values:
    """Words of an operation that follow one another in the log."""

    def __init__(self, kernel: KernelRewrite, work: Work) -> None:
        self._kernel, self._work, self._scope = kernel, work, work.instruction.scope
        self._block, self._snippet = kernel.open_block(), Snippet()
        self.first = self._block.template.words
        self._folded = self._snippet.register("b32"), self._snippet.register("b32")
        self._snippet.add("".join(f"mov.b32 {register}, 0;" for register in self._folded))

    def number(self, role: str) -> None:
        """A 32-bit operand."""
        self._store(word(self._operand(role), self._snippet, self._scope))

    def wide(self, role: str) -> None:
        """A 64-bit operand: two words."""
        for each in value_words([self._operand(role)], 8, self._snippet, self._scope):
            self._store(each)

    def cells(self, role: str) -> None:
        """An address in tensor memory."""
        self._store(shared_address(self._snippet, self._operand(role), self._scope))

    def flag(self, role: str) -> None:
        """A predicate: 0 or 1."""
        operand = self._operand(role)
        if isinstance(operand, Immediate):
            return self._store(str(int(bool(operand.value))))
        name, negated = predicate_of(operand)
        value = self._snippet.register("b32")
        self._snippet.add(f"selp.b32 {value}, {'0, 1' if negated else '1, 0'}, {name};")
        return self._store(value)

    def vector(self, operand: Vector) -> None:
        """The elements of a vector."""
        for each in operand.elements:
            self._store(word(each, self._snippet, self._scope))

    def zero(self) -> None:
        """A word that stays unused."""
        self._store("0")

    def end(self) -> int:
        """Emit all of it; returns the position of the first word."""
        self._snippet.add("".join(map(text.hash_word, self._folded)))
        self._kernel.pending += self._snippet.text()
        return self.first

    def _operand(self, role: str) -> Operand:
        operand = operand_of(self._work, role)
        if operand is None:
            raise Unsupported(f"{self._work.instruction.opcode} without {role}")
        return operand

    def _store(self, value: str) -> None:
        self._snippet.add(f"mov.b32 {_HELD}, {value};")
        self._block.append(_HELD, self._snippet)
        self._snippet.add(text.fold(_HELD, self._folded))


def _add_product(kernel: KernelRewrite, work: Work) -> None:
    """mma: words as TensorMemory::product reads them."""
    words, left = work.words, operand_of(work, "a")
    form = _IN_TENSOR_MEMORY * isinstance(left, Address) + _SPARSE * (_has(work, "sp"))
    form += _SCALED * ("block_scale" in words) + _WEIGHT_STATIONARY * (_has(work, "ws"))
    factors = next(_KINDS.index(each.removeprefix("kind::")) for each in words if each.startswith("kind::"))
    disabled = operand_of(work, "disabled")
    lanes = len(disabled.elements) if isinstance(disabled, Vector) else 0
    operands, shape = functools.partial(_product_words, kernel, work, form), {"factors": factors, "form": form, "disabled": lanes}
    _add(kernel, work, TensorMma, "write", at=_cells(work), operands=operands, collector=_collector(work), **shape)


def _product_words(kernel: KernelRewrite, work: Work, form: int) -> int:
    values, disabled = _Values(kernel, work), operand_of(work, "disabled")
    values.number("idesc")
    values.flag("enable")
    if form & _IN_TENSOR_MEMORY:
        values.cells("a")
        values.zero()
    else:
        values.wide("a")
    values.wide("b-desc")
    for role, present in _CELLS:
        if form & present:
            values.cells(role)
    if isinstance(disabled, Vector):
        values.vector(disabled)
    return values.end()


def _collector(work: Work) -> int:
    """The collector buffer that a product names, and 4 times its number: A, then B 0 to 3. A product without the word discards."""
    found = next((match for each in work.words if (match := _COLLECTOR.match(each))), None)
    if found is None:
        return 4 * _has(work, "ws")
    return 4 * (1 + int(found[2]) if found[1] == "b" else 0) + _USAGES.get(found[3], 0)


def _add_copy(kernel: KernelRewrite, work: Work) -> None:
    """cp."""
    rows, bits = next(map(int, found.groups()) for each in work.words if (found := _COPY.match(each)))
    shape = {"rows": rows, "row_bytes": bits // 8, "columns": bits // 32}
    _add(kernel, work, TensorCp, "write", at=_cells(work), operands=functools.partial(_descriptor, kernel, work), **shape)


def _descriptor(kernel: KernelRewrite, work: Work) -> int:
    values = _Values(kernel, work)
    values.wide("desc")
    return values.end()


_ADDED = {
    _ALLOC: _add_request,
    _LD: _add_move,
    "tcgen05.st": _add_move,
    "tcgen05.cp": _add_copy,
    "tcgen05.shift": _add_shift,
    "tcgen05.mma": _add_product,
    "tcgen05.commit": _add_commit,
}
HANDLERS = {"tcgen05": add}
