"""The answer to `consan check FILE` without a launch: the kernels' parameters, and a command to start from.

Sizes come from the PTX, types from the declaration in the source if one is found. A kernel
declared by a macro has only PTX types. Sizes of grids and buffers are examples, since the file does not state them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from consan import late
from consan.launching.declarations import declarations
from consan.launching.entries import has_dynamic_shared
from consan.launching.types_by_name import POINTER, element_type, scalar_type

if TYPE_CHECKING:
    from consan.instrument.ptx import Function, Module, Param

_TENSOR_MAP: Final = "CUtensorMap"
_ELEMENTS: Final = 4096


def describe(module: Module, entries: Sequence[Function], source: str, words: Sequence[str]) -> Iterator[str]:
    """Lines on each kernel: its parameters, and a command to start from that begins with `words`."""
    declared = {one.name: one for one in declarations(source)}
    for entry in entries:
        one = next((declared[name] for name in _names_in(entry.name, declared)), None)
        matches = one is not None and len(one.parameters) == len(entry.params)
        texts = one.parameters if one is not None and matches else ("",) * len(entry.params)
        name = one.name if one is not None else late.names.function_name(entry.name)
        yield f"kernel {name}" + (f" ({entry.name})" if name != entry.name else "")
        for number, (parameter, text) in enumerate(zip(entry.params, texts, strict=True), 1):
            yield f"  --arg {number}: {text or f'.{parameter.type}'}  ({_bytes(parameter)})"
        yield f"  {_command(module, entry, texts, words, several=len(entries) > 1)}"


def templates(source: str) -> Iterator[str]:
    """A line for each template. The PTX contains an instance of a template only if it is named."""
    for one in declarations(source):
        if one.template:
            yield f"template {one.name}({', '.join(one.parameters)}): name an instance to compile it, such as --entry '{one.name}<...>'"


def _names_in(symbol: str, names: Iterable[str]) -> list[str]:
    """The kernel of a symbol: by its name, or by the name inside a mangled one (Itanium ABI)."""
    mangled = symbol.startswith("_Z")
    return [name for name in names if name == symbol or (mangled and f"{len(name)}{name}" in symbol)]


def _bytes(parameter: Param) -> str:
    return f"{parameter.nbytes} byte{'s' * (parameter.nbytes != 1)}"


def _command(module: Module, entry: Function, texts: Sequence[str], words: Sequence[str], *, several: bool) -> str:
    """A launch of one CTA with buffers of one size, as a start: the user changes it to fit the kernel."""
    cluster = _dimensions(entry, "reqnctapercluster")
    chosen = ["--entry", entry.name] if several else []
    launch = ["--grid", cluster or "1", "--block", _dimensions(entry, "reqntid") or _dimensions(entry, "maxntid") or "128"]
    launch += ["--cluster", cluster] if cluster else []
    launch += ["--smem", "48K"] if has_dynamic_shared(module) else []
    specs = [argument_for(parameter, text) for parameter, text in zip(entry.params, texts, strict=True)]
    return shlex.join([*words, *chosen, *launch, *(word for spec in specs for word in ("--arg", spec))])


def _dimensions(entry: Function, directive: str) -> str:
    values = entry.directives.get(directive)
    return "" if not values or isinstance(values, str) else re.sub("(,1)+$", "", ",".join(map(str, values)))


def argument_for(parameter: Param, text: str) -> str:
    """An `--arg` of the parameter's size, with the source's type where that is known."""
    pointer = POINTER.fullmatch(text)
    if pointer is not None:
        reads_only = pointer["const"] or pointer["after"]
        return f"{element_type(text)}[{_ELEMENTS}]={'random' if reads_only else 'zeros'}"
    if _TENSOR_MAP in text and parameter.nbytes == 128:
        return "tma:f16[1024,1024]=random,box=64x64,swizzle=128"
    if parameter.size is not None:
        return f"bytes={'00' * parameter.nbytes}"
    type_ = scalar_type(parameter, text)
    return f"{type_}=1" if type_ else f"f32[{_ELEMENTS}]=random"
