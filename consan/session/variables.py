"""Which modules may be recorded whose launches may also take called hooks: the two forms are two modules, with variables of their own.

A variable that its kernels use is state, but for texts of printf and assert and libdevice's tables. A module with state has one form only,
the one with called hooks.

A table is a variable of the module alone, with numbers as initial values, which no kernel writes and of which none passes the address
on. The program may write to it. A caller that copies it from one form to the other (`consan/native/launches.py`) may have both.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from consan.instrument.isa import family_of
from consan.instrument.passes.flow import written
from consan.instrument.ptx import Function, Module, Variable, parse

# Texts of printf and assert, and tables of libdevice: nobody writes them.
_CONSTANT: Final = re.compile(r"\$str|__unnamed_|__PRETTY_FUNCTION__|__func__|__FUNCTION__|__cudart_")
_WORD: Final = re.compile(r"[A-Za-z_$%][\w$]*")
_DECLARED: Final = re.compile(r"(?:^|[\s;}])\.(?:global|const|tex)\b")  # behind an opcode there would be a letter
_NUMBERS: Final = re.compile(r"[\s{},\dA-Fa-fxXUL.+-]+")  # also floating-point ones
# Results of loads are no addresses in the variable, those of arithmetic may be. Whatever else has such an address as an operand may
# write there, or give it to others.
_LOADS, _COMPUTES = "load", "arithmetic"


def keeps_state(ptx: str, *, copies: bool = False) -> str:
    """A variable of a module that must not exist twice; empty if there is none. `copies`: the caller copies tables."""
    state, tables = _variables(ptx)
    return next(iter(state if copies else (*state, *tables)), "")


def tables_of(ptx: str) -> dict[str, int]:
    """The bytes of each table of a module that its kernels use."""
    _, tables = _variables(ptx)
    return tables


@functools.lru_cache(8)
def _variables(ptx: str) -> tuple[tuple[str, ...], dict[str, int]]:
    """The names of state, and the tables."""
    if not _DECLARED.search(ptx):  # most modules have no variable, and are not parsed here
        return (), {}
    module = parse(ptx)
    outside = (each for each in module.variables if each.space not in ("shared", "local"))
    declared = {name.name: each for each in outside for name in each.names if not _CONSTANT.search(name.name)}
    used = [word for function in module.functions for word in _WORD.findall(function.text) if word in declared] if declared else []
    names = dict.fromkeys(used)
    tables = {name: _bytes_of(declared[name], name) for name in names if _is_table(module, declared[name], name)}
    return tuple(name for name in names if name not in tables), tables


def _bytes_of(variable: Variable, name: str) -> int:
    return next(variable.nbytes(each) for each in variable.names if each.name == name)


def _is_table(module: Module, variable: Variable, name: str) -> bool:
    initial = next(each.initializer for each in variable.names if each.name == name)
    private = variable.linkage == "" and initial is not None and _NUMBERS.fullmatch(initial) is not None
    return private and all(_only_read(function, name) for function in module.functions if name in function.text)


def _only_read(function: Function, name: str) -> bool:
    """Whether a function does nothing with the address of a variable but compute with it and load from there."""
    if function.body is None or name in function.text[: function.body.start - function.start]:
        return False
    using = [(each, frozenset(_WORD.findall(each.text))) for each in function.instructions()]
    addresses, before = {name}, 0
    while len(addresses) > before:  # until no further register may hold such an address
        before = len(addresses)
        for instruction, words in using:
            family = family_of(instruction)
            if family == _LOADS or addresses.isdisjoint(words):
                continue
            if family != _COMPUTES:
                return False
            addresses |= {register for _, register in written(instruction)}
    return True
