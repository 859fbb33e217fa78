"""PTX with calls of the hooks in instrument/runtime, for `--engine inline`: the passes in a fixed order over one set of edits.

The text outside the edits stays the same, byte for byte. The caller passes in the compiler of the shadow runtime.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from consan.instrument import Instrumented, Places, cluster_tier, communicates
from consan.instrument.abi.variant import Variant
from consan.instrument.functions.analyse import choose_variant, external_calls, plan_functions
from consan.instrument.hazards.registers import is_debug
from consan.instrument.hazards.static import static_findings
from consan.instrument.isa import row_of
from consan.instrument.passes import accesses, barriers, bulk, convergence, copies, frames, matrix, mbarriers, symbols, tensormaps
from consan.instrument.passes.globals import add_accesses
from consan.instrument.ptx import Edits, Module, parse
from consan.instrument.rewriting.context import Context, FunctionPlan
from consan.instrument.rewriting.delays import DECLARATION, insert_delays
from consan.instrument.rewriting.emit import CONTROL
from consan.instrument.rewriting.header import extend_header, later_target
from consan.instrument.rewriting.variables import shared_variables
from consan.instrument.runtime import RuntimeLibrary

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
    `delays`: warps sleep at some instructions, depending on the module's variable SEED (rewriting/delays.py). Raises `PtxSyntaxError`.
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
    _module_header(context, functions, target, f"{DECLARATION}\n" if delays else "")
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


def _module_header(context: Context, library: RuntimeLibrary, target: str, more: str) -> None:
    """Insert control block, runtime functions and `more` before the first item that could use them."""
    oldest = _CLUSTER_VERSION if context.variant.cluster else _OLDEST_VERSION
    text = f"\n.visible .global .align 8 .u64 {CONTROL}[4];\n{more}{library.paste(context.hooks)}\n"
    extend_header(context, oldest, target, text)
