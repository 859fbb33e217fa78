"""The variables of a module. A session loads several forms of it; each uses the variables of the form that the program has loaded.

The program launches one form, and the driver gives the addresses of its variables. Another form (with global memory, without anything)
is made of a text in which each use of a variable is its address in the loaded module: `bound`. So there is one copy, whatever form a
launch takes and in whichever stream or graph. Constant variables are read through global memory there: a driver gives the address of the
memory behind them. `exported` makes the driver tell the address of a variable that only its module can name.

Texts of printf and assert and libdevice's tables exist in each form: nobody writes them.

Not handled (`unbindable` names them): textures and surfaces, variables that hold addresses of functions or of constant variables, calls
through pointers, uses of a constant variable that are no loads, and very large variables.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Final

from consan._errors import NotSupported
from consan.instrument.isa.addresses import with_addresses
from consan.instrument.ptx import OPAQUE, Block, Edits, Function, Instruction, Label, Module, Variable, parse

# Texts of printf and assert, and tables of libdevice: nobody writes them.
_CONSTANT: Final = re.compile(r"\$str|__unnamed_|__PRETTY_FUNCTION__|__func__|__FUNCTION__|__cudart_")
_WORD: Final = re.compile(r"[A-Za-z_$%][\w$]*")
_NUMBER: Final = re.compile(r"0[xXfFdD][\dA-Fa-f]+U?|\d[\w.]*")
_DECLARED: Final = re.compile(r"(?:^|[\s;}])\.(?:global|const|tex)\b")  # behind an opcode there would be a letter
_GENERIC: Final = "generic"  # in an initial value
_MOST_BYTES: Final = 256 << 20  # of a module's variables: each form has room for them, whether it uses it or not
_POINTERS: Final = re.compile(r"\.call(?:prototype|targets)\b")


def keeps_state(ptx: str) -> str:
    """A variable that the kernels of a module use; empty if there is none."""
    return next((name for name in _used(ptx) if not _CONSTANT.search(name)), "")


def unbindable(ptx: str) -> str:
    """Why a module cannot have another form that uses its variables; empty if it can."""
    try:
        bound(ptx, lambda name: 0)
    except NotSupported as why:
        return str(why)
    return ""


def exported(ptx: str) -> str:
    """The same module, whose variables the driver finds by their names. No line of the text moves."""
    private = dict.fromkeys(each for name, each in _bindable(ptx).items() if not each.linkage)
    if not private:
        return ptx
    edits = Edits(_parsed(ptx))
    for variable in private:
        edits.insert_before(variable, ".visible ")
    return edits.apply()


def bound(ptx: str, address_of: Callable[[str], int]) -> str:
    """The text of another form, whose variables lie at these addresses. No line of the text moves. Raises NotSupported."""
    variables = _bindable(ptx)
    return _bound(ptx, tuple((name, address_of(name)) for name in variables)) if variables else ptx


@functools.lru_cache(4)
def _parsed(ptx: str) -> Module:
    return parse(ptx)


@functools.lru_cache(8)
def _used(ptx: str) -> dict[str, Variable]:
    """The variables of a module outside shared memory that its functions name."""
    if not _DECLARED.search(ptx):  # most modules have no variable, and are not parsed here
        return {}
    module = _parsed(ptx)
    outside = (each for each in module.variables if each.space not in ("shared", "local"))
    declared = {name.name: each for each in outside for name in each.names}
    words = (word for function in module.functions for word in _WORD.findall(function.text)) if declared else ()
    return {word: declared[word] for word in dict.fromkeys(words) if word in declared}


def _bindable(ptx: str) -> dict[str, Variable]:
    """The variables that must not exist twice. Where constant memory is read through global memory, all of it is."""
    if not keeps_state(ptx):
        return {}
    return {name: each for name, each in _used(ptx).items() if each.space == "const" or not _CONSTANT.search(name)}


@functools.lru_cache(16)
def _bound(ptx: str, addresses: tuple[tuple[str, int], ...]) -> str:
    module, variables = _parsed(ptx), _bindable(ptx)
    _check_declarations(module, variables)
    edits = Edits(module)
    registers = {name: f"%consan_at_{number}" for number, (name, _) in enumerate(addresses)}
    for function in module.functions:
        named = registers.keys() & set(_WORD.findall(function.text))
        if function.body is None:
            continue
        _check_scope(function, named)
        for instruction in function.instructions():
            if (text := with_addresses(instruction, registers)) != instruction.text:
                edits.replace(instruction, text)
        first = next(each for each in function.body.statements if isinstance(each, (Instruction, Label, Block)))
        edits.insert_at(function.body.open + 1, "".join(f" .reg .b64 {registers[name]};" for name in registers if name in named))
        edits.insert_before(first, "".join(f"mov.b64 {registers[name]}, {at}; " for name, at in addresses if name in named))
    return edits.apply()


def _check_declarations(module: Module, variables: dict[str, Variable]) -> None:
    declared = {name.name: (each, name) for each in module.variables for name in each.names}
    if _POINTERS.search(module.text):
        raise NotSupported(f"its variable {next(iter(variables))} may hold the address of a function")
    for name, (variable, declaration) in declared.items():
        if name in variables and (not variable.is_module_scope or variable.type in OPAQUE):
            raise NotSupported(f"its variable {name} is a texture or a surface")
        for word in _addresses(declaration.initializer or ""):
            if word not in declared or declared[word][0].space != "global":
                raise NotSupported(f"its variable {name} holds the address of {word}")
    if sum(each.nbytes(name) for each in module.variables if each.is_module_scope for name in each.names) > _MOST_BYTES:
        raise NotSupported(f"its variable {next(iter(variables))} and others have more than {_MOST_BYTES >> 20} MiB")


def _addresses(initial: str) -> Iterator[str]:
    return (word for word in _WORD.findall(_NUMBER.sub("", initial)) if word != _GENERIC)


def _check_scope(function: Function, named: set[str]) -> None:
    """Names must mean the module's variables everywhere in a function."""
    assert function.body is not None
    inner = {name.name for each in function.body.walk() if isinstance(each, Variable) for name in each.names}
    inner |= {each.name for each in (*function.params, *function.returns)}
    if hidden := sorted(named & inner):
        raise NotSupported(f"{function.name} has a variable {hidden[0]} of its own")
