"""A register variable that is a vector becomes a register for each of its elements (ISA "Vectors").

    .reg .v4 .b32 t;  mov.b32 t.x, %r1;  st.shared.v4.b32 [%r2], t;

`t.x` (or `t.r`) is `t$x` then, and `t` as an operand is `{t$x, t$y, t$z, t$w}`. A move of a vector becomes one for each element: of another
vector, of a special register (whose fourth element is 0), or of a number: it is the first element, and the others are 0. So ptxas assembles
it; the ISA ("mov") has examples of the second form only. No line of the text moves.

A special register in a vector (`st.shared.v2.u32 [a], {%r1, %clock}`, as Mosaic's profiler has it) is moved to a register before.

Not handled: a name that has vectors of two lengths, or is also that of something else; the module stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from consan.instrument.isa import lookup
from consan.instrument.ptx import Block, Edits, Immediate, Instruction, Module, Variable, parse
from consan.instrument.ptx.operands import flatten

_ELEMENTS: Final = {2: "xy", 4: "xyzw"}
_COLOURS: Final = str.maketrans("rgba", "xyzw")
_LENGTH: Final = re.compile(r"\.v\d")
_MOVED: Final = re.compile(r"\bmov\.v\d")
_OLD: Final = "consan$moved"
_SPECIAL: Final = ("%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid")
_WIDE: Final = ("%clock64", "%globaltimer", "%gridid", "%current_graph_exec")
_SPECIAL_NAME: Final = re.compile(
    rf"(?:{'|'.join(_SPECIAL)})\.[xyz]\b|%(?:clock|clock64|clock_hi|globaltimer|globaltimer_lo|globaltimer_hi|laneid|warpid|nwarpid|smid|nsmid"
    r"|gridid|lanemask_\w\w|cluster_ctarank|cluster_nctarank|dynamic_smem_size|total_smem_size|current_graph_exec)\b(?!\.)"
)
_SPECIAL_IN_VECTOR: Final = re.compile(rf"\{{[^{{}};]*(?:{_SPECIAL_NAME.pattern})[^{{}};]*\}}")
_READ: Final = "consan$read"
_DECLARED: Final = re.compile(r"\.reg\s+\.v[24]\b")


def with_scalars(module: Module) -> Module:
    """The module without such variables, without moves of vectors, and without special registers in other vectors."""
    return _without_special(_with_scalar_moves(_with_scalar_variables(module)))


def _without_special(module: Module) -> Module:
    if not _SPECIAL_IN_VECTOR.search(module.text):
        return module
    edits = Edits(module)
    for function in module.functions:
        for instruction in function.instructions():
            if found := _SPECIAL_IN_VECTOR.search(instruction.text):
                edits.replace(instruction, _moved_before(instruction, found))
    return parse(edits.apply(), module.name)


def _moved_before(instruction: Instruction, found: re.Match[str]) -> str:
    names = list(dict.fromkeys(_SPECIAL_NAME.findall(found[0])))
    kept = {name: f"{_READ}{number}" for number, name in enumerate(names)}
    moves = [f".reg .b{bits} {to}; mov.b{bits} {to}, {name};" for name, to in kept.items() for bits in (64 if name in _WIDE else 32,)]
    vector = _SPECIAL_NAME.sub(lambda name: kept[name[0]], found[0])
    return f"{{ {' '.join(moves)} {instruction.text[: found.start()]}{vector}{instruction.text[found.end() :]} }}"


def _with_scalar_moves(module: Module) -> Module:
    if not _MOVED.search(module.text):
        return module
    vectors = [each for function in module.functions for each in function.instructions() if _LENGTH.search(each.opcode)]
    moves = [(each, text) for each in vectors if (row := lookup(each.parts)) is not None and row.moves and (text := _moves(each))]
    edits = Edits(module)
    for instruction, text in moves:
        edits.replace(instruction, text)
    return parse(edits.apply(), module.name)


def _moves(instruction: Instruction) -> str:
    """The moves of the elements; empty if it is none of these forms."""
    targets, source = flatten(instruction.operands[0]), instruction.operands[1]
    opcode, word = _LENGTH.sub("", instruction.opcode), instruction.opcode.rpartition(".")[2]
    sources, rest = [each.text for each in flatten(source)], ["0"] * (len(targets) - 1)
    if isinstance(source, Immediate):
        sources += rest
    elif source.text in _SPECIAL:
        sources = [*(f"{source.text}.{element}" for element in "xyz"[: len(targets)]), *rest[2:]]
    if len(sources) != len(targets):
        return ""
    guard = instruction.text[: instruction.text.index(instruction.opcode)]
    pairs = [(target.text, given) for target, given in zip(targets, sources, strict=True) if target.text != "_"]
    overlap = any(given in [target for target, _ in pairs[:number]] for number, (_, given) in enumerate(pairs))
    if not overlap:
        return " ".join(f"{guard}{opcode} {target}, {given};" for target, given in pairs)
    moves = [(f"{_OLD}{number}", given) for number, (_, given) in enumerate(pairs)]
    moves += [(target, old) for (target, _), (old, _) in zip(pairs, moves, strict=True)]
    return f"{{ .reg .{word} {_OLD}<{len(pairs)}>; {' '.join(f'{guard}{opcode} {target}, {given};' for target, given in moves)} }}"


def _with_scalar_variables(module: Module) -> Module:
    if not _DECLARED.search(module.text):
        return module
    variables = [each for function in module.functions if function.body is not None for each in _variables(function.body)]
    vectors = {name: each.vector for each in variables if each.vector > 1 for name in _names(each)}
    if any(vectors.get(name, each.vector) != each.vector for each in variables for name in _names(each)):
        return module
    edits = Edits(module)
    for each in variables:
        if each.vector > 1:
            names = ", ".join(element for name in _names(each) for element in _elements(name, each.vector))
            edits.replace(each, f".reg .{each.type} {names};")
    rewritten = _rewriting(vectors)
    for function in module.functions:
        for instruction in function.instructions():
            if (text := rewritten(instruction.text)) != instruction.text:
                edits.replace(instruction, text)
    return parse(edits.apply(), module.name)


def _variables(block: Block) -> list[Variable]:
    return [each for each in block.walk() if isinstance(each, Variable) and each.space == "reg"]


def _names(variable: Variable) -> list[str]:
    """Those that it declares: `t<2>` is `t0` and `t1`."""
    counts = ((each.name, each.count) for each in variable.names)
    return [each for name, count in counts for each in ([name] if count is None else [f"{name}{number}" for number in range(count)])]


def _elements(name: str, count: int) -> list[str]:
    return [f"{name}${element}" for element in _ELEMENTS[count]]


def _rewriting(vectors: dict[str, int]) -> Callable[[str], str]:
    """How the text of an instruction is changed."""
    names = "|".join(map(re.escape, vectors))
    used = re.compile(rf"(?<![\w$%.])({names})(?:\.([xyzwrgba])(?![\w$]))?(?![\w$])")

    def replaced(match: re.Match[str]) -> str:
        name, element = match.groups()
        return f"{name}${element.translate(_COLOURS)}" if element else f"{{{', '.join(_elements(name, vectors[name]))}}}"

    return lambda text: used.sub(replaced, text)
