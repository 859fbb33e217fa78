"""The state that the passes of one module share: the edits, the numbered sites, the functions that need a slot."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from consan.dataclass import dataclass
from consan.instrument.abi.bits import ADDRESS
from consan.instrument.abi.hooks import HOOKS, HookCall
from consan.instrument.abi.sizes import SITE_LIMIT
from consan.instrument.abi.variant import Variant
from consan.instrument.isa import InstructionEvent, Row, fenced_spaces
from consan.instrument.ptx import Edits, Function, Instruction, Loc, Module, Operand
from consan.instrument.rewriting.emit import HEAD, SELF, SLOT, STATE, Snippet, Unsupported, guard_text
from consan.instrument.rewriting.moved import location_of
from consan.instrument.sites import FunctionStats, InlinedCall, Place, Site, UnmodelledInstruction
from consan.instrument.waits.given_up import given_up
from consan.instrument.waits.ignored import ignored_waits

if TYPE_CHECKING:
    from consan.instrument.runtime import RuntimeLibrary

_NAME = re.compile(r"[%\w$]+")
_REGISTERS: Final = {"slot": SLOT, "state": STATE, "me": SELF}
_HEAD: Final = dict(zip(("writes", "reads", "low", "bytes", "own", "base"), (name for name, _ in HEAD), strict=True))
_RANK_SHIFT: Final = next(field.at for field in ADDRESS.fields() if field.name == "rank")


@dataclass(frozen=True)
class Work:
    """One instruction to instrument, with its row of the opcode table."""

    instruction: Instruction
    row: Row

    @cached_property
    def event(self) -> InstructionEvent:
        """The table's event of the instruction."""
        return self.row.event(self.instruction)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The modifiers of the opcode, in the manual's order."""
        return tuple(self.row.modifiers(self.instruction.parts).values())

    @cached_property
    def flags(self) -> dict[str, bool]:
        """The flags of the effect that its row makes."""
        return self.row.flags(self.instruction.parts)

    @cached_property
    def fenced(self) -> frozenset[str]:
        """The memories whose accesses the instruction orders with those of copies."""
        return fenced_spaces(self.instruction)


def operand_of(work: Work, role: str) -> Operand | None:
    """The operand with a role; None if the instruction lacks it."""
    return work.event.operand(role)


@dataclass
class FunctionPlan:
    """One function with a body: its contents, and what its prologue must provide."""

    function: Function
    stats: FunctionStats
    work: list[Work] = field(default_factory=list)
    needs_slot: bool = False
    changes_state: bool = False
    pure_waits: set[int] = field(default_factory=set)  # `start` of the mbarrier waits that can be part of a proven deadlock

    @property
    def is_entry(self) -> bool:
        """Whether the function is a kernel."""
        return self.function.kind == "entry"

    @cached_property
    def names(self) -> Counter[str]:
        """How often each name occurs in the function."""
        return Counter(_NAME.findall(self.function.text))

    @cached_property
    def ignored_waits(self) -> frozenset[int]:
        """`start` of the waits at mbarriers whose results decide nothing, or only how long a thread looks."""
        return frozenset(each.start for each in (*ignored_waits(self.function), *given_up(self.function)))


@dataclass(frozen=True)
class GlobalSides:
    """The accesses of a module's asynchronous copies to global memory, if the module has generic accesses that can conflict."""

    results: bool = False  # bulk copies write global memory
    fetches: bool = False  # bulk copies read global memory
    polls: bool = False  # and strong loads may read flags that guard the data there (--policy isa, D14)
    maps: bool = False  # tensor copies may use maps in global memory
    copies: bool = False  # cp.async reads global memory
    elsewhere: bool = False  # threads may synchronise through global memory
    published: frozenset[int] = frozenset()  # `start` of the stores that a later operation can be ordered after


@dataclass
class Context:
    """One module being rewritten."""

    module: Module
    edits: Edits
    variant: Variant
    plans: dict[str, FunctionPlan]
    library: RuntimeLibrary | None = None  # of called hooks
    inline: bool = False
    sides: GlobalSides = field(default_factory=GlobalSides)
    sites: list[Site] = field(default_factory=list)
    hooks: set[str] = field(default_factory=set)
    sources: dict[tuple[object, ...], int] = field(default_factory=dict)

    def entries(self) -> Iterator[FunctionPlan]:
        """Kernels in text order; the position is the number of the kernel on the device."""
        return (plan for plan in self.plans.values() if plan.is_entry)

    @cached_property
    def proves(self) -> bool:
        """Whether deadlocks can be proven: the module waits at mbarriers, so its threads have places to exit at."""
        return any(work.row.is_phase_wait for plan in self.plans.values() for work in plan.work)

    @cached_property
    def copies(self) -> bool:
        """Whether the module has cp.async."""
        return any(work.row.is_copy for plan in self.plans.values() for work in plan.work)

    def instrument(self, handler_of: Callable[[Work], Handler | None]) -> list[FunctionPlan]:
        """Run a pass. Returns the function of each instruction that was instrumented; what a handler does not support is noted."""
        done = []
        for plan in self.plans.values():
            for work in plan.work:
                if handler := handler_of(work):
                    try:
                        handler(self, plan, work)
                    except Unsupported:
                        self.unmodelled(plan, work.instruction)
                    else:
                        done.append(plan)
        return done

    def before(self, work: Work, snippet: Snippet, call: HookCall) -> None:
        """Insert a snippet and the call of a hook before an instruction; the call has the instruction's guard."""
        self.call(snippet, call, guard=guard_text(work.instruction))
        self.edits.insert_before(work.instruction, snippet.text())

    def after(self, work: Work, snippet: Snippet, call: HookCall) -> None:
        """The same after an instruction."""
        self.call(snippet, call, guard=guard_text(work.instruction))
        self.edits.insert_after(work.instruction, "\n" + snippet.text())

    def call(self, snippet: Snippet, call: HookCall, *, guard: str = "", result: str = STATE) -> None:
        """Call a hook (abi/hooks.py); notes that the module needs it. Slot, state and thread are the registers of that name."""
        target = call.hook
        self.hooks.add(target.symbol)
        returned = (target.result_type.replace("u", "b"), result) if target.result else None
        snippet.call(target.symbol, call.arguments(self.variant, _REGISTERS), result=returned, guard=guard)

    def located(self, snippet: Snippet, address: str, *, ranked: bool) -> str:
        """A 32-bit shared address as hooks take it. In clusters: the address in the CTA of rank 0, with the rank above it.

        `ranked`: an address of the shared::cluster window; other addresses belong to the executing CTA.
        """
        if not self.variant.cluster:
            return address
        inside, rank = snippet.register("b32"), snippet.register("b32")
        snippet.add(f"mapa.shared::cluster.u32 {inside}, {address}, 0;")
        snippet.add(f"getctarank.shared::cluster.u32 {rank}, {address};" if ranked else f"mov.u32 {rank}, %cluster_ctarank;")
        snippet.add(f"shl.b32 {rank}, {rank}, {_RANK_SHIFT};")
        snippet.add(f"or.b32 {inside}, {inside}, {rank};")
        return inside

    @property
    def window(self) -> str:
        """The window of shared memory for a generic address."""
        return "shared::cluster" if self.variant.cluster else "shared"

    def access_hook(self, snippet: Snippet, call: HookCall, guard: str) -> None:
        """Call the hook of a plain load or store, or paste it in line with the slot's geometry in registers."""
        fast = HOOKS.get(f"fast_{call.hook.name}")
        if not self.inline or fast is None:
            self.call(snippet, call, guard=guard)
            return
        arguments = [value for _, value in HookCall(fast, call.values).arguments(self.variant, _REGISTERS | _HEAD)]
        label = f"$__consan_in{len(self.sites)}"
        assert self.library is not None
        self.hooks |= set(self.library.callees[fast.symbol])
        snippet.paste(self.library.inlined(fast.symbol, arguments, label), guard, label)

    def site(self, plan: FunctionPlan, work: Work, access: str, space: str, nbytes: int, *, unused: bool = False) -> Site:
        """Number an instruction that is instrumented for what its row says."""
        return self.site_of(plan, work.instruction, work.row.family, access, space, nbytes, unused=unused)

    def site_of(
        self, plan: FunctionPlan, instruction: Instruction, family: str, access: str, space: str, nbytes: int, *, unused: bool = False
    ) -> Site:
        """Number an instruction. Beyond the largest number that a record can hold, instructions are not checked."""
        if len(self.sites) >= SITE_LIMIT:
            raise Unsupported(f"more than {SITE_LIMIT} sites")
        place = place_of(self.module, instruction)
        site = Site(
            number=len(self.sites) + 1,
            function=plan.function.name,
            opcode=instruction.opcode,
            family=family,
            access=access,
            space=space,
            bytes=nbytes,
            unused=unused,
            **vars(place),
        )
        self.sites.append(site)
        return site

    def source(self, site: Site) -> int:
        """The first of the sites passed here that belong to one source place; an unrolled loop has several."""
        place = (site.function, site.opcode, site.file, site.line, site.column, site.inlined)
        return self.sources.setdefault(place if site.file else (site.number,), site.number)

    def unmodelled(self, plan: FunctionPlan, instruction: Instruction) -> None:
        """Note an instruction that is not checked."""
        plan.stats.unmodelled.append(UnmodelledInstruction(instruction.opcode, instruction.line, plan.function.name))


Handler = Callable[[Context, FunctionPlan, Work], None]
"""Instruments one instruction, or raises `Unsupported`."""


def place_of(module: Module, instruction: Instruction) -> Place:
    """The position of an instruction, in the PTX and in the source."""
    loc = location_of(instruction)
    return Place(
        ptx_line=instruction.line,
        ptx=" ".join(instruction.text.split()),
        file=module.path(loc.file) if loc else None,
        line=loc.line if loc else None,
        column=loc.column if loc else None,
        inlined=tuple(_frames(module, loc)),
    )


def _frames(module: Module, loc: Loc | None) -> Iterator[InlinedCall]:
    while loc is not None and loc.inlined_at is not None:
        outer, symbol = loc.inlined_at, module.debug_string(loc.function_name or "")
        yield InlinedCall(symbol or None, module.path(outer.file), outer.line, outer.column)
        loc = outer
