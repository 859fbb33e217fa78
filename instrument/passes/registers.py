"""Registers of asynchronous matrix instructions that are touched too early (rules R-G4 and R-G5), found in the text.

ISA "wgmma.wait_group": accessing the accumulator registers, or the registers with the fragments of A, before a
`wgmma.wait_group` that waits for the group of their `wgmma.mma_async` is undefined (R-G4). ISA "wgmma.fence": a fence must stand
before the first `wgmma.mma_async`, and between an access to a register and an `mma_async` that uses it as accumulator or for A;
accumulators of consecutive `mma_async` of one shape need none (R-G5).

A forward analysis on the control-flow graph (`flow.py`), of what may be so on some path. For each register it keeps the youngest
`mma_async` in flight that uses it, with its age: -1 while uncommitted, else the number of groups committed after its own.
`wait_group N` retires what is N or older. One entry a register is enough: an older `mma_async` on it is retired no later. So the
state is bounded by the number of such registers however far a loop is unrolled. For R-G5 it keeps the accesses since the last fence.

A hazard that depends on one predicate register having two values on one path is no hazard: before it is reported, the graph is
split by each register that guards several instructions (`flow.split`).

Choices where the ISA is strict and nothing can go wrong, or where it says nothing:
- An ordinary read of A registers in flight is silent (two reads commute), and so is a read before an `mma_async` reads them.
- Accumulators of an `mma_async` in flight that another one of a different shape accumulates into, or registers of A that become
  accumulators, need a fence only; an A operand that is an accumulator in flight needs the wait.
- The fence is asked for also where scale-d is false: the old value is not used, but the write that the compiler placed
  before may land after.
- A call ends all knowledge: whatever was in flight or unfenced is forgotten, and functions that are not kernels begin fenced.
- A guarded wait, fence or commit is counted as not executed, unless what depends on it has the same guard.

Not handled: metadata registers of sparse forms (the ISA does not ask for it), and registers that a callee has in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from consan.instrument.isa import sources
from consan.instrument.isa.roles import names
from consan.instrument.passes.analyse import callee
from consan.instrument.passes.context import place_of
from consan.instrument.passes.flow import Graph, Key, Step, graph_of, key_of, repeated_guards, split, written
from consan.instrument.ptx import Function, Immediate, Instruction, Module, Vector
from consan.instrument.sites import Place

_OLDEST = 8  # wait_group leaves at most 7 groups pending: older ones are alike
_UNCOMMITTED = -1
_SPLITS = 64  # predicates that are tried to show that a hazard has no path


@dataclass(frozen=True)
class StaticFinding:
    """A hazard on registers: (1) is what came first. For `no-fence` (2) is the matrix instruction, else (1) is.

    `leave` is the largest N of a wait_group that would cover (1); `kernels` are those that can reach the function.
    """

    reason: str  # "touched-before-wait", "not-committed" or "no-fence"
    hazard: str  # "RAW", "WAR" or "WAW"
    first: Place
    second: Place
    first_role: str
    second_role: str
    registers: tuple[str, ...]
    leave: int
    function: str
    kernels: tuple[str, ...]
    kind: str = "register-hazard"


# --- what instructions do to the registers of interest ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Event:
    """One instruction that matters. `name` is the wgmma instruction's, "call", or "touch"; `order` its place in the text."""

    order: int
    name: str
    instruction: Instruction
    reads: tuple[Key, ...] = ()
    writes: tuple[Key, ...] = ()
    count: int = 0

    @property
    def shape(self) -> str:
        """The shape of a matrix instruction."""
        return next(part for part in self.instruction.parts if part.startswith("m64"))

    @property
    def discards(self) -> bool:
        """Whether scale-d is a constant false, so that the accumulators are written only."""
        operands = self.instruction.operands
        scale = operands[3] if len(operands) > 3 else None
        return isinstance(scale, Immediate) and not scale.value


def _events(function: Function) -> dict[int, _Event]:
    """The events of a function by the identity of the instruction; none where it has no matrix instruction."""
    instructions = list(function.instructions())
    matrix = [i for i in instructions if i.parts[:2] == ("wgmma", "mma_async")]
    watched = {key for i in matrix for group in _matrix_registers(i) for key in group}
    spelled = {name for _, name in watched}
    found = {}
    for order, instruction in enumerate(instructions if matrix else ()):
        event = _event(order, instruction, watched, spelled)
        if event is not None:
            found[id(instruction)] = event
    return found


def _matrix_registers(instruction: Instruction) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """Registers of A (none where it is a descriptor) and accumulators."""
    accumulators, a = instruction.operands[0], instruction.operands[1]
    scope = instruction.scope
    fragments = tuple(key_of(scope, name) for name in names(a)) if isinstance(a, Vector) else ()
    return fragments, tuple(key_of(scope, name) for name in names(accumulators))


def _event(order: int, instruction: Instruction, watched: set[Key], spelled: set[str]) -> _Event | None:
    parts = instruction.parts
    if parts[0] == "wgmma":
        if parts[1] == "mma_async":
            return _Event(order, parts[1], instruction, *_matrix_registers(instruction))
        leave = instruction.operands[0] if instruction.operands else None
        count = int(leave.value) if isinstance(leave, Immediate) else 0
        return _Event(order, parts[1], instruction, count=count)
    if parts[0] == "call":
        return _Event(order, "call", instruction)
    if not any(name in spelled for operand in instruction.operands for name in names(operand)):
        return None
    writes = tuple(key for key in written(instruction) if key in watched)
    reads = tuple(key for key in _read(instruction) if key in watched)
    return _Event(order, "touch", instruction, reads, writes) if reads or writes else None


def _read(instruction: Instruction) -> Iterator[Key]:
    try:
        found: Iterable[str] = sources(instruction)
    except (LookupError, ValueError):
        found = names(instruction.operands[1:])
    return (key_of(instruction.scope, name) for name in found)


# --- the state of a path ----------------------------------------------------------------------------------------------------

_InFlight = tuple[int, int, bool]  # age, order of the matrix instruction, whether a wait passed while it was uncommitted
_Access = tuple[Key, str]  # how a register was accessed: "write", "read", "A", or the shape that accumulated into it


@dataclass
class _State:
    """What may hold on some path to a point; `fenced` is what must."""

    accumulators: dict[Key, _InFlight] = field(default_factory=dict)
    fragments: dict[Key, _InFlight] = field(default_factory=dict)
    unfenced: dict[_Access, int] = field(default_factory=dict)
    fenced: bool = False

    def copy(self) -> _State:
        """One that can be changed."""
        return _State(dict(self.accumulators), dict(self.fragments), dict(self.unfenced), self.fenced)

    def join(self, other: _State) -> bool:
        """Add the paths of another state: the youngest of each. Whether that changed anything."""
        changed = self.fenced and not other.fenced
        self.fenced = self.fenced and other.fenced
        changed |= _least(self.accumulators, other.accumulators)
        changed |= _least(self.fragments, other.fragments)
        return _least(self.unfenced, other.unfenced) or changed

    def flights(self) -> tuple[dict[Key, _InFlight], ...]:
        """Both tables of what is in flight."""
        return (self.accumulators, self.fragments)


def _least(mine: dict, other: dict) -> bool:  # type: ignore[type-arg]
    changed = False
    for key, value in other.items():
        if key not in mine or value < mine[key]:
            mine[key] = value
            changed = True
    return changed


@dataclass(frozen=True)
class _Hazard:
    """A finding by the order of its instructions in the text."""

    reason: str
    hazard: str
    first: int
    second: int
    first_role: str
    second_role: str
    registers: tuple[str, ...]
    leave: int = 0

    @property
    def identity(self) -> tuple[str, int, int]:
        """What stays the same whatever paths are looked at."""
        return (self.reason, self.second, self.first if self.reason != "no-fence" else 0)


Report = Callable[[_Hazard], None]


def _ignore(hazard: _Hazard) -> None:
    """While the states are still growing nothing is reported."""


# --- what each event does to the state ----------------------------------------------------------------------------------------


def _commit(state: _State, event: _Event, report: Report) -> None:
    for table in state.flights():
        for key, (age, order, early) in table.items():
            table[key] = (min(age + 1, _OLDEST), order, early)


def _wait(state: _State, event: _Event, report: Report) -> None:
    for table in state.flights():
        for key, (age, order, _) in list(table.items()):
            if age >= event.count:
                del table[key]
            elif age == _UNCOMMITTED:
                table[key] = (age, order, True)


def _fence(state: _State, event: _Event, report: Report) -> None:
    state.unfenced.clear()
    state.fenced = True


def _call(state: _State, event: _Event, report: Report) -> None:
    for table in (*state.flights(), state.unfenced):
        table.clear()
    state.fenced = True


def _touch(state: _State, event: _Event, report: Report) -> None:
    _early(state, state.accumulators, event.reads, event, ("RAW", "wgmma accumulator", "read"), report)
    _early(state, state.accumulators, event.writes, event, ("WAW", "wgmma accumulator", "write"), report)
    _early(state, state.fragments, event.writes, event, ("WAR", "wgmma A operand", "write"), report)
    for keys, how in ((event.reads, "read"), (event.writes, "write")):
        for key in keys:
            state.unfenced.setdefault((key, how), event.order)


def _early(
    state: _State, table: dict[Key, _InFlight], keys: tuple[Key, ...], event: _Event, words: tuple[str, str, str], report: Report
) -> None:
    """Report registers that are in flight, and forget their instruction: what follows on this path is the same defect."""
    hit: dict[_InFlight, list[str]] = {}
    for key in keys:
        if key in table:
            hit.setdefault(table[key], []).append(key[1])
    for (age, order, early), registers in hit.items():
        reason = "not-committed" if early else "touched-before-wait"
        report(_Hazard(reason, words[0], order, event.order, words[1], words[2], tuple(dict.fromkeys(registers)), max(age, 0)))
        for each in state.flights():
            for key in [key for key, value in each.items() if value[1] == order]:
                del each[key]


def _matrix(state: _State, event: _Event, report: Report) -> None:
    fragments, accumulators = event.reads, event.writes
    _early(state, state.accumulators, fragments, event, ("RAW", "wgmma accumulator", "wgmma A operand"), report)
    _unfenced(state, event, report)
    for key in fragments:
        state.fragments[key] = (_UNCOMMITTED, event.order, False)
        state.unfenced.setdefault((key, "A"), event.order)
    for key in accumulators:
        state.accumulators[key] = (_UNCOMMITTED, event.order, False)
        state.unfenced.setdefault((key, event.shape), event.order)


def _unfenced(state: _State, event: _Event, report: Report) -> None:
    """Report accesses that no fence separates from this instruction, and forget them."""
    if not state.fenced:
        names_of = tuple(dict.fromkeys(name for _, name in (*event.writes, *event.reads)))
        report(_Hazard("no-fence", "RAW", event.order, event.order, "wgmma accumulator", "wgmma accumulator", names_of))
    state.fenced = True
    mine = {**dict.fromkeys(event.reads, "A"), **dict.fromkeys(event.writes, event.shape)}
    found = [(order, key, how) for (key, how), order in state.unfenced.items() if _conflicts(how, mine.get(key))]
    if not found:
        return
    order, key, how = min(found)
    use = mine[key]
    report(
        _Hazard(
            "no-fence",
            _hazard(how, use, event.discards),
            order,
            event.order,
            _ROLES.get(how, "wgmma accumulator"),
            _ROLES.get(use, "wgmma accumulator"),
            tuple(dict.fromkeys(name for _, (_, name), _ in sorted(found))),
        )
    )
    for _, key, how in found:
        del state.unfenced[key, how]


_ROLES = {"A": "wgmma A operand", "read": "read", "write": "write"}


def _conflicts(how: str, use: str | None) -> bool:
    """Whether an access and a later use by a matrix instruction need a fence between them."""
    if use is None or how == use:
        return False
    return not (how == "read" and use == "A")


def _hazard(how: str, use: str, discards: bool) -> str:
    if how in ("read", "A"):
        return "WAR"
    return "WAW" if discards and use != "A" else "RAW"


_EFFECTS: dict[str, Callable[[_State, _Event, Report], None]] = {
    "mma_async": _matrix,
    "fence": _fence,
    "commit_group": _commit,
    "wait_group": _wait,
    "call": _call,
    "touch": _touch,
}


def _apply(state: _State, step: Step, event: _Event, report: Report) -> None:
    """One step; what may not run leaves the paths on which it does not."""
    before = state.copy() if step.guard is not None and event.name != "touch" else None
    _EFFECTS[event.name](state, event, report)
    if before is not None:
        state.join(before)


# --- the analysis --------------------------------------------------------------------------------------------------------------


def _solve(graph: Graph, events: dict[int, _Event], fenced: bool) -> dict[tuple[str, int, int], _Hazard]:
    """The hazards of a graph, once the states at its nodes no longer grow."""
    relevant = [[(step, events[id(step.instruction)]) for step in node.steps if id(step.instruction) in events] for node in graph.nodes]
    states: dict[int, _State] = {entry: _State(fenced=fenced) for entry in graph.entries}
    pending = dict.fromkeys(graph.entries)
    while pending:
        # In the order of the text a loop is done before what follows it.
        number = min(pending)
        del pending[number]
        state = _through(states[number], relevant[number], _ignore)
        for successor in graph.nodes[number].successors:
            if successor not in states:
                states[successor] = state.copy()
                pending[successor] = None
            elif states[successor].join(state):
                pending[successor] = None
    found: dict[tuple[str, int, int], _Hazard] = {}
    for number in sorted(states):
        _through(states[number], relevant[number], lambda hazard: void(found.setdefault(hazard.identity, hazard)))
    return found


def _through(state: _State, steps: list[tuple[Step, _Event]], report: Report) -> _State:
    if not steps:
        return state
    state = state.copy()
    for step, event in steps:
        _apply(state, step, event, report)
    return state


def void(value: object) -> None:
    """For a callback that must give nothing."""


def _hazards(function: Function) -> tuple[list[_Hazard], dict[int, Instruction]]:
    """The hazards of one function, those without a path left out, and its instructions by their order."""
    events = _events(function)
    if not events:
        return [], {}
    graph, fenced = graph_of(function), function.kind != "entry"
    found = _solve(graph, events, fenced)
    if found:
        writers: dict[Key, set[int]] = {}
        for step in graph.steps():
            for key in written(step.instruction):
                writers.setdefault(key, set()).add(id(step.instruction))
        for register in repeated_guards(graph)[:_SPLITS]:
            possible = _solve(split(graph, register, writers.get(register, ())), events, fenced)
            found = {identity: hazard for identity, hazard in found.items() if identity in possible}
    return list(found.values()), {event.order: event.instruction for event in events.values()}


def find_register_hazards(module: Module) -> tuple[StaticFinding, ...]:
    """The register hazards of all functions of a module, in the order of the text."""
    found = []
    for function in module.functions:
        hazards, instructions = _hazards(function)
        for hazard in sorted(hazards, key=lambda each: (each.second, each.first, each.reason)):
            found.append(
                StaticFinding(
                    hazard.reason,
                    hazard.hazard,
                    place_of(module, instructions[hazard.first]),
                    place_of(module, instructions[hazard.second]),
                    hazard.first_role,
                    hazard.second_role,
                    hazard.registers,
                    hazard.leave,
                    function.name,
                    _kernels(module, function.name),
                )
            )
    return tuple(found)


def _kernels(module: Module, wanted: str) -> tuple[str, ...]:
    """The kernels that can reach a function; an indirect call reaches all that are not kernels."""
    bodies = {f.name: f for f in module.functions if f.body is not None}
    anything = [name for name, f in bodies.items() if f.kind == "func"]
    callers: dict[str, set[str]] = {name: set() for name in bodies}
    for name, function in bodies.items():
        for instruction in function.instructions():
            if instruction.parts[0] == "call":
                target = callee(instruction)
                for each in anything if target is None else [target] if target in bodies else []:
                    callers[each].add(name)
    reached, pending = {wanted}, [wanted]
    while pending:
        fresh = callers[pending.pop()] - reached
        reached |= fresh
        pending += fresh
    return tuple(name for name, f in bodies.items() if f.kind == "entry" and name in reached)
