"""Short branches as guards: `@p bra L; ...; L:` around a strong access becomes the same instructions under `@!p`.

Who publishes or reads a word is then seen at one place, to which all threads come (published.py, broadcasts.py). A value that only the
skipped instructions use is computed without the guard. Lines stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from consan.instrument.control_flow import BasicBlock, Key, PathStep, definitions, graph_of, guard_of, keys_read, written
from consan.instrument.control_flow.paths import inverse
from consan.instrument.isa import row_of
from consan.instrument.ptx import Function, Instruction, Label, Module, Symbol, parse
from consan.prove.kernel import is_strong

_Edit = tuple[int, int, str]
"""The text from one place to another is replaced."""


def with_guards(function: Function, module: Module) -> tuple[Function, Module]:
    """The kernel and its module with guards in place of such branches; the same objects, if it has none."""
    edits = list(_edits(function))
    if not edits:
        return function, module
    text = module.source.text
    for begin, end, new in sorted(edits, reverse=True):
        text = text[:begin] + new + text[end:]
    made = parse(text, module.source.name)
    return next(each for each in made.functions if each.name == function.name and each.body is not None), made


def _edits(function: Function) -> Iterator[_Edit]:
    graph = graph_of(function)
    before = inverse(graph.successors)
    for number, node in enumerate(graph.nodes):
        if node.guard is None or node.falls is None or set(before[node.falls]) != {number}:
            continue
        skipped = graph.nodes[node.falls]
        if len(node.taken) == 1 and skipped.guard is None and skipped.successors == node.taken and _may_have_guards(skipped, node):
            yield from _guarded(node.steps[-1].instruction, skipped.steps, function)
            if set(before[node.taken[0]]) == {number, node.falls}:
                yield from _unlabelled(node.steps[-1].instruction, function)


def _may_have_guards(skipped: BasicBlock, branch: BasicBlock) -> bool:
    """Whether each instruction does what it does for its thread alone, and one is a strong access."""
    assert branch.guard is not None
    own = [step.instruction for step in skipped.steps]
    if any(step.guard is not None or branch.guard.register in written(step.instruction) for step in skipped.steps):
        return False
    return any(map(is_strong, own)) and all(map(_is_alone, own))


def _is_alone(instruction: Instruction) -> bool:
    row = row_of(instruction)
    return row.is_ordinary or row.is_arithmetic or row.is_of_addresses or row.is_fence or row.branches


def _guarded(branch: Instruction, steps: Sequence[PathStep], function: Function) -> Iterator[_Edit]:
    """The edits for one branch."""
    guard = branch.predicate
    assert guard is not None
    yield branch.start, branch.end, ""
    word = f"@{'' if guard.negated else '!'}{guard.register} "
    own = {step.instruction.start for step in steps}
    for step in steps:
        instruction = step.instruction
        if not row_of(instruction).branches and not _is_own(instruction, own, function):
            yield instruction.start, instruction.start, word


def _unlabelled(branch: Instruction, function: Function) -> Iterator[_Edit]:
    """The label that a branch alone names goes, so that no node ends there."""
    assert function.body is not None
    named = {each.name for each in branch.operands if isinstance(each, Symbol)}
    labels = [each for each in function.body.walk() if isinstance(each, Label) and each.name in named]
    if len(labels) == 1:  # else blocks have labels of one name
        yield labels[0].start, labels[0].end, ""


def _is_own(instruction: Instruction, own: set[int], function: Function) -> bool:
    """Whether an instruction only computes what some instructions alone read."""
    if row_of(instruction).accesses(instruction):
        return False
    made = set[Key](written(instruction))
    alone = all(len(definitions(function)[key]) == 1 for key in made)
    return alone and all(each.start in own for each in function.instructions() if made & _needed(each))


def _needed(instruction: Instruction) -> set[Key]:
    guard = guard_of(instruction)
    return {*keys_read(instruction), *(() if guard is None else (guard.register,))}
