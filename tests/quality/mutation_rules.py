"""What is done to one synchronisation instruction of a kernel: CHANGES, and the mutants that this makes of a text (see `mutations.py`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from consan.instrument.ptx import Edits, Immediate, Instruction, Module, parse

# -- what is done to an instruction ------------------------------------------------------------------------------------------------


def _guard(instruction: Instruction) -> str:
    predicate = instruction.predicate
    return f"@{'!' if predicate.negated else ''}{predicate.register} " if predicate else ""


def _with_last(instruction: Instruction, immediate: Callable[[int], int], operation: str) -> str:
    """The instruction with another last operand: computed here, or by `operation` into a register of its own."""
    last = instruction.operands[-1]
    head, _, _ = instruction.text.rpartition(last.text)
    if isinstance(last, Immediate):
        return f"{head}{immediate(int(last.value))};"
    return f"{{ .reg .b32 %mutated; {operation.format(last.text)}; {head}%mutated; }}"


def _removed(_: Instruction) -> str:
    return ""


def _one_more(instruction: Instruction) -> str:
    return _with_last(instruction, lambda n: n + 1, "add.u32 %mutated, {}, 1")


def _one_less(instruction: Instruction) -> str:
    return _with_last(instruction, lambda n: n - 1, "sub.u32 %mutated, {}, 1")


def _halved(instruction: Instruction) -> str:
    return _with_last(instruction, lambda n: n // 2, "shr.u32 %mutated, {}, 1")


def _true_at_once(instruction: Instruction) -> str:
    return f"{_guard(instruction)}setp.eq.u32 {instruction.operands[0].text}, 0, 0;"


def _relaxed(instruction: Instruction) -> str:
    return re.sub(r"\.(release|acquire|acq_rel)\b", ".relaxed", instruction.text, count=1)


def _narrowed(instruction: Instruction) -> str:
    if "mbarrier_init" in instruction.opcode:  # has one scope only
        return instruction.text
    return re.sub(r"\.(gpu|gl|sys|cluster)\b", ".cta", instruction.text, count=1)


Change = Callable[[Instruction], str]
REMOVED: dict[str, Change] = {"removed": _removed}
LENIENT = {**REMOVED, "+1": _one_more}
ORDER: dict[str, Change] = {"relaxed": _relaxed, "of the CTA": _narrowed}

# rule -> which opcodes, and what is done to each. The first that matches counts. What changes nothing is no mutant.
CHANGES: dict[str, tuple[str, dict[str, Change]]] = {
    "warp barrier": (r"bar(rier)?\.warp\.sync", REMOVED),
    "barrier": (r"(bar|barrier)\.(cta\.|cluster\.)?(sync|arrive|wait|red)\b", REMOVED),
    "mbarrier wait": (r"mbarrier\.(try|test)_wait\b", {"true at once": _true_at_once}),
    "expect_tx": (r"mbarrier\.(arrive\.)?expect_tx\b", {**REMOVED, "halved": _halved}),
    "arrival": (r"(cp\.async\.)?mbarrier\.arrive\b", REMOVED),
    "count": (r"mbarrier\.init\b", {"+1": _one_more, "-1": _one_less}),
    "bulk wait": (r"cp\.async\.bulk\.wait_group\b", LENIENT),
    "bulk commit": (r"cp\.async\.bulk\.commit_group\b", REMOVED),
    "copy wait": (r"cp\.async\.wait_group\b", LENIENT),
    "copy wait all": (r"cp\.async\.wait_all\b", REMOVED),
    "copy commit": (r"cp\.async\.commit_group\b", REMOVED),
    "wgmma wait": (r"wgmma\.wait_group\b", LENIENT),
    "wgmma commit": (r"wgmma\.commit_group\b", REMOVED),
    "wgmma fence": (r"wgmma\.fence\b", REMOVED),
    "tensor load wait": (r"tcgen05\.wait::ld\b", REMOVED),
    "tensor store wait": (r"tcgen05\.wait::st\b", REMOVED),
    "tensor commit": (r"tcgen05\.commit\b", REMOVED),
    "proxy fence": (r"fence\.proxy\b", REMOVED),
    "fence": (r"(fence|membar)\.", {**REMOVED, "of the CTA": _narrowed}),
    "release": (r"(atom|red|st)\.(\w+\.)*(release|acq_rel)\b", ORDER),
    "acquire": (r"ld\.(\w+\.)*acquire\b", ORDER),
}


# -- mutants -----------------------------------------------------------------------------------------------------------------------


def _rewritten(module: Module, texts: Iterable[tuple[Instruction, str]]) -> str:
    edits = Edits(module)
    for instruction, text in texts:
        edits.replace(instruction, text)
    return edits.apply()


@dataclass(frozen=True)
class Mutant:
    """One changed instruction of a kernel."""

    name: str
    instruction: Instruction = field(repr=False)
    text: str = field(repr=False)
    module: Module = field(repr=False)

    @property
    def ptx(self) -> str:
        """The kernel with the change."""
        return together([self])

    @property
    def trapped(self) -> str:
        """The kernel with a trap in this place."""
        return _rewritten(self.module, [(self.instruction, f"{_guard(self.instruction)}trap;")])

    @property
    def place(self) -> tuple[object, ...]:
        """Where it comes from: of like instructions, such as an unrolled loop has, all have one place."""
        loc = self.instruction.loc
        return self.name.rpartition(" ")[2], self.instruction.opcode, *((loc.line, loc.inlined_at) if loc else ())


def together(several: Sequence[Mutant]) -> str:
    """The kernel with several changes, of different instructions."""
    return _rewritten(several[0].module, [(mutant.instruction, mutant.text) for mutant in several])


def _rule_of(instruction: Instruction) -> str | None:
    return next((rule for rule, (opcodes, _) in CHANGES.items() if re.match(opcodes, instruction.opcode)), None)


def mutants(ptx: str) -> Iterator[Mutant]:
    """All of a kernel's, in the order of its text."""
    module = parse(ptx)
    numbers = dict.fromkeys(CHANGES, 0)
    for instruction in (i for function in module.functions for i in function.instructions()):
        rule = _rule_of(instruction)
        if rule is None:
            continue
        numbers[rule] += 1
        for change, text in CHANGES[rule][1].items():
            if text(instruction) != instruction.text:
                yield Mutant(f"{rule} {numbers[rule]} {change}", instruction, text(instruction), module)
