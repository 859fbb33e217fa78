"""The shared variables that a function declares or names: what a report calls the bytes of shared memory by.

PTX tells symbol, size and alignment, and the element's size where the array is not one of plain bytes, as compilers write them. Where the
variables lie is the assembler's choice (or the virtual machine's): a backend tells, or nobody does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from consan.instrument.ptx import Block, Function, Module, Variable
from consan.instrument.sites import SharedVariable


def shared_variables(module: Module, function: Function) -> tuple[SharedVariable, ...]:
    """Those declared inside a function, and those of the module that its text names."""
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
    if variable.space != "shared":
        return
    for item in variable.names:
        nbytes = variable.nbytes(item)
        yield SharedVariable(item.name, nbytes, variable.alignment, nbytes // item.elements if nbytes else 0)


def _names(text: str, symbol: str) -> bool:
    return symbol in text and re.search(rf"(?<![\w$]){re.escape(symbol)}(?![\w$])", text) is not None
