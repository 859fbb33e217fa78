"""The recording of tcgen05 (ISA "TensorCore 5th Generation Family Instructions"): addresses in tensor memory, descriptors, mbarriers.

consan/checker/source/tensor_memory.hpp computes from them which cells and bytes an operation touches. An allocation has two events:
before it what was asked for, because it may wait for ever; behind it the address that was given, read from where it was stored.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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
from consan.instrument.record import clusters, text
from consan.instrument.record.consumed import consumed
from consan.instrument.record.templates import Event, Flag, TemplateEvent

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

_ALLOC, _LD, _WAIT_LD = "tcgen05.alloc", "tcgen05.ld", "tcgen05.wait::ld"
# The order is that of consan/checker/source/tensor_shapes.hpp.
_KINDS = ("f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4")
_IN_TENSOR_MEMORY, _SPARSE, _SCALED, _WEIGHT_STATIONARY = 1, 2, 4, 8
_LOAD, _STORE, _CONSUMED = 1, 2, 3
_HALF_BITS = 10  # of `b` of a load or store; the others are the number of the load
_CELLS = (("scale-a", _SCALED), ("scale-b", _SCALED), ("meta", _SPARSE))  # addresses, and the form that has them
# Lanes of a warp, and columns of .x1 (ISA "Matrix and Data movement shape"). The last has twice the columns, `half` apart.
_MOVES = {"32x32b": (32, 1), "16x64b": (16, 2), "16x128b": (16, 4), "16x256b": (16, 8), "16x32bx2": (16, 1)}
_COPY = re.compile(r"(\d+)x(\d+)b$")
_REPEAT = re.compile(r"x(\d+)$")
_PLAIN = {
    "tcgen05.relinquish_alloc_permit": Event.TENSOR_RELINQUISH,
    "tcgen05.fence::before_thread_sync": Event.TENSOR_FENCE,
    "tcgen05.fence::after_thread_sync": Event.TENSOR_FENCE,
    _WAIT_LD: Event.TENSOR_WAIT,
    "tcgen05.wait::st": Event.TENSOR_WAIT,
}
_COLLECTOR = re.compile(r"collector::([ab])(\d?)::(\w+)$")
_USAGES = {"fill": 1, "use": 2, "lastuse": 3}  # of a collector buffer; others leave it empty
_HELD = "%__consan_w"
_NUMBERS = {_WAIT_LD: _LOAD, "tcgen05.wait::st": _STORE, "tcgen05.fence::after_thread_sync": 1}


def _has(work: Work, word: str) -> bool:
    """Whether all opcodes of the form have a word."""
    return word in work.row.form.split(".")


def is_alloc(work: Work | None) -> bool:
    """Whether an instruction allocates."""
    return work is not None and work.row.name == _ALLOC


def add(kernel: KernelRewrite, work: Work) -> None:
    """An operation of the family; of an allocation what it asks for."""
    name = work.row.name
    if name in _PLAIN:
        guard = kernel.guard(kernel.open_block(), work.instruction)
        _add(kernel, work, _PLAIN[name], guard_word=guard, a=_NUMBERS.get(name, 0))
    else:
        _ADDED[name](kernel, work)


def completions(kernel: KernelRewrite) -> dict[int, list[int]]:
    """The numbers of the loads that an instruction completes by its use of their registers, by its start."""
    works = [work for work in kernel.plan.work if work.row.name in (_LD, _WAIT_LD)]
    waits = {work.instruction.start for work in works if work.row.name == _WAIT_LD}
    loads = {work.instruction.start: number for number, work in enumerate(works) if work.row.name == _LD}
    kernel.loads = loads
    return consumed(kernel.graph, loads, waits) if loads else {}


def add_completed(kernel: KernelRewrite, load: int) -> None:
    """The registers of a load have been used."""
    kernel.open_block().add(TemplateEvent(Event.TENSOR_WAIT, a=_CONSUMED, b=load))


def _add(kernel: KernelRewrite, work: Work, kind: Event, flags: int = 0, *, touch: str = "none", **fields: int) -> None:
    site = kernel.context.site(kernel.plan, work, touch, "none", 0).number
    flags |= Flag.PAIR * ("cta_group::2" in work.words) | Flag.SINGLE * ("cta_group::1" in work.words)
    kernel.open_block().add(TemplateEvent(kind, int(flags), site, **fields))
    kernel.plan.stats.sync_sites += 1


def _number(kernel: KernelRewrite, work: Work, role: str) -> tuple[int, int]:
    return kernel.number_of(kernel.open_block(), work.instruction, operand_of(work, role))


def _cells(kernel: KernelRewrite, work: Work) -> dict[str, int]:
    """The fields with the address in tensor memory."""
    address = operand_of(work, "taddr")
    if address is None:
        raise Unsupported(f"{work.instruction.opcode} without an address")
    fields, code = kernel.open_block().address(work.instruction, address, "shared")
    kernel.pending += code
    return fields


def _touched(work: Work) -> tuple[MemoryAccess, Operand]:
    access = next(each for each in work.event.accesses if each.address is not None)
    assert access.address is not None
    return access, access.address


def _add_request(kernel: KernelRewrite, work: Work) -> None:
    guard = kernel.guard(kernel.open_block(), work.instruction)
    a, a_word = _number(kernel, work, "columns")
    _add(kernel, work, Event.TENSOR_ALLOC_REQUEST, guard_word=guard, a=a, a_word=a_word)


def add_allocated(kernel: KernelRewrite, work: Work) -> None:
    """An allocation that has been served."""
    instruction, block, snippet = work.instruction, kernel.open_block(), Snippet()
    access, address = _touched(work)
    fields, code = block.address(instruction, address, access.space)
    kernel.pending += code
    a, a_word = _number(kernel, work, "columns")
    given = snippet.register("b32")
    guard, shared = guard_text(instruction), access.space != "generic"
    place = shared_address(snippet, address, instruction.scope) if shared else wide_address(snippet, address, instruction.scope)
    snippet.add(f"mov.b32 {given}, 0;")
    snippet.add(f"{guard}ld{'.shared' if shared else ''}.u32 {given}, [{place}];")
    b_word, code = block.hashed(given, snippet)
    kernel.pending += code
    _add(kernel, work, Event.TENSOR_ALLOC, touch="write", **fields, bytes=4, a=a, a_word=a_word, b_word=b_word)


def _add_dealloc(kernel: KernelRewrite, work: Work) -> None:
    guard = kernel.guard(kernel.open_block(), work.instruction)
    a, a_word = _number(kernel, work, "columns")
    b, b_word = _number(kernel, work, "taddr")
    _add(kernel, work, Event.TENSOR_DEALLOC, guard_word=guard, a=a, a_word=a_word, b=b, b_word=b_word)


def _add_move(kernel: KernelRewrite, work: Work) -> None:
    """ld and st: `bytes` columns of `a` lanes; the lower bits of `b`, if not 0: as many again, so many - 1 behind."""
    loads = work.row.name == _LD
    lanes, columns = next(_MOVES[each] for each in work.words if each in _MOVES)
    repeats = next(int(found[1]) for each in work.words if (found := _REPEAT.match(each)))
    packed = any(each.endswith("pack::16b") for each in work.words)
    half = operand_of(work, "half")
    if half is not None and not isinstance(half, Immediate):
        raise Unsupported(f"{work.instruction.opcode}: half {half!r}")
    apart = 0 if half is None else int(half.value) + 1
    number = kernel.loads.get(work.instruction.start, 0)
    fields = _cells(kernel, work) | {"bytes": columns * repeats * (2 if packed else 1), "a": lanes, "b": number << _HALF_BITS | apart}
    _add(kernel, work, Event.TENSOR_LD if loads else Event.TENSOR_ST, touch="read" if loads else "write", **fields)


def _add_shift(kernel: KernelRewrite, work: Work) -> None:
    _add(kernel, work, Event.TENSOR_SHIFT, touch="write", **_cells(kernel, work))


def _add_commit(kernel: KernelRewrite, work: Work) -> None:
    access, address = _touched(work)
    fields, code = kernel.open_block().address(work.instruction, address, access.space, widened=True)
    kernel.pending += code
    flags, mask = int(clusters.flags_of(work, access)), (1, -1)
    if operand_of(work, "cta-mask") is not None:
        flags, mask = flags | int(Flag.MULTICAST), _number(kernel, work, "cta-mask")
    _add(kernel, work, Event.TENSOR_COMMIT, flags, touch="none", **fields, bytes=8, a=mask[0], a_word=mask[1])


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
    """mma: words as TensorMemory::product reads them. `bytes`: the kind; `a`: form; `b`: words with disabled lanes; `c`: collector."""
    words, left, disabled = work.words, operand_of(work, "a"), operand_of(work, "disabled")
    form = _IN_TENSOR_MEMORY * isinstance(left, Address) + _SPARSE * (_has(work, "sp"))
    form += _SCALED * ("block_scale" in words) + _WEIGHT_STATIONARY * (_has(work, "ws"))
    kind = next(_KINDS.index(each.removeprefix("kind::")) for each in words if each.startswith("kind::"))
    fields, values = _cells(kernel, work), _Values(kernel, work)
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
        fields["b"] = len(disabled.elements)
    _add(kernel, work, Event.TENSOR_MMA, touch="write", **fields, value_word=values.end(), bytes=kind, a=form, c=_collector(work))


def _collector(work: Work) -> int:
    """The collector buffer that a product names, and 4 times its number: A, then B 0 to 3. A product without the word discards."""
    found = next((match for each in work.words if (match := _COLLECTOR.match(each))), None)
    if found is None:
        return 4 * _has(work, "ws")
    return 4 * (1 + int(found[2]) if found[1] == "b" else 0) + _USAGES.get(found[3], 0)


def _add_copy(kernel: KernelRewrite, work: Work) -> None:
    """cp: `a` rows of `b` bytes, to `bytes` columns."""
    rows, bits = next(map(int, found.groups()) for each in work.words if (found := _COPY.match(each)))
    fields, values = _cells(kernel, work), _Values(kernel, work)
    values.wide("desc")
    _add(kernel, work, Event.TENSOR_CP, touch="write", **fields, value_word=values.end(), a=rows, b=bits // 8, bytes=bits // 32)


_ADDED = {
    _ALLOC: _add_request,
    "tcgen05.dealloc": _add_dealloc,
    _LD: _add_move,
    "tcgen05.st": _add_move,
    "tcgen05.cp": _add_copy,
    "tcgen05.shift": _add_shift,
    "tcgen05.mma": _add_product,
    "tcgen05.commit": _add_commit,
}
HANDLERS = {"tcgen05": add}
