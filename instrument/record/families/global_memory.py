"""The recording of global memory where it is checked (`--global`): every access, fences, and what synchronises through memory.

Two modes, by the module's text. *Alone*: no thread can observe what another has written with a strong operation, so nothing but the end of
the kernel orders CTAs; accesses are enough. *Synced*: strong accesses are in the log with their values and two readings of a clock, before
and after. So the checker knows which write each strong read has read from. consan/checker/source/order/flags.hpp reads these words in the
same order.

Only accesses of the same bytes are ordered by their readings, so a launch has many clocks: parts of a vector have one. A clock
counts the readings of writes. A write draws both numbers, and each draw advances the clock. A load only looks at the clock twice: of two
loads without a draw in between neither comes first, and that does not matter. An access waits for its first reading. The second one waits
for what the access has read; behind a write that brings nothing back, a fence makes it wait until others can see the write.

A strong load or a compare-and-swap in a loop may wait for another thread. Rounds that repeat leave nothing (polls.py).

A vector, or packed type, is as many accesses (ISA "Vector Data-types"): the checker takes their words apart.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from consan.instrument.effects import NO_WORD, WordValue
from consan.instrument.effects.kinds import Fence, GlobalAccess, GridWait, Unseen
from consan.instrument.effects.makes import Makes
from consan.instrument.isa import NO_ACCESS, InstructionEvent, MemoryAccess, Row, destinations, does, lookup, row_of, scalar_bytes
from consan.instrument.ptx import Function, Instruction, Operand, Vector
from consan.instrument.record.analyses import clusters, data
from consan.instrument.record.analyses.awaited import awaits_store
from consan.instrument.record.analyses.looked_up import looked_up
from consan.instrument.record.analyses.stored_values import stores_of_values
from consan.instrument.record.families import annotated, wmma
from consan.instrument.record.families.lowering import lower, put
from consan.instrument.record.text import text
from consan.instrument.record.text.orders import order_of
from consan.instrument.record.text.polls import PLACE, REPEATS, SEEN, WANTED, RecordedPolls
from consan.instrument.record.text.readings import CLOCK, DRAW, LOOK, SHARED_MARK, find_clock, mark_shared, read_first, read_last
from consan.instrument.record.text.templates import WORD_BYTES
from consan.instrument.rewriting.context import FunctionPlan, Work, operand_of
from consan.instrument.rewriting.emit import Snippet, Unsupported, guard_text, shared_address, value_words, wide_address

if TYPE_CHECKING:
    from consan.instrument.record.recorder import FunctionRecorder

_GLOBAL = ("global", "generic")
_OF_ALL = "sys"  # the scope
# Numbers of the operations on the value that was read, and of their types.
_FAMILY_OPERATIONS = {"load": 1, "store": 2}
_OPERATIONS = {word: number for number, word in enumerate(("exch", "add", "cas", "inc", "dec", "min", "max", "and", "or", "xor"), start=3)}
_UNKNOWN = 0
_WIDE = 8  # bytes of the widest register that is no b128
_SIGNED, _FLOAT = 1, 2
_BEFORE, _AFTER, _VALUES = 2, 3, 4  # words behind the two of the address: what was read, what is stored or compared, what is swapped in


class Mode(enum.IntEnum):
    """How global memory is recorded."""

    OFF = 0
    ALONE = 1
    SYNCED = 2


def mode_of(plans: dict[str, FunctionPlan], *, shared: bool) -> Mode:
    """The mode that kernels need. `shared`: threads may synchronise through shared memory, or wait there."""
    waits = shared or _meet(_strong(plans, _GLOBAL)) or _meets_others(plans) or any(awaits_store(plan.function) for plan in plans.values())
    return Mode.SYNCED if waits else Mode.ALONE


def synchronises(plans: dict[str, FunctionPlan], spaces: tuple[str, ...]) -> bool:
    """Whether a release pattern can meet an acquire pattern in these spaces (ISA "Release and Acquire Patterns")."""
    accesses = list(_strong(plans, spaces))
    return orders(plans, spaces) and _meet(accesses)


def orders(plans: dict[str, FunctionPlan], spaces: tuple[str, ...]) -> bool:
    """Whether a release or an acquire pattern can be in the text: a fence, or a strong access with an order."""
    fences = any(plan.function.once(_has_fence) for plan in plans.values())
    return fences or any(event.orders for event, _ in _strong(plans, spaces))


def _meet(accesses: Iterable[tuple[InstructionEvent, bool]]) -> bool:
    """Whether there are strong writes, and strong reads that may observe them."""
    found = [(event.first, used) for event, used in accesses]
    return any(access.writes for access, _ in found) and any(access.reads and used for access, used in found)


def _meets_others(plans: dict[str, FunctionPlan]) -> bool:
    """Whether threads may synchronise with those of another GPU: there are an order and a strong access of .sys scope (R-RK8)."""
    strong = [event for event, _ in _strong(plans, _GLOBAL) if event.first.scope == _OF_ALL]
    fences = any(_OF_ALL in plan.stats.fence_scopes for plan in plans.values())
    return bool(strong) and (fences or any(event.orders for event in strong))


def _strong(plans: dict[str, FunctionPlan], spaces: tuple[str, ...]) -> Iterator[tuple[InstructionEvent, bool]]:
    """The strong accesses of some spaces, and whether their results are used."""
    for plan in plans.values():
        for instruction, event in plan.function.once(_strong_events):
            if event.first.space in spaces:
                yield event, any(plan.names[name] > 1 for name in destinations(instruction))


def _strong_events(function: Function) -> list[tuple[Instruction, InstructionEvent]]:
    """The strong accesses of a function."""
    rows = ((each, lookup(each.parts)) for each in function.instructions())
    events = ((each, row.event(each)) for each, row in rows if row is not None and row.is_ordinary and row.touches)
    return [(each, event) for each, event in events if event.first.is_strong]


def _has_fence(function: Function) -> bool:
    return any(does(each, Fence) for each in function.instructions())


def touches(instruction: Instruction) -> bool:
    """Whether an instruction makes an effect that is recorded only where global memory is checked."""
    row = row_of(instruction)
    if row.does(GridWait, Unseen):
        return True
    access = row.describe(instruction) if row.does(GlobalAccess) else NO_ACCESS
    return access.may_be_outside


def add_access(kernel: FunctionRecorder, work: Work, made: Makes) -> None:
    """An access to global memory. A map of tensors is changed as a whole, and so is a matrix accessed."""
    if work.row.changes_map:
        put(kernel, work, made)
    elif work.row.is_whole_matrix_access:
        wmma.add(kernel, work, made)
    elif kernel.global_races is not None and work.event.first.may_be_outside:
        kernel.global_races.access(work, made)


def add_observed(kernel: FunctionRecorder, work: Work, made: Makes) -> None:
    """A strong access, where threads may synchronise through memory."""
    if kernel.global_races is not None and (work.row.is_annotation or kernel.global_races.is_sync(work.event)):
        kernel.global_races.observe(work, made)


def add_published(kernel: FunctionRecorder, work: Work, made: Makes) -> None:
    """The same, once it has been performed."""
    if kernel.global_races is not None:
        kernel.global_races.publish(made)


class GlobalRecorder:
    """Records the global memory of one kernel."""

    def __init__(self, kernel: FunctionRecorder) -> None:
        self._kernel = kernel
        self._behind: str = ""  # what follows the instruction
        self._strong: Mapping[str, Any] = {}  # the fields of the events of a strong access
        self.polls = RecordedPolls(kernel)
        self._uses = stores_of_values(kernel.plan.function)
        self._data = data.flags_of(kernel.plan.function)

    def observe(self, work: Work, made: Makes) -> None:
        """Store the words of a strong access, before it."""
        if work.row.is_annotation:
            self._strong = annotated.words_of(self._kernel, work)
        else:
            self.polls.begin(work.instruction, self._kernel.node)
            self._strong = self._words(work)
        self._kernel.open_block().add(made.kind(**self._strong))

    def publish(self, made: Makes) -> None:
        """Behind a strong access whose words are in the log."""
        if self._strong:
            self._kernel.open_block().add(made.kind(**self._strong))

    def after(self, node: int) -> str:
        """The text behind the instruction, after its events are in the template."""
        behind, self._behind, self._strong = self._behind, "", {}
        return behind + self.polls.forward(node)

    def declarations(self) -> str:
        """Registers of strong accesses."""
        return f".reg .b64 {CLOCK};\n{self.polls.declarations()}" if self._kernel.function.mode is Mode.SYNCED else ""

    def is_sync(self, event: InstructionEvent) -> bool:
        """Whether threads may synchronise through an access."""
        access = event.first
        function = self._kernel.function
        spaces = ("shared", *_GLOBAL) if function.shared else _GLOBAL
        return function.mode is Mode.SYNCED and access.is_strong and access.space in spaces

    def access(self, work: Work, made: Makes) -> None:
        """An access to global memory. A strong one may have the words of its address in the log already."""
        instruction, access = work.instruction, work.event.first
        if access.address is None:
            raise Unsupported(f"{instruction.opcode} without an address")
        known = {"address": self._strong["words"]} if self._strong else {}
        event = lower(
            self._kernel, work, made.without("value", *known), access, {
                **known, "order": order_of(work.event), "value": lambda: WordValue(0, self._value(work)),
                "stores": self._uses.get(instruction.start, 0), "strong": access.is_strong, "adds": access.updates,
                "unused": not access.writes and self._is_unused(instruction), **self._data.get(instruction.start, data.NEITHER),
            },
        )  # fmt: skip
        self._kernel.open_block().add(event)

    def _is_unused(self, instruction: Instruction) -> bool:
        """Whether nothing reads what an instruction loads."""
        return all(self._kernel.plan.names[name] < 2 for name in destinations(instruction))

    def _value(self, work: Work) -> int:
        """The word of a stored value; none where it has more than four bytes, or the store is strong."""
        access, source = work.event.first, operand_of(work, "src")
        if access.access != "write" or access.is_strong or source is None or access.width_bytes > _WIDE:
            return NO_WORD
        elements: list[Operand] = list(source.elements) if isinstance(source, Vector) else [source]
        word, code = self._kernel.open_block().value(elements, access.width_bytes, work.instruction.scope)
        self._kernel.pending += code
        return word

    # -- synchronisation -----------------------------------------------------------------------------------------------------

    def _words(self, work: Work) -> Mapping[str, Any]:
        """Store the words of a strong access; returns the fields of its events."""
        instruction, event = work.instruction, work.event
        kernel, block, access = self._kernel, self._kernel.open_block(), event.first
        guard_word = kernel.guard(block, instruction)
        targets = [operand for role, operand in event.operands if role == "dst" and operand.text != "_"][:1]
        sources = [operand for role, operand in event.operands if role == "src"]
        wide = -(-access.total_bytes // WORD_BYTES)
        count = _VALUES + wide * (len(targets) + len(sources))
        first, stored, copies = block.reserve(count)
        places = range(stored + _VALUES, stored + count, wide)
        snippet, behind = Snippet(), Snippet()
        self._key(snippet, instruction, access, stored)
        for place, operand in zip(places[len(targets) :], sources, strict=False):
            self._number(snippet, place, operand, instruction, access, WANTED if operand is sources[0] else "")
        draws, guard = access.writes, guard_text(instruction)
        read_first(snippet, stored + _BEFORE, f"{guard}{DRAW}" if draws else LOOK)
        seen = [self._number(behind, place, operand, instruction, access, SEEN) for place, operand in zip(places, targets, strict=False)]
        repeats = self.polls.repeats() if self.polls.current is not None else ""
        guard = f"@!{REPEATS} " if repeats else guard
        behind.add(repeats)
        if draws and not targets:
            behind.add(f"{guard}membar.gl;")
        read_last(behind, stored + _AFTER, f"{guard}{DRAW if draws else LOOK}", seen)
        on_host = kernel.variant.on_host
        kernel.pending, self._behind = kernel.pending + (copies if on_host else snippet.text()), "" if on_host else behind.text()
        site = kernel.context.site_of(kernel.plan, instruction, event.row.family, access.access, access.space, 0).number
        words = event.row.modifiers(instruction.parts)
        return {
            "site": site, "guard": guard_word, "words": first, "bytes": access.total_bytes, "element": scalar_bytes(instruction, access),
            "operation": _operation(event.row, words), "order": order_of(event), "reads": bool(targets), "writes": draws,
            "adds": access.updates, "unused": draws and self._is_unused(instruction),
            "polls": self.polls.current is not None or self.polls.waits,
            "looked_up": instruction.start in looked_up(kernel.plan.function),
            "compared": instruction.start in data.compared(kernel.plan.function), **self._data.get(instruction.start, data.NEITHER),
        }  # fmt: skip

    def _key(self, snippet: Snippet, instruction: Instruction, access: MemoryAccess, first: int) -> None:
        """Store the words of an address, which distinguish shared from global memory."""
        assert access.address is not None
        scope = instruction.scope
        low, high = snippet.register("b32"), snippet.register("b32")
        if access.in_shared:
            snippet.add(f"mov.b32 {low}, {shared_address(snippet, access.address, scope)};")
            snippet.add(f"mov.b32 {high}, {SHARED_MARK};")
        else:
            wide = wide_address(snippet, access.address, scope, "global" if access.in_global else "")
            snippet.add(f"mov.b64 {{{low}, {high}}}, {wide};")
            if access.is_generic:
                module = self._kernel.context.module
                mark_shared(snippet, wide, low, high, clusters.window(module))
        for place, register in enumerate((low, high)):
            snippet.add(text.store(first + place, register).strip())
        find_clock(snippet, low)
        if self.polls.compares:
            snippet.add(f"mov.b64 {PLACE}, {{{low}, {high}}};")

    def _number(
        self, snippet: Snippet, place: int, operand: Operand, instruction: Instruction, access: MemoryAccess, kept: str = ""
    ) -> str:
        """Store a value in one word, or in two if it has more than four bytes. `kept`: a register of polls that holds it too.

        Returns a register with a part of it.
        """
        elements: list[Operand] = list(operand.elements) if isinstance(operand, Vector) else [operand]
        if access.width_bytes > _WIDE:
            pieces = _words_of_b128(snippet, operand)
        else:
            pieces = value_words(elements, access.width_bytes, snippet, instruction.scope)
        if kept:
            self.polls.keep(snippet, kept, pieces)
        for offset, value in enumerate(pieces):
            snippet.add(text.store(place + offset, value).strip())
        return pieces[0]


def _words_of_b128(snippet: Snippet, operand: Operand) -> list[str]:
    """The four words of a value of 16 bytes."""
    halves, words = [snippet.register("b64") for _ in range(2)], [snippet.register("b32") for _ in range(4)]
    snippet.add(f"mov.b128 {{{', '.join(halves)}}}, {operand.text};")
    for half, at in zip(halves, (0, 2), strict=True):
        snippet.add(f"mov.b64 {{{words[at]}, {words[at + 1]}}}, {half};")
    return words


def _operation(row: Row, words: Mapping[str, str]) -> int:
    """The number of the operation on the value, and its type. `words`: the opcode's modifiers."""
    kind = words.get("type", "")
    found = _FAMILY_OPERATIONS.get(row.family) or next((_OPERATIONS[word] for word in words.values() if word in _OPERATIONS), _UNKNOWN)
    return found | (_FLOAT if "f" in kind else _SIGNED if kind.startswith("s") else 0) << 8
