"""The state of asynchronous matrix instructions on a path through a function, and the change by each instruction.

Implements R-G4 and R-G5 on one path (`registers.py` states the rules and the exceptions). Events are the instructions that access
accumulators or A registers, the wgmma instructions, and calls. The state holds what is in flight and what no fence covers yet.
Nothing here depends on the control flow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import TypeVar

from consan.dataclass import dataclass
from consan.instrument.control_flow import Key, PathStep, key_of, written
from consan.instrument.isa import copies, lookup, row_of, sources
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Function, Immediate, Instruction, Vector

_InFlight = tuple[int, int, bool]  # age, order of the matrix instruction, whether a wait passed while it was uncommitted
_Access = tuple[
    Key, str
]  # how a register was accessed: "write", "read", "copy" (read by a mov), "A", or the shape that accumulated into it
_Unfenced = tuple[bool, int]  # whether the access is a plain one between the fence and the first product of a register, and its order
_K = TypeVar("_K")
_V = TypeVar("_V", _Unfenced, _InFlight)
_OLDEST = 8  # wait_group leaves at most 7 groups pending, so older ages are equivalent
_UNCOMMITTED = -1
_READS = ("read", "copy")
_FENCES = ("no-fence", "written-after-fence")
_READ_IN_FLIGHT = "C7514"  # "... serialized due to non wgmma instructions reading accumulator registers of a wgmma ..."
_WORD = re.compile(r"[%$\w]+")


# --- what instructions do to the registers of interest ------------------------------------------------------------------------


@dataclass(frozen=True)
class RegisterEvent:
    """One relevant instruction. `name` is that of the wgmma instruction, "call", or "touch"; `order` is its position in the text."""

    order: int
    name: str
    instruction: Instruction
    reads: tuple[Key, ...] = ()
    writes: tuple[Key, ...] = ()
    count: int = 0

    @property
    def shape(self) -> str:
        """The shape of a matrix instruction."""
        row = lookup(self.instruction.parts)
        assert row is not None
        return next(word for word in row.modifiers(self.instruction.parts).values() if word.startswith("m64"))

    @property
    def discards(self) -> bool:
        """Whether scale-d is the constant false, so that the accumulators are written only."""
        row = lookup(self.instruction.parts)
        assert row is not None
        values = [operand for role, operand in row.event(self.instruction).operands if role == "src"]
        scale = values[-1] if len(values) > 1 else None
        return isinstance(scale, Immediate) and not scale.value


def events_of(function: Function) -> dict[int, RegisterEvent]:
    """The events of a function by the id of the instruction; empty if it has no matrix instruction."""
    instructions = list(function.instructions())
    matrix = [i for i in instructions if row_of(i).is_product]
    watched = {key for i in matrix for group in _matrix_registers(i) for key in group}
    spelled = {name for _, name in watched}
    found = {}
    for order, instruction in enumerate(instructions if matrix else ()):
        event = _event(order, instruction, watched, spelled)
        if event is not None:
            found[id(instruction)] = event
    return found


def _matrix_registers(instruction: Instruction) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """Registers of A (none if A is a descriptor), and accumulators."""
    accumulators, a = instruction.operands[0], instruction.operands[1]
    scope = instruction.scope
    fragments = tuple(key_of(scope, name) for name in names(a)) if isinstance(a, Vector) else ()
    return fragments, tuple(key_of(scope, name) for name in names(accumulators))


def _event(order: int, instruction: Instruction, watched: set[Key], spelled: set[str]) -> RegisterEvent | None:
    row = row_of(instruction)
    if row.is_of_products:
        if row.is_product:
            return RegisterEvent(order, row.action, instruction, *_matrix_registers(instruction))
        leave = instruction.operands[0] if instruction.operands else None
        count = int(leave.value) if isinstance(leave, Immediate) else 0
        return RegisterEvent(order, row.action, instruction, count=count)
    if row.calls:
        return RegisterEvent(order, row.flow, instruction)
    if spelled.isdisjoint(_WORD.findall(instruction.text)):  # reading all operands takes several times longer
        return None
    writes = tuple(key for key in written(instruction) if key in watched)
    reads = tuple(key for key in _read(instruction) if key in watched)
    return RegisterEvent(order, "touch", instruction, reads, writes) if reads or writes else None


def _read(instruction: Instruction) -> Iterator[Key]:
    try:
        found: Iterable[str] = sources(instruction)
    except (LookupError, ValueError):
        found = names(instruction.operands[1:])
    return (key_of(instruction.scope, name) for name in found)


# --- the state of a path ----------------------------------------------------------------------------------------------------


@dataclass
class StraightLine:
    """The instructions that have executed without a guard or a branch before this point; never joined with another path."""

    waited: set[int] = field(default_factory=set)  # matrix instructions that a wait_group has left in flight
    issued: set[int] = field(default_factory=set)  # matrix instructions


@dataclass
class State:
    """The facts that may hold on some path to a point. `fenced` must hold on all paths."""

    accumulators: dict[Key, _InFlight] = field(default_factory=dict)
    fragments: dict[Key, _InFlight] = field(default_factory=dict)
    unfenced: dict[_Access, _Unfenced] = field(default_factory=dict)
    fenced: bool = False
    used: set[Key] | None = None  # registers of matrix instructions since the wgmma.fence; None behind a wait or a call
    committed: bool = False  # whether a group was committed since then
    line: StraightLine = field(default_factory=StraightLine)

    def copy(self) -> State:
        """A copy that may be changed, at the start of a straight line of instructions."""
        used = None if self.used is None else set(self.used)
        return State(dict(self.accumulators), dict(self.fragments), dict(self.unfenced), self.fenced, used, self.committed)

    def join(self, other: State) -> bool:
        """Join with the state of other paths: keep the youngest of each. Returns whether anything changed."""
        changed = (self.fenced and not other.fenced) or (other.committed and not self.committed)
        self.fenced = self.fenced and other.fenced
        self.committed = self.committed or other.committed
        changed |= self._join_used(other.used)
        changed |= _least(self.accumulators, other.accumulators)
        changed |= _least(self.fragments, other.fragments)
        return _least(self.unfenced, other.unfenced) or changed

    def _join_used(self, other: set[Key] | None) -> bool:
        before = self.used
        self.used = None if before is None or other is None else before | other
        return self.used != before

    def flights(self) -> tuple[dict[Key, _InFlight], ...]:
        """Both tables of the operations in flight."""
        return (self.accumulators, self.fragments)


def _unguarded(event: RegisterEvent) -> bool:
    return event.instruction.predicate is None


def _least(mine: dict[_K, _V], other: dict[_K, _V]) -> bool:
    changed = False
    for key, value in other.items():
        if key not in mine or value < mine[key]:
            mine[key] = value
            changed = True
    return changed


@dataclass(frozen=True)
class RegisterHazard:
    """A finding by the order of its instructions in the text."""

    reason: str
    hazard: str
    first: int
    second: int
    first_role: str
    second_role: str
    registers: tuple[str, ...]
    leave: int = 0
    serialised: str = ""  # the ptxas warning that says that this serialises the pipeline

    @property
    def identity(self) -> tuple[str, int, int]:
        """A key that does not depend on the paths that are followed."""
        return (self.reason, self.second, self.first if self.reason not in _FENCES else 0)


Report = Callable[[RegisterHazard], None]


def ignore(hazard: RegisterHazard) -> None:
    """A report function that drops hazards, for the time while states still grow."""


# --- what each event does to the state ----------------------------------------------------------------------------------------


def _commit(state: State, event: RegisterEvent, report: Report) -> None:
    state.committed = True
    for table in state.flights():
        for key, (age, order, early) in table.items():
            table[key] = (min(age + 1, _OLDEST), order, early)


def _wait(state: State, event: RegisterEvent, report: Report) -> None:
    state.used = None  # the batch is over; the next one needs its own fence
    for table in state.flights():
        for key, (age, order, _) in list(table.items()):
            if age >= event.count:
                del table[key]
            elif age == _UNCOMMITTED:
                table[key] = (age, order, True)
            elif order in state.line.issued and _unguarded(event):
                state.line.waited.add(order)


def _fence(state: State, event: RegisterEvent, report: Report) -> None:
    state.unfenced.clear()
    state.fenced, state.used, state.committed = True, set(), False


def _call(state: State, event: RegisterEvent, report: Report) -> None:
    state.unfenced.clear()
    for table in state.flights():
        table.clear()
    state.fenced, state.used, state.line = True, None, StraightLine()


def _touch(state: State, event: RegisterEvent, report: Report) -> None:
    _early(state, state.accumulators, event.reads, event, ("RAW", "wgmma accumulator", "read"), report)
    _early(state, state.accumulators, event.writes, event, ("WAW", "wgmma accumulator", "write"), report)
    _early(state, state.fragments, event.writes, event, ("WAR", "wgmma A operand", "write"), report)
    for keys, how in ((event.reads, "copy" if _copies(event) else "read"), (event.writes, "write")):
        for key in keys:
            plain = state.used is not None and key not in state.used and _unguarded(event) and _may_sink(state, event)
            _least(state.unfenced, {(key, how): (plain, event.order)})


def _early(
    state: State, table: dict[Key, _InFlight], keys: tuple[Key, ...], event: RegisterEvent, words: tuple[str, str, str], report: Report
) -> None:
    """Report accesses to registers in flight, and forget the matrix instruction: later hazards on this path are the same defect."""
    hit: dict[_InFlight, list[str]] = {}
    for key in keys:
        if key in table:
            hit.setdefault(table[key], []).append(key[1])
    for (age, order, early), registers in hit.items():
        reason = "not-committed" if early else "touched-before-wait"
        report(
            RegisterHazard(
                reason,
                words[0],
                order,
                event.order,
                words[1],
                words[2],
                tuple(dict.fromkeys(registers)),
                max(age, 0),
                _READ_IN_FLIGHT if words[2] == "read" and order in state.line.waited and _unguarded(event) else "",
            )
        )
        for each in state.flights():
            for key in [key for key, value in each.items() if value[1] == order]:
                del each[key]


def _matrix(state: State, event: RegisterEvent, report: Report) -> None:
    fragments, accumulators = event.reads, event.writes
    _early(state, state.accumulators, fragments, event, ("RAW", "wgmma accumulator", "wgmma A operand"), report)
    _unfenced(state, event, report)
    for key in fragments:
        state.fragments[key] = (_UNCOMMITTED, event.order, False)
        _least(state.unfenced, {(key, "A"): (False, event.order)})
    for key in accumulators:
        state.accumulators[key] = (_UNCOMMITTED, event.order, False)
        _least(state.unfenced, {(key, event.shape): (False, event.order)})
    if state.used is not None:
        state.used.update(fragments, accumulators)
    if _unguarded(event):
        state.line.issued.add(event.order)
        state.line.waited.discard(event.order)


def _unfenced(state: State, event: RegisterEvent, report: Report) -> None:
    """Report accesses that no fence separates from this instruction, and forget them: later hazards are the same defect."""
    uses = {**dict.fromkeys(event.reads, "A"), **dict.fromkeys(event.writes, event.shape)}
    found = sorted((order, key, how) for (key, how), (_, order) in state.unfenced.items() if _conflicts(how, uses.get(key)))
    if found:
        order, key, how = found[0]
        hazard = _hazard(how, uses[key], event.discards)
        registers = tuple(dict.fromkeys(name for _, (_, name), _ in found))
        sunk = all(_is_sunk(state, key, how) for _, key, how in found)
        kind = "written-after-fence" if sunk else "no-fence"
        report(RegisterHazard(kind, hazard, order, event.order, _role(how), _role(uses[key]), registers))
    elif not state.fenced:
        registers = tuple(name for _, name in uses)
        report(RegisterHazard("no-fence", "WAW" if event.discards else "RAW", event.order, event.order, _role(""), _role(""), registers))
    state.fenced = True
    for _, key, how in found:
        del state.unfenced[key, how]


def _is_sunk(state: State, key: Key, how: str) -> bool:
    """Whether a register is written, or copied, behind the fence of its batch on all paths, and before the first product on it."""
    written = state.unfenced.get((key, how if how == "copy" else "write"))
    return state.unfenced[key, how][0] and written is not None and written[0]


def _may_sink(state: State, event: RegisterEvent) -> bool:
    """Whether a compiler may have moved an access here from above the fence: behind a commit only a value that it had before."""
    return not state.committed or _copies(event)


def _copies(event: RegisterEvent) -> bool:
    return copies(event.instruction)


def _role(how: str) -> str:
    return {"A": "wgmma A operand", "read": "read", "copy": "read", "write": "write"}.get(how, "wgmma accumulator")


def _conflicts(how: str, use: str | None) -> bool:
    """Whether an access and a later use by a matrix instruction need a fence between them."""
    if use is None or how == use:
        return False
    return not (how in _READS and use == "A")


def _hazard(how: str, use: str, discards: bool) -> str:
    if how in (*_READS, "A"):
        return "WAR"
    return "WAW" if discards and use != "A" else "RAW"


_EFFECTS: dict[str, Callable[[State, RegisterEvent, Report], None]] = {
    "mma_async": _matrix,
    "fence": _fence,
    "commit_group": _commit,
    "wait_group": _wait,
    "call": _call,
    "touch": _touch,
}


def apply(state: State, step: PathStep, event: RegisterEvent, report: Report) -> None:
    """Apply one step. If the step may not execute, the paths without it remain."""
    before = state.copy() if step.guard is not None and event.name not in ("touch", "call") else None
    _EFFECTS[event.name](state, event, report)
    if before is not None:
        state.join(before)
