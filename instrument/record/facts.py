"""Facts before a function is rewritten: of its module, of its place there, and of its text."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from consan.dataclass import dataclass
from consan.instrument.control_flow import Graph, Key, definitions, graph_of
from consan.instrument.functions.annotated import ignored
from consan.instrument.functions.call_joins import points_of
from consan.instrument.functions.points import Join, Point
from consan.instrument.ptx import Instruction
from consan.instrument.record import seals
from consan.instrument.record.analyses.computed import Computed
from consan.instrument.record.analyses.cuts import cut_nodes
from consan.instrument.record.families import global_operands, launch_control, mbarriers, tensor_memory
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.record.text.templates import Template
from consan.instrument.record.text.words import TextVariant
from consan.instrument.rewriting.context import Context, FunctionPlan


@dataclass(frozen=True)
class ModuleFacts:
    """The facts that functions of a module share in one of its texts. `templates`: of all functions, so that block numbers are unique."""

    context: Context
    templates: list[Template]
    variant: TextVariant
    leaves: bool  # threads leave when the host stops the launch
    reads: bool  # loads from global memory can meet an asynchronous copy
    writes: bool  # writes to it can
    sealing: bool  # of asynchronous copies with a side in global memory, the module has cp.async only
    called: frozenset[str]  # the device functions that are recorded
    numbers: Mapping[str, int]  # those of them in which lanes may bypass a point
    may_part: bool  # lanes of a warp may part in one of those

    def meets_copies(self, instruction: Instruction, *, sealed: bool) -> bool:
        """Whether an instruction accesses global memory where a copy may. `sealed`: in its kernel no write is beside a copy."""
        writes = self.writes and not sealed and global_operands.writes_global(instruction)
        return writes or (self.reads and global_operands.reads_global(instruction))


@dataclass(frozen=True)
class RecordedFunction:
    """One kernel or device function, and how it is recorded."""

    plan: FunctionPlan
    number: int  # of the kernel
    mode: Mode
    shared: bool  # threads may synchronise through shared memory
    fences: bool  # fences are recorded
    looped: bool = False  # a function that a thread may execute more than once for one call site
    computed: Computed | None = None  # what the host can compute, in all variants but FULL

    @property
    def hashing(self) -> bool:
        """Whether histories are compared. They are not where all CTAs are replayed together."""
        return self.mode is not Mode.SYNCED


@dataclass(frozen=True)
class FunctionFacts:
    """The facts of a function that follow from its text. Instructions are named by where they start."""

    plan: FunctionPlan
    graph: Graph
    cuts: set[int]  # nodes at which there is a check for room
    points: dict[int, Point]
    joins: dict[tuple[int, bool], list[Join]]  # by instruction, and whether the place is after it
    loads: dict[int, int]  # the numbers of loads from tensor memory
    completions: dict[int, list[int]]  # the loads that an instruction completes
    queries: set[int]  # of launch control, for an id
    shown: dict[int, list[int]]  # the queries whose id an instruction shows
    seals: frozenset[int]
    ignored: frozenset[int]  # accesses that are compared with no others

    @functools.cached_property
    def definitions(self) -> dict[Key, list[Instruction]]:
        """The instructions that write each register."""
        return definitions(self.plan.function)


def facts_of(module: ModuleFacts, function: RecordedFunction) -> FunctionFacts:
    """Read the text of a function."""
    plan, graph = function.plan, graph_of(function.plan.function)
    points, joins = _points_and_joins(module, plan)
    loads, queries = tensor_memory.numbers_of_loads(plan), launch_control.queries_of(plan)
    return FunctionFacts(
        plan=plan,
        graph=graph,
        cuts=cut_nodes(graph),
        points=points,
        joins=joins,
        loads=loads,
        completions=tensor_memory.completions(plan, graph, loads),
        queries=queries,
        shown=launch_control.shown(graph, queries) if queries else {},
        # Leave out what only matters while a cp.async is in flight, if none can be then.
        seals=seals.seals_of(plan, graph) if module.sealing and function.mode is Mode.OFF else frozenset(),
        ignored=ignored(plan.function),
    )


def _points_and_joins(module: ModuleFacts, plan: FunctionPlan) -> tuple[dict[int, Point], dict[tuple[int, bool], list[Join]]]:
    """The points and joins of a function; all points where a lane may wait alone, because the log must hold where lanes meet.

    A point with a mask of fewer lanes counts even where all come to it: the mask may lack a lane.
    """
    points, found = points_of(plan, module.numbers)
    plan.stats.open_points = sum(point.open for point in points)
    every = any(point.open for point in points) or module.may_part or any(map(mbarriers.is_wait, plan.work))
    joins: dict[tuple[int, bool], list[Join]] = {}
    for join in found:
        joins.setdefault((join.instruction.start, join.after), []).append(join)
    return {point.instruction.start: point for point in points if every or not (point.certain and point.members.is_warp)}, joins
