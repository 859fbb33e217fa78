"""The recording pass over a module: which texts there are, and what a launch needs to know of them.

A module has one text whose log holds every word, and, for threads that leave when the host says so, a compact one with only those words
that the host cannot compute (computed.py). A third text then computes the full log (expansion.py).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field, replace

from consan.dataclass import dataclass
from consan.instrument.abi.variant import Variant
from consan.instrument.collection import no_collection
from consan.instrument.functions.analyse import external_calls, plan_functions
from consan.instrument.functions.call_joins import numbers_of
from consan.instrument.hazards.registers import is_debug
from consan.instrument.hazards.static import static_findings
from consan.instrument.isa import family_of
from consan.instrument.ptx import Edits, Module, parse
from consan.instrument.record import functions, restricted
from consan.instrument.record.analyses import clusters
from consan.instrument.record.analyses.awaited import awaits_store
from consan.instrument.record.analyses.computed import Computed
from consan.instrument.record.facts import ModuleFacts, RecordedFunction
from consan.instrument.record.families import global_operands
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.record.recordable import Plans, is_unordered, may_lack_order, modes_of, reached, recorded_sides, refusals
from consan.instrument.record.recorded import NOT_RECORDED, Blocks, Expansion, Recorded, RecordedKernel
from consan.instrument.record.rewrite import KernelRewrite
from consan.instrument.record.text import expansion
from consan.instrument.record.text.header import header, placed
from consan.instrument.record.text.words import TextVariant
from consan.instrument.rewriting.context import Context, FunctionPlan
from consan.instrument.rewriting.delays import DECLARATION, insert_delays
from consan.instrument.rewriting.emit import Unsupported
from consan.instrument.rewriting.variables import shared_variables
from consan.instrument.sites import StaticFinding

COMPACT = True  # modules whose threads leave have compact logs where that can be


@no_collection()
def record(
    source: str | Module,
    name: str = "<ptx>",
    *,
    global_races: bool = False,
    isa: bool = False,
    leaves: bool = False,
    compact: bool | None = None,
    refusal: str = "",
    delays: bool = False,
) -> Recorded:
    """Rewrite a module. Kernels with something that is not recorded yet stay as they are (`Recorded.refused`).

    `global_races`: global memory is checked too. Else it is in the logs of those kernels only whose threads may synchronise through memory.
    `isa`: by the strict reading of the ISA.
    `leaves`: threads leave the kernel when the host stops its launch (leaving.py), and a block's number is stored behind its words. Else
    logs say where threads wait, for a backend that ends launches by itself. The templates do not depend on it.
    `compact`: the log has only what the host cannot compute, if that is possible; None: as `COMPACT` says.
    `refusal`: why no kernel may be recorded; empty if they may. `delays`: warps wait at synchronising instructions, as a seed says.
    """
    module = parse(source, name) if isinstance(source, str) else source
    pass_ = Pass(module, global_races and not refusal, isa, leaves, delays)
    if refusal:
        pass_ = replace(pass_, unsupported={each.name: refusal for each in module.functions if each.kind == "entry"})
    while True:
        try:
            full, kernels = pass_.write(TextVariant.FULL, {})
            break
        except _Unrecordable as kernel:
            pass_ = replace(pass_, unsupported={**pass_.unsupported, **kernel.reasons})
    if not (leaves and (COMPACT if compact is None else compact)) or full.blocks.calls:
        return full
    try:
        known = {kernel.recorder.function.number: kernel.computed_words() for kernel in kernels}
        done = pass_.write(TextVariant.COMPACT, known)[0]
    except Unsupported:
        return full
    return replace(done, expansion=Expansion(lambda: pass_.write(TextVariant.EXPANSION, known)[0]))


def waiting_together(module: Module) -> frozenset[str]:
    """The kernels whose CTAs can be checked together only, once `record` has recorded their global memory."""
    plans = plan_functions(module, recorded=True)
    synced = (name for name, (mode, _) in modes_of(plans, global_races=True).items() if mode is Mode.SYNCED and plans[name].is_entry)
    return frozenset(name for name in synced if not is_unordered(reached(plans, name)))


class _Unrecordable(Exception):  # noqa: N818 - not an error: the other kernels are recorded
    """Kernels have a part that is not recorded yet. `reasons`: why, by their names."""

    def __init__(self, reasons: dict[str, str]) -> None:
        super().__init__(reasons)
        self.reasons = reasons


def _rewritten(module: ModuleFacts, function: RecordedFunction) -> tuple[KernelRewrite, int]:
    """Rewrite a kernel or a device function. Returns the most words that a thread stores between two cuts, too."""
    try:
        kernel = KernelRewrite.of(module, function)
        return kernel, kernel.rewrite()
    except Unsupported as error:
        if module.variant is not TextVariant.FULL:
            raise
        name, plans = function.plan.function.name, module.context.plans
        reaching = (each for each, plan in plans.items() if plan.is_entry and name in reached(plans, each))
        raise _Unrecordable(dict.fromkeys(reaching, str(error))) from None


def _recorded_functions(
    module: ModuleFacts, plans: Plans, memories: Mapping[str, tuple[Mode, bool]], known: dict[int, Computed]
) -> list[RecordedFunction]:
    """The kernels and the device functions that are recorded."""
    relaxes, looped = clusters.relaxes(plans.values()), functions.called_in_loops(plans)

    def recorded(number: int, plan: FunctionPlan) -> RecordedFunction:
        name = plan.function.name
        mode, shared = memories[name]
        fences = mode is Mode.SYNCED or relaxes
        return RecordedFunction(plan, number, mode, shared, fences, name in looped and not plan.is_entry, known.get(number))

    kernels = (recorded(number, plan) for number, plan in enumerate(module.context.entries()) if plan.function.name in plans)
    return [*kernels, *(recorded(-1, plan) for name, plan in plans.items() if name in module.called)]


@dataclass(frozen=True)
class Pass:
    """Writes the texts of a module."""

    module: Module
    global_races: bool
    isa: bool
    leaves: bool
    delays: bool = False
    unsupported: dict[str, str] = field(default_factory=dict)  # kernels with a part that is not recorded yet, and why

    def write(self, variant: TextVariant, known: dict[int, Computed]) -> tuple[Recorded, list[KernelRewrite]]:
        """One of the texts. `known`: what the host can compute of each kernel."""
        plans = plan_functions(self.module, recorded=True)
        refused = refusals(plans, global_races=self.global_races, isa=self.isa)
        ordered = (
            frozenset[str]()
            if self.global_races or not refused
            else refused.keys() - refusals(plans, global_races=True, isa=self.isa).keys()
        )
        refused = {name: why for name, why in refused.items() if name not in ordered} | self.unsupported
        taken = reached(plans, *(name for name, plan in plans.items() if plan.is_entry and name not in refused))
        memories = modes_of(taken, global_races=self.global_races, ordered=ordered)
        modes = {name: mode for name, (mode, _) in memories.items()}
        for plan in plans.values():
            plan.stats.shared = shared_variables(self.module, plan.function)
            plan.stats.families |= {work.row.family for work in plan.work}
        context = Context(self.module, Edits(self.module), Variant(), plans)
        facts = self._facts(context, taken, modes, variant)
        rewritten = [_rewritten(facts, each) for each in _recorded_functions(facts, taken, memories, known)]
        kernels, words = [kernel for kernel, _ in rewritten], max((most for _, most in rewritten), default=1)
        for kernel in kernels:
            kernel.cut(words)
        if self.delays and not variant.on_host:
            insert_delays(self.module, context.edits)
        return self._recorded(facts, kernels, refused, modes, words), kernels

    def _facts(self, context: Context, plans: Plans, modes: dict[str, Mode], variant: TextVariant) -> ModuleFacts:
        """The facts that recorded functions share. `plans`, `modes`: of the kernels that are recorded, and of what they call."""
        reads, writes = recorded_sides(plans)
        global_races = {name for name, mode in modes.items() if mode is not Mode.OFF}
        called = functions.recorded_functions(plans, reads, writes, global_races=global_races)
        return ModuleFacts(
            context=context,
            templates=[],
            variant=variant,
            leaves=self.leaves,
            reads=reads,
            writes=writes,
            sealing=writes and not reads and not any(map(global_operands.fetches, plans.values())),
            called=called,
            numbers=numbers_of(plans),
            may_part=functions.may_part(plans, called),
        )

    @functools.cached_property
    def _hazards(self) -> tuple[StaticFinding, ...]:
        """They are the same for all texts."""
        functions = self.module.functions
        return static_findings(self.module, {family_of(each) for function in functions for each in function.instructions()})

    @functools.cached_property
    def _refused_alone(self) -> dict[str, str]:
        """The kernels that are not recorded without global memory."""
        return refusals(plan_functions(self.module, recorded=True), isa=self.isa)

    def _recorded(
        self, facts: ModuleFacts, kernels: list[KernelRewrite], refused: dict[str, str], modes: dict[str, Mode], words: int
    ) -> Recorded:
        context, variant = facts.context, facts.variant if kernels else TextVariant.FULL
        plans, more = context.plans, expansion.variable() if variant.on_host else f"{DECLARATION}\n" * self.delays
        names = {plan.function.name for plan in context.entries()}
        target = header(context, more)  # before the text is made
        text = placed(self.module, context.edits.apply())
        return Recorded(
            target=target,
            ptx=expansion.without_clusters(text) if variant.on_host else text,
            sites=tuple(context.sites),
            functions=tuple(plan.stats for plan in plans.values()),
            kernels=self._kernels(context, kernels, modes, compact=variant is TextVariant.COMPACT),
            blocks=_blocks(facts, kernels, words, modes),
            lines=tuple(context.edits.line_map()),
            external=tuple(sorted(set().union(*(external_calls(plan, plans) for plan in plans.values()), set()))),
            hazards=self._hazards,
            debug=is_debug(self.module),
            prunes=self.global_races and not variant.on_host and not names <= self._refused_alone.keys(),
            refused=refused,
            isa=self.isa,
            leaves=self.leaves,
        )

    def _kernels(
        self, context: Context, rewritten: list[KernelRewrite], modes: dict[str, Mode], *, compact: bool
    ) -> tuple[RecordedKernel, ...]:
        """How each kernel of the module is recorded. `compact`: logs have only what the host cannot compute."""
        plans, taken = context.plans, {kernel.name: kernel for kernel in rewritten}
        polling = {kernel.name for kernel in rewritten if kernel.recorder.polled}
        global_races = (plan for name, plan in plans.items() if self.global_races or modes.get(name, Mode.OFF) is not Mode.OFF)
        polling |= {plan.function.name for plan in global_races if awaits_store(plan.function, weak=True)}

        def kernel(plan: FunctionPlan) -> RecordedKernel:
            name = plan.function.name
            functions, found = reached(plans, name), taken.get(name)
            return RecordedKernel(
                name=name,
                mode=modes.get(name, Mode.ALONE if self.global_races else Mode.OFF),
                cluster=clusters.required(plan),
                silent=found is not None and found.is_silent,
                polls=not polling.isdisjoint(functions),
                loops=found is not None and bool(found.recorder.facts.cuts),
                unordered=is_unordered(functions),
                may_lack_order=may_lack_order(functions),
                compact=(found.compact() if found else NOT_RECORDED) if compact else None,
            )

        return tuple(map(kernel, context.entries()))


def _blocks(facts: ModuleFacts, kernels: list[KernelRewrite], words: int, modes: dict[str, Mode]) -> Blocks:
    """The blocks of the logs. `words`: the most that a thread stores between two cuts."""
    calls = any(not kernel.recorder.plan.is_entry for kernel in kernels)
    loops = calls or any(kernel.recorder.facts.cuts and not kernel.bounded for kernel in kernels)
    plans = {name: plan for name, plan in facts.context.plans.items() if name in modes}
    return Blocks(tuple(facts.templates), words, loops, calls, restricted.takes_several_replays(plans, modes))
