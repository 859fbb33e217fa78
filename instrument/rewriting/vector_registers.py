"""A register variable that is a vector becomes a register for each of its elements (ISA "Vectors").

    .reg .v4 .b32 t;  mov.b32 t.x, %r1;  st.shared.v4.b32 [%r2], t;

`t.x` (or `t.r`) is `t$x` then, and `t` as an operand is `{t$x, t$y, t$z, t$w}`. No line of the text moves.

Not handled: a name that has vectors of two lengths, or is also that of something else; the module stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from consan.instrument.ptx import Block, Edits, Module, Variable, parse

_ELEMENTS: Final = {2: "xy", 4: "xyzw"}
_COLOURS: Final = str.maketrans("rgba", "xyzw")
_DECLARED: Final = re.compile(r"\.reg\s+\.v[24]\b")


def with_scalars(module: Module) -> Module:
    """The module without such variables."""
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
