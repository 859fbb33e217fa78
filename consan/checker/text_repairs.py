"""Repairs that no change of events can say, as edits of the text: for runs of the changed kernel (consan/session/reruns.py).

An instruction is executed by more threads or by fewer, has another form or another number, or several become one atomic operation; shared
memory is cleared before the kernel begins. Which of them is right is for the runs to say.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from consan.checker.changes import EventPlaces, line_of
from consan.checker.edits import Edit
from consan.checker.forms import RepairStep
from consan.checker.text_places import TextPlaces
from consan.instrument.isa import flow_of, lookup
from consan.instrument.passes.context import place_of
from consan.instrument.passes.flow import read, written
from consan.instrument.ptx import Function, Immediate, Instruction, Label
from consan.instrument.record.templates import Event
from consan.instrument.sites import Site

_SIGNALS: Final = (
    Event.BARRIER,
    Event.MBARRIER_INIT,
    Event.MBARRIER_ARRIVE,
    Event.MBARRIER_TX,
    Event.CLUSTER_ARRIVE,
    Event.MBARRIER_COPIES,
)
_BY_ONE: Final[dict[str, tuple[Event, ...]]] = {  # by the situation of the finding
    "too-many-arrivals": (Event.MBARRIER_ARRIVE,),
    "initialised-twice": (Event.MBARRIER_INIT,),
    "replicated": (Event.WRITE,),
}
_OF_BARRIERS: Final = ("barrier-misuse", "deadlock")
_OF_ORDER: Final = ("data-race", "global-race", "missing-wait", "uninitialized-read", "barrier-misuse")
_HALVES: Final = (0xFFFF, 0xFFFF0000)
_UPDATE: Final = re.compile(r"(add|min|max|and|or|xor)\.(?:rn\.)?([usbf])(32|64)$")
_OWN: Final = {
    "the first thread": "mov.u32 at, %tid.x; setp.eq.u32 own, at, 0;",
    "the first lane of each warp": "mov.u32 at, %laneid; setp.eq.u32 own, at, 0;",
}
_CLEAR: Final = (
    "{{ .reg .b32 at, end, step, size, zero; .reg .pred over; mov.u32 zero, 0; "
    "mov.u32 at, %tid.z; mov.u32 size, %ntid.y; mov.u32 step, %tid.y; mad.lo.u32 at, at, size, step; "
    "mov.u32 size, %ntid.x; mov.u32 step, %tid.x; mad.lo.u32 at, at, size, step; "
    "mov.u32 step, %ntid.y; mul.lo.u32 step, step, size; mov.u32 size, %ntid.z; mul.lo.u32 step, step, size; "
    "mov.u32 size, {name}; add.u32 at, at, size; add.u32 end, size, {bytes}; "
    "again: setp.ge.u32 over, at, end; @over bra done; st.shared.u8 [at], zero; add.u32 at, at, step; bra again; done: bar.sync 0; }} "
)


@dataclass(frozen=True)
class TextRepair:
    """Steps, and the edits that they make."""

    steps: tuple[RepairStep, ...]
    edits: tuple[Edit, ...]


@dataclass
class TextRepairs:
    """Those for one finding, the likeliest first. `lines`: of the finding, in the PTX; `block`: the threads of a CTA."""

    text: TextPlaces
    kind: str
    situation: str
    lines: frozenset[int]
    block: tuple[int, int, int]
    _sites: dict[int, int] = field(init=False)  # of instructions, by their place in the text

    def __post_init__(self) -> None:
        lines = {site.ptx_line: number for number, site in self.places.sites.items()}
        self._sites = {
            each.start: lines[each.line] for function in self._functions for each in function.instructions() if each.line in lines
        }

    def __iter__(self) -> Iterator[TextRepair]:
        forms = (
            self._unaligned, self._masks, self._atomic, self._counted, self._numbers, self._unconditional,
            self._by_fewer, self._around_branches, self._cleared,
        )  # fmt: skip
        for form in forms:
            yield from form()

    @property
    def places(self) -> EventPlaces:
        """The events of the text."""
        return self.text.places

    @property
    def _functions(self) -> list[Function]:
        return [each for each in self.text.module.functions if each.body is not None]

    @functools.cached_property
    def _own(self) -> list[tuple[Function, Instruction]]:
        """The instructions of the finding."""
        return self._at(self.lines)

    def _at(self, lines: Collection[int]) -> list[tuple[Function, Instruction]]:
        return [(function, each) for function in self._functions for each in function.instructions() if each.line in lines]

    def _of_kinds(self, kinds: Collection[Event]) -> list[tuple[Function, Instruction]]:
        spots = self.places.spots(lambda event: event.kind in kinds)
        return self._at({self.places.sites[self.places[spot].site].ptx_line for spot in spots})

    def _with(self, kinds: Collection[Event]) -> list[tuple[Function, Instruction]]:
        """The instructions of the finding, then all of some kinds."""
        return list({each.start: (function, each) for function, each in (*self._own, *self._of_kinds(kinds))}.values())

    # -- steps -------------------------------------------------------------------------------------------------------------

    def _site(self, function: Function, instruction: Instruction) -> int:
        """The number of an instruction's site; a branch gets one here."""
        if instruction.start not in self._sites:
            number = max(self.places.sites, default=0) + 1
            place = place_of(self.text.module, instruction)
            self.places.sites[number] = Site(number, function.name, instruction.opcode, "", "none", "", 0, **vars(place))
            self._sites[instruction.start] = number
        return self._sites[instruction.start]

    def _repair(self, action: str, words: str, at: tuple[Function, Instruction], *edits: Edit) -> TextRepair:
        return TextRepair((RepairStep(action, words, "at", self._site(*at)),), edits)

    def _other(self, at: tuple[Function, Instruction], text: str, words: str = "") -> Iterator[TextRepair]:
        """An instruction in another form."""
        instruction = at[1]
        if text != instruction.text:
            yield self._repair("alter", words or text.rstrip(";"), at, (instruction.start, instruction.end, text))

    # -- by more threads, by fewer -----------------------------------------------------------------------------------------

    def _unconditional(self) -> Iterator[TextRepair]:
        """Without the guard of an instruction, or a branch around it, the nearest first."""
        if self.kind not in _OF_BARRIERS:
            return
        releases = (Event.WRITE, Event.ATOMIC) if self.situation == "lock" else ()
        for function, instruction in self._with((*_SIGNALS, *releases)):
            if instruction.predicate is not None:
                guard = re.match(r"@!?\S+\s+", instruction.text)
                end = instruction.start + (guard.end() if guard else 0)
                yield self._repair("leave-out", "condition", (function, instruction), (instruction.start, end, ""))
            for branch in reversed(_branches_around(function, instruction)):
                yield self._repair("leave-out", "condition", (function, branch), (branch.start, branch.end, ""))

    def _around_branches(self) -> Iterator[TextRepair]:
        """A barrier where the branch around an access begins, or where it ends."""
        if self.kind not in _OF_ORDER:
            return
        for function, instruction in self._own:
            for branch in reversed(_branches_around(function, instruction)):
                end = _target(function, branch)
                behind = next((each for each in function.instructions() if each.start > end), None)
                for each in filter(None, (branch, behind if end else None)):
                    step = RepairStep("add", "bar.sync 0", "before", self._site(function, each))
                    yield TextRepair((step,), ((each.start, each.start, "bar.sync 0; "),))

    def _by_fewer(self) -> Iterator[TextRepair]:
        """Executed by one thread, or by one of each warp: what is done at mbarriers, and stores of one value by many threads."""
        kinds = _BY_ONE.get(self.situation, ())
        found = self._own if Event.WRITE in kinds else self._of_kinds(kinds)
        found = [(function, each) for function, each in found if each.predicate is None and not any(written(each))]
        for who, code in _OWN.items() if found else ():
            edits = [(each.start, each.end, f"{{ .reg .b32 at; .reg .pred own; {code} @own {each.text} }}") for _, each in found]
            steps = [RepairStep("alter", f"{each.opcode} by {who} only", "at", self._site(function, each)) for function, each in found]
            lines = {(step.instruction, line_of(self.places.sites[step.site])): step for step in steps}
            yield TextRepair(tuple(lines.values()), tuple(edits))

    # -- other forms -------------------------------------------------------------------------------------------------------

    def _unaligned(self) -> Iterator[TextRepair]:
        """A barrier that the lanes of a warp need not reach together; all barriers of the finding's kernel change."""
        found = [(function, each) for function, each in self._of_kinds((Event.BARRIER,)) if _unaligned(each) != each.text]
        if found and self.situation.startswith("divergent"):
            steps = tuple(RepairStep("alter", _unaligned(each).split()[0], "at", self._site(function, each)) for function, each in found)
            yield TextRepair(steps, tuple((each.start, each.end, _unaligned(each)) for _, each in found))

    def _masks(self) -> Iterator[TextRepair]:
        """The mask of a `__syncwarp`: half a warp."""
        for function, each in self._own:
            if each.opcode == "bar.warp.sync":
                for mask in _HALVES:
                    yield from self._other((function, each), f"bar.warp.sync {mask:#x};")

    def _counted(self) -> Iterator[TextRepair]:
        """Arrivals of copies that the count of the mbarrier includes, or does not."""
        for function, each in self._of_kinds((Event.MBARRIER_COPIES,)):
            noinc = each.opcode.replace("arrive.", "arrive.noinc.")
            opcode = each.opcode.replace(".noinc", "") if ".noinc" in each.opcode else noinc
            yield from self._other((function, each), each.text.replace(each.opcode, opcode), opcode)

    def _numbers(self) -> Iterator[TextRepair]:
        """The number or the thread count of a named barrier: any multiple of a warp, and any number that the kernel uses."""
        if self.kind not in _OF_BARRIERS:
            return
        barriers = [(function, each) for function, each in self._of_kinds((Event.BARRIER,)) if len(each.operands) >= 2]
        used = {str(each.operands[0].text) for _, each in barriers}
        counts = [str(count) for count in range(32, math.prod(self.block) + 1, 32)]
        for place, values in ((0, sorted(used)), (1, counts)):
            for function, each in barriers:
                old = each.operands[place]
                if isinstance(old, Immediate):
                    for value in values:
                        operands = [other.text for other in each.operands]
                        operands[place] = value
                        yield from self._other((function, each), f"{each.opcode} {', '.join(operands)};")

    # -- several instructions ----------------------------------------------------------------------------------------------

    def _atomic(self) -> Iterator[TextRepair]:
        """One reduction in place of a load, an addition and a store of the same thread to the same address."""
        if self.kind not in ("data-race", "global-race"):
            return
        for function, load in self._own:
            for update, store in _updates(function, load):
                found = _UPDATE.match(update.opcode)
                assert found is not None
                operand = next(each.text for each in update.operands[1:] if each.text != load.operands[0].text)
                opcode = f"red.{load.parts[1]}.{found[1]}.{_reduced(found)}"
                edits = ((load.start, load.end, ""), (update.start, update.end, ""))
                words = f"{opcode} in place of the load, the change and the store"
                yield self._repair(
                    "alter", words, (function, store), *edits, (store.start, store.end, f"{opcode} {store.operands[0].text}, {operand};")
                )

    def _cleared(self) -> Iterator[TextRepair]:
        """Zeros in a variable of shared memory before the kernel begins."""
        if self.kind != "uninitialized-read":
            return
        for function in {id(function): function for function, _ in self._own}.values():
            first = next(function.instructions())
            for name, size in _shared_variables(function, self.text.module.text):
                code = _CLEAR.format(name=name, bytes=size)
                yield self._repair(
                    "alter",
                    f"zeros in {size} bytes of {name} and a bar.sync 0 before it",
                    (function, first),
                    (first.start, first.start, code),
                )


def _branches_around(function: Function, instruction: Instruction) -> list[Instruction]:
    """The conditional branches forwards over an instruction, in the order of the text; none whose removal closes a loop."""
    found = []
    for each in itertools.takewhile(lambda other: other.start < instruction.start, function.instructions()):
        if each.predicate is None:
            continue
        end = _target(function, each)
        leaves = flow_of(each) in ("return", "exit")
        if leaves or (end > instruction.start and not _goes_back(function, each.start, end)):
            found.append(each)
    return found


def _goes_back(function: Function, start: int, end: int) -> bool:
    inside = (each for each in function.instructions() if start < each.start < end)
    return any(0 < _target(function, each) <= start for each in inside)


def _target(function: Function, instruction: Instruction) -> int:
    """Where a branch goes; 0 for what is none."""
    if flow_of(instruction) != "branch" or function.body is None:
        return 0
    name = instruction.operands[-1].text
    return next((each.start for each in function.body.walk() if isinstance(each, Label) and each.name == name), 0)


def _unaligned(instruction: Instruction) -> str:
    opcode = instruction.opcode.replace(".aligned", "")
    if opcode.partition(".")[0] == "bar" and "warp" not in opcode:
        opcode = f"barrier{opcode[3:]}"
    return instruction.text.replace(instruction.opcode, opcode, 1)


def _reduced(found: re.Match[str]) -> str:
    kind = "u" if found[2] == "s" and (found[1], found[3]) == ("add", "64") else found[2]
    return f"{kind}{found[3]}"


def _updates(function: Function, load: Instruction) -> Iterator[tuple[Instruction, Instruction]]:
    """The change of a loaded value and the store of the result to the same address, if nothing else uses the two."""
    row = lookup(load.parts)
    if row is None or row.family != "load" or load.predicate is not None or load.parts[1] not in ("shared", "global"):
        return
    value, address = load.operands[0].text, load.operands[1].text
    users = [each for each in function.instructions() if value in read(each)]
    if len(users) != 1 or not _UPDATE.match(users[0].opcode) or users[0].predicate is not None:
        return
    result = users[0].operands[0].text
    stores = [each for each in function.instructions() if result in read(each)]
    if len(stores) == 1 and stores[0].opcode.startswith(f"st.{load.parts[1]}") and stores[0].operands[0].text == address:
        yield users[0], stores[0]


def _shared_variables(function: Function, text: str) -> list[tuple[str, int]]:
    """The arrays of bytes in shared memory that a function declares, and their sizes; then those of the module."""
    declared: Callable[[str], list[tuple[str, int]]] = lambda code: [  # noqa: E731
        (name, int(size)) for name, size in re.findall(r"\.shared\s+(?:\.align\s+\d+\s+)?\.b8\s+([\w$]+)\[(\d+)\]", code)
    ]
    return list(dict.fromkeys((*declared(function.text), *declared(text))))
