"""The shared variables that a function declares or names, by which a report names bytes of shared memory.

PTX gives symbol, size and alignment, and the size of an element unless the array is one of plain bytes, as compilers write them. The
assembler (or the virtual machine) places the variables. If the backend does not give their addresses, they are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from consan.instrument.ptx import Block, Function, Module, Variable
from consan.instrument.sites import SharedVariable


def shared_variables(module: Module, function: Function) -> tuple[SharedVariable, ...]:
    """The variables declared in a function, and those of the module that its text names."""
    inside = [*_declared(function.body)] if function.body is not None else []
    outside = [found for variable in module.variables for found in _of(variable) if _names(function.text, found.symbol)]
    return tuple(dict.fromkeys((*outside, *inside)))


def _declared(block: Block) -> Iterator[SharedVariable]:
    for statement in block.statements:
        if isinstance(statement, Variable):
            yield from _of(statement)
        elif isinstance(statement, Block):
            yield from _declared(statement)


def _of(variable: Variable) -> Iterator[SharedVariable]:
    if not variable.in_shared:
        return
    for item in variable.names:
        nbytes = variable.nbytes(item)
        yield SharedVariable(item.name, nbytes, variable.alignment, nbytes // item.elements if nbytes else 0)


def _names(text: str, symbol: str) -> bool:
    return symbol in text and re.search(rf"(?<![\w$]){re.escape(symbol)}(?![\w$])", text) is not None
