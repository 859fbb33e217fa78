"""The part of a kernel's log that the host can compute: the kernel neither stores nor hashes it.

A register is KNOWN if its value follows from the number of its thread, constants, what is the same in all CTAs of a launch, and what the
kernel has recorded. It is of the CTA if it follows from these and the number of the CTA. Levels hold for a register, not for a place in
the text: the level of a register is the worst of all instructions that write it.

A value also depends on the way that its thread took. A slice of the text, from all events backwards, tells which branches matter: those
that decide whether an event, or an instruction whose result is needed, is executed. The predicate of such a branch is computed if it is
known, and otherwise recorded as any word is. So each thread takes the same way through the slice on the host (expansion.py).

Why equal hashes mean equal logs. Take two CTAs of one module, entry, block and cluster shape whose hashes, and whose hashed constants of
the launch, are equal; follow one thread through both. As long as it took the same way, KNOWN registers are equal. At a word or a branch
there are three cases. KNOWN: equal. A value of the CTA, or an unknown one, was hashed: equal but for a collision of hashes, as with
full logs. So words and ways are equal up to the end. Results of warp-wide instructions are recorded where they are needed.

A wait for an mbarrier that only waits leaves no trace of failed polls: the host takes it once, as one that has passed. So what a failed
poll writes, and something else too, is unknown. For a strong access that polls memory, the host goes through fewer rounds than the thread
did (polls.py), so all that these write is unknown.

Not handled: registers that are read before they are written.
"""

from __future__ import annotations

import enum
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import field

from consan.dataclass import dataclass
from consan.instrument.control_flow import Graph, Key, guard_of, written
from consan.instrument.control_flow.paths import inverse, on_cycles, reached
from consan.instrument.isa import Row, elects, is_exact, is_move, lookup, row_of
from consan.instrument.ptx import Immediate, Instruction, Register, Symbol
from consan.instrument.record.analyses.launch_inputs import LEADER, LaunchConstant, LaunchConstants, LaunchInputs
from consan.instrument.record.analyses.uniform import WarpValues
from consan.instrument.rewriting.context import FunctionPlan
from consan.instrument.waits.waits import failed_polls

_WINDOWS = frozenset({"shared", "shared::cta", "global"})  # the host knows where they begin
_SAME = frozenset({*(f"%{name}.{axis}" for name in ("tid", "ntid") for axis in "xyz"), "%laneid"})
_SAME |= {f"%lanemask_{name}" for name in ("eq", "lt", "le", "gt", "ge")}
_AXES = tuple(
    f"%{name}.{axis}" for name in ("ctaid", "nctaid", "cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid") for axis in "xyz"
)
PLACE = (*_AXES, "%cluster_ctarank", "%cluster_nctarank")  # special registers that the host gives each CTA, in this order
OF_CTA = frozenset({*(f"%{name}.{axis}" for name in ("ctaid", "clusterid") for axis in "xyz")})
_OF_GRID = frozenset({*(f"%{name}.{axis}" for name in ("nctaid", "nclusterid") for axis in "xyz")})
_ALL_LANES = 0xFFFFFFFF


class Computability(enum.IntEnum):
    """How far a value is known before the launch."""

    KNOWN = 0
    CTA = 1
    UNKNOWN = 2


@dataclass(frozen=True)
class WordNeed:
    """Registers that a word of the log, or a predicate of inserted text, is computed from. `hashed`: the word is."""

    keys: frozenset[Key]
    hashed: bool
    constants: tuple[LaunchConstant, ...] = ()


@dataclass(frozen=True)
class Repeated:
    """The iterations that a thread may do more often than the host."""

    passed: set[int]  # waits that the host takes once, as ones that have passed: their starts
    polled: set[int]  # the instructions between a failed one of them and the next
    iterations: set[int]  # the nodes in loops of polls of memory


@dataclass
class Computed:
    """The levels and the slice of one kernel. `starts`: of the instructions with events; `needs`: of their words."""

    plan: FunctionPlan
    graph: Graph
    starts: frozenset[int]
    needs: Iterable[WordNeed]
    polls: frozenset[int] = frozenset()  # the nodes with strong accesses whose iterations may leave nothing
    levels: dict[Key, Computability] = field(default_factory=dict)
    kept: dict[int, bool] = field(default_factory=dict)  # instructions of the slice, and whether a hash depends on them
    recorded: dict[int, set[Key]] = field(default_factory=dict)  # instructions whose results are recorded, and those results
    branches: set[int] = field(default_factory=set)  # the nodes whose branches matter
    faithful: set[int] = field(default_factory=set)  # the nodes that the host passes as often as the thread did
    constants: LaunchConstants = field(default_factory=LaunchConstants)

    def __post_init__(self) -> None:
        self.inputs = LaunchInputs.of(self.plan)
        self.warp = WarpValues(self.plan.function, self.inputs.made)
        self._nodes = {step.instruction.start: number for number, node in enumerate(self.graph.nodes) for step in node.steps}
        waits = [work.instruction for work in self.plan.work if work.row.is_phase_wait]
        polls = failed_polls(self.plan.function, waits)
        passed = {start for start, path in polls.items() if self.starts.isdisjoint(path)}
        self.repeated = Repeated(
            passed,
            {each for start in passed for each in polls[start]},
            on_cycles(self.graph.successors, self.graph.predecessors, self.polls, {self._nodes[start] for start in self.starts}),
        )
        self.recorded = {wait.start: set(written(wait)) for wait in waits if wait.start not in passed}
        self._set_levels()
        self._slice()
        self._trust()

    # -- levels ----------------------------------------------------------------------------------------------------------------

    def level(self, keys: Iterable[Key]) -> Computability:
        """The worst of some registers."""
        return max((self.levels.get(key, Computability.UNKNOWN) for key in keys), default=Computability.KNOWN)

    def blur(self, path: set[int]) -> set[Key]:
        """The registers that failed polls write, and something else too."""
        return {key for key, made in self.inputs.made.items() if 0 < sum(each.start in path for each in made) < len(made)}

    def _set_levels(self) -> None:
        blurred = self.blur(self.repeated.polled)
        blurred |= {key for node in self.repeated.iterations for step in self.graph.nodes[node].steps for key in written(step.instruction)}
        self.levels = {key: Computability.UNKNOWN if key in blurred else Computability.KNOWN for key in self.inputs.made}
        users: dict[Key, list[Instruction]] = defaultdict(list)
        pending = deque(self.plan.function.instructions())  # in the order of the text
        for instruction in pending:
            for key in self.inputs.sources(instruction):
                users[key].append(instruction)
        while pending:
            instruction = pending.popleft()
            found = self._result(instruction)
            for key in written(instruction):
                if found > self.levels[key]:
                    self.levels[key] = found
                    pending += users[key]

    def _result(self, instruction: Instruction) -> Computability:
        """The level of the value that an instruction writes."""
        if instruction.start in self.recorded:
            return Computability.KNOWN
        guard = guard_of(instruction)
        guarded = Computability.KNOWN if guard is None else self.level((guard.register,))
        if instruction.start in self.repeated.passed:
            return guarded
        row = lookup(instruction.parts)
        if row is None or not self.is_pure(instruction, row):
            return Computability.UNKNOWN
        others = [self._of_name(instruction, name) for name in self.inputs.others(instruction)]
        found = max((guarded, self.level(self.inputs.sources(instruction)), *others))
        return Computability.UNKNOWN if row.has_own_result and found is not Computability.KNOWN else found

    def is_pure(self, instruction: Instruction, row: Row) -> bool:
        """Whether an instruction's result follows from its operands alone."""
        if self.inputs.parameter(instruction) is not None or row.has_own_result:
            return True
        if row.converts_address:
            return row.modifiers(instruction.parts)["space"] in _WINDOWS
        return is_exact(instruction)

    def _of_name(self, instruction: Instruction, name: str) -> Computability:
        if name in _SAME:
            return Computability.KNOWN
        if (name in self.inputs.symbols or name in PLACE) and is_plain_move(instruction):
            return Computability.CTA if name in OF_CTA else Computability.KNOWN
        return Computability.UNKNOWN

    # -- the slice -------------------------------------------------------------------------------------------------------------

    def _slice(self) -> None:
        for start in self.starts:
            self.reach(self._nodes[start])
        for need in self.needs:
            self.want(need.keys, hashed=need.hashed)
            for constant in need.constants:
                self.constants.add(constant, hashed=need.hashed and not constant.symbol)

    def want(self, keys: Iterable[Key], *, hashed: bool) -> None:
        """Keep what the value of some registers follows from, unless they are recorded."""
        wanted = set(keys)
        level = self.level(wanted)
        if level is Computability.UNKNOWN:
            return
        pending = [(key, hashed and level is Computability.KNOWN) for key in wanted]
        while pending:
            key, strong = pending.pop()
            for instruction in self.inputs.made.get(key, ()):
                start = instruction.start
                if start in self.recorded or self._is_result(instruction):
                    self.recorded.setdefault(start, set()).add(key)
                elif start in self.kept and self.kept[start] >= strong:
                    continue
                repeats, self.kept[start] = start in self.kept, strong
                if not repeats:
                    self.reach(self._nodes[start])
                if start in self.recorded:
                    continue
                pending += [(source, strong) for source in self._read(instruction)]
                self._note(instruction, strong)

    def _read(self, instruction: Instruction) -> Iterable[Key]:
        """The registers that the host reads to execute an instruction: of a wait that has passed it executes the guard only."""
        if instruction.start not in self.repeated.passed:
            return self.inputs.sources(instruction)
        guard = guard_of(instruction)
        return () if guard is None else (guard.register,)

    def _is_result(self, instruction: Instruction) -> bool:
        """Whether what an instruction writes is recorded, if it is needed."""
        row = lookup(instruction.parts)
        return row is not None and row.has_own_result and not (elects_one(instruction) or self.warp.spreads(instruction))

    def _note(self, instruction: Instruction, strong: bool) -> None:
        """Keep what the host needs to know of the launch."""
        constant = self.inputs.parameter(instruction)
        if constant is not None:
            self.constants.add(constant, hashed=strong)
        if elects_one(instruction):
            self.constants.add(LEADER, hashed=True)
        for name in self.inputs.others(instruction):
            if name in self.inputs.symbols:
                self.constants.add(LaunchConstant(name, 0, 4, symbol=True), hashed=False)  # the text alone decides it
            self.constants.of_grid |= strong and name in _OF_GRID

    def reach(self, node: int) -> None:
        """Keep the branches that decide whether a node is reached."""
        for branch in self.graph.post_dominators.control_dependence[node]:
            if branch not in self.branches:
                self.branches.add(branch)
                last = self.graph.nodes[branch].steps[-1].instruction
                self.reach(branch)
                self.want(self.decides(last), hashed=True)

    def decides(self, instruction: Instruction) -> frozenset[Key]:
        """The registers that a branch depends on."""
        guard = guard_of(instruction)
        found = set() if guard is None else {guard.register}
        if row_of(instruction).is_indexed:
            found |= set(self.inputs.sources(instruction))
        return frozenset(found)

    # -- ways ------------------------------------------------------------------------------------------------------------------

    def _trust(self) -> None:
        """Find the nodes that depend on kept branches alone, and not on how often a poll fails."""
        uncertain = {node for node in range(len(self.graph.nodes)) if self.graph.post_dominators.control_dependence[node] - self.branches}
        uncertain |= self.repeated.iterations | {self._nodes[start] for start in self.repeated.polled | self.repeated.passed}
        self.faithful = set(range(len(self.graph.nodes))) - reached(inverse(self.graph.post_dominators.control_dependence), uncertain)

    def is_faithful(self, instruction: Instruction) -> bool:
        """Whether the host passes an instruction as often as the thread did."""
        return self._nodes[instruction.start] in self.faithful

    def enters(self, number: int) -> bool:
        """Whether a thread goes from a node to one that the host passes by."""
        return number in self.faithful and any(each not in self.faithful for each in self.graph.nodes[number].successors)

    def beyond(self, number: int) -> int | None:
        """The node at which all ways from a node meet; None: the end of the kernel."""
        found = self.graph.post_dominators.immediate[number]
        while found is not None and not self.graph.nodes[found].steps:
            found = self.graph.post_dominators.immediate[found]
        return found


def elects_one(instruction: Instruction) -> bool:
    """An election among all lanes. It has the same result each time (ISA "elect.sync")."""
    mask = instruction.operands[-1] if instruction.operands else None
    everyone = isinstance(mask, Immediate) and int(mask.value) & _ALL_LANES == _ALL_LANES
    return elects(instruction) and instruction.predicate is None and everyone


def is_plain_move(instruction: Instruction) -> bool:
    """A move of one value to one register: the expansion may load that from elsewhere."""
    simple = len(instruction.operands) == 2 and all(isinstance(each, (Register, Symbol)) for each in instruction.operands)
    return simple and is_move(instruction)
