"""PTX in, instrumented PTX and a site table out.

`instrument` parses a module, decides what to check (opcode table), and runs the passes in a fixed order over one set of edits.
The text outside the edits stays the same, byte for byte. Nothing here needs a GPU, a driver or a toolchain: the caller passes in the
compiler of the shadow runtime.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from consan.instrument.isa import may_wait, row_of
from consan.instrument.passes import accesses, barriers, bulk, convergence, copies, frames, matrix, mbarriers, symbols, tensormaps
from consan.instrument.passes.analyse import choose_variant, external_calls, plan_functions
from consan.instrument.passes.context import Context, FunctionPlan, place_of
from consan.instrument.passes.delays import DECLARATION, SEED, insert_delays
from consan.instrument.passes.emit import CONTROL
from consan.instrument.passes.globals import add_accesses
from consan.instrument.passes.header import extend_header, later_target
from consan.instrument.passes.registers import is_debug
from consan.instrument.passes.static import static_findings
from consan.instrument.passes.variables import shared_variables
from consan.instrument.ptx import Edits, Instruction, Module, parse
from consan.instrument.runtime import RuntimeLibrary, Variant
from consan.instrument.sites import FunctionStats, Place, Site, StaticFinding

__all__ = ["CONTROL", "SEED", "Instrumented", "Library", "cluster_tier", "communicates", "instrument", "places_of"]

Library = Callable[[Variant, str], RuntimeLibrary]
"""(variant, target such as "sm_90a") -> the shadow runtime's functions."""

_OLDEST_VERSION, _OLDEST_TARGET = (7, 6), "sm_80"  # %reserved_smem_offset_*
_CLUSTER_VERSION, _CLUSTER_TARGET = (7, 8), "sm_90"
_INLINE_LIMIT = 450_000  # characters of pasted bodies; beyond it assembly time grows faster than the kernel gains
_PASSES: tuple[Callable[[Context], None], ...] = (
    accesses.run,
    copies.run,
    barriers.run,
    mbarriers.run,
    bulk.run,
    matrix.run,
    tensormaps.run,
    frames.run,
    symbols.run,
    convergence.run,
)


@dataclass(frozen=True)
class Instrumented:
    """The result: text to assemble, the meaning of its site numbers, and what is covered."""

    ptx: str
    target: str
    sites: tuple[Site, ...]
    functions: tuple[FunctionStats, ...]
    entries: tuple[str, ...]
    variant: Variant
    external: tuple[str, ...]
    lines: Sequence[int]
    places: Places
    hazards: tuple[StaticFinding, ...] = ()  # static findings on registers: they hold for each launch of their kernels
    debug: bool = False  # a debug build: its registers were not checked
    communicates: bool = False  # CTAs may wait for each other through global memory

    @property
    def module(self) -> Module:
        """The original text, parsed at most once."""
        return self.places.module

    def original(self, line: int, opcode: str = "") -> Place | None:
        """The instruction at a line of the original text, given a line of the instrumented text.

        `opcode`: that of the instruction, for lines with several.
        """
        return self.places.named(self.lines[line - 1], opcode) if 1 <= line <= len(self.lines) else None

    def reachable(self, entry: str) -> list[FunctionStats]:
        """The functions that a kernel can call, itself first. An indirect call can reach all device functions."""
        table = {f.name: f for f in self.functions}
        pending, found = [entry], dict[str, FunctionStats]()
        while pending:
            name = pending.pop()
            names = [f.name for f in self.functions if f.kind == "func"] if name == "" else [name]
            for each in names:
                if each in table and each not in found:
                    found[each] = table[each]
                    pending += sorted(table[each].calls)
        return list(found.values())


def instrument(
    text: str | Module,
    *,
    library: Library,
    name: str = "<ptx>",
    base: Variant | None = None,
    inline: bool = False,
    delays: bool = False,
) -> Instrumented:
    """Rewrite one module.

    `inline` pastes the bodies of the most frequent hooks in line if the module is small enough. That is faster on a GPU and useless on the
    virtual machine. `library` gives the shadow runtime for a variant and a target (`consan.session.runtime_library`).
    `delays`: warps sleep at some instructions, depending on the module's variable SEED (passes/delays.py). Raises `PtxSyntaxError`.
    """
    module = parse(text, name) if isinstance(text, str) else text
    plans = plan_functions(module)
    _note_families(plans)
    for plan in plans.values():
        plan.stats.shared = shared_variables(module, plan.function)
    base = base or Variant()
    fixed = max((math.prod(plan.function.required_cluster) for plan in plans.values()), default=1)
    variant = choose_variant(plans.values(), replace(base, cluster=max(base.cluster, cluster_tier(fixed))))
    waits_elsewhere = communicates(module)
    sides = add_accesses(plans, waits_elsewhere, variant.isa)
    target = later_target(module.target, _CLUSTER_TARGET if variant.cluster else _OLDEST_TARGET)
    functions = library(variant, target)
    inline = inline and not variant.cluster and accesses.inline_size(plans.values(), functions) <= _INLINE_LIMIT
    context = Context(module, Edits(module), variant, plans, functions, inline, sides)
    for run in _PASSES:
        run(context)
    if delays:
        insert_delays(module, context.edits)
    _module_header(context, target, f"{DECLARATION}\n" if delays else "")
    return Instrumented(
        ptx=context.edits.apply(),
        target=target,
        sites=tuple(context.sites),
        functions=tuple(plan.stats for plan in plans.values()),
        entries=tuple(plan.function.name for plan in context.entries()),
        variant=variant,
        lines=tuple(context.edits.line_map()),
        places=Places(lambda: module),
        hazards=static_findings(module, {family for plan in plans.values() for family in plan.stats.families}),
        debug=is_debug(module),
        communicates=waits_elsewhere,
        external=tuple(sorted(set().union(*(external_calls(plan, plans) for plan in plans.values()), set()))),
    )


def _note_families(plans: Mapping[str, FunctionPlan]) -> None:
    for plan in plans.values():
        assert plan.function.body is not None
        plan.stats.families |= {work.row.family for work in plan.work}
        if any(row_of(instruction).is_of_clusters for instruction in plan.function.body.instructions()):
            plan.stats.families.add("cluster-address")


def cluster_tier(ctas: int) -> int:
    """The size class of the runtime for clusters of `ctas` CTAs: 0 without clusters, else a power of two."""
    return 0 if ctas <= 1 else 1 << (ctas - 1).bit_length()


def _module_header(context: Context, target: str, more: str) -> None:
    """Insert control block, runtime functions and `more` before the first item that could use them."""
    oldest = _CLUSTER_VERSION if context.variant.cluster else _OLDEST_VERSION
    text = f"\n.visible .global .align 8 .u64 {CONTROL}[4];\n{more}{context.library.paste(context.hooks)}\n"
    extend_header(context, oldest, target, text)


class Places(Mapping[int, Place]):
    """Instructions of the original text by line, computed only when a fault needs a place."""

    def __init__(self, module: Callable[[], Module]) -> None:
        self._read = module

    @cached_property
    def module(self) -> Module:
        """The text, read on the first request."""
        return self._read()

    @cached_property
    def _lines(self) -> dict[int, list[Instruction]]:
        found: dict[int, list[Instruction]] = {}
        for body in (f.body for f in self.module.functions if f.body is not None):
            for instruction in body.instructions():
                found.setdefault(instruction.line, []).append(instruction)
        return found

    def named(self, line: int, opcode: str) -> Place | None:
        """The first instruction of a line with this opcode, or else the line's last one."""
        there = self._lines.get(line, [])
        chosen = next((each for each in there if each.opcode == opcode), there[-1] if there else None)
        return place_of(self.module, chosen) if chosen is not None else None

    def __getitem__(self, line: int) -> Place:
        """The instruction at which a thread at a line waits; else the line's last one."""
        there = self._lines[line]
        return place_of(self.module, next(filter(may_wait, there), there[-1]))

    def __iter__(self) -> Iterator[int]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


def communicates(module: Module) -> bool:
    """Whether CTAs may wait for each other through global memory. Then all CTAs that were resident must stay resident."""
    for function in module.functions:
        for instruction in function.body.instructions() if function.body else ():
            row = row_of(instruction)
            if (row.is_load or row.is_atomic) and (access := row.describe(instruction)).is_strong and access.may_be_global:
                return True
    return False
