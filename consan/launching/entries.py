"""The kernel that is to be launched: by its name in PTX or C++, and whether the arguments fit it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from consan import late
from consan._errors import UsageError, did_you_mean
from consan.files import read_file
from consan.launching.arguments import ArgSpec
from consan.launching.declarations import declarations
from consan.launching.signature import check_arguments
from consan.launching.source import is_cuda
from consan.reports.source.names import function_name

if TYPE_CHECKING:
    from consan.instrument.ptx import Function, Module


def choose_entry(module: Module, wanted: str | None, file: str) -> Function:
    """The kernel to launch: by name, mangled or not, or the only one in the file."""
    entries = entries_of(module)
    names = ", ".join(function.name for function in entries)
    if not entries:
        raise UsageError(f"{file} has no kernel{_templates(file)}")
    if wanted is None:
        if len(entries) > 1:
            raise UsageError(f"{file} has {len(entries)} kernels, choose one with --entry: {names}")
        return entries[0]
    found = [function for function in entries if function.name == wanted]
    found = found or [function for function in entries if _is_mangled(function.name, wanted)]
    if len(found) != 1:
        problem = "several kernels" if found else "no kernel"
        hint = "" if found else _nearest(wanted, entries)
        raise UsageError(f"--entry: {file} has {problem} called '{wanted}'; its kernels: {names}{hint}")
    return found[0]


def entries_of(module: Module) -> list[Function]:
    """The kernels of a module."""
    return [function for function in module.functions if function.kind == "entry" and not function.is_declaration]


def has_dynamic_shared(module: Module) -> bool:
    """Whether a launch chooses the size of a shared array."""
    variables = [item for item in module.items if isinstance(item, late.ptx.Variable) and item.in_shared]
    return any(variable.nbytes(name) == 0 for variable in variables for name in variable.names)


def _nearest(wanted: str, entries: Sequence[Function]) -> str:
    return did_you_mean(wanted, (function_name(entry.name).rpartition("::")[2] for entry in entries))


def _templates(file: str) -> str:
    """The advice for a .cu file whose kernels are all templates without an instance."""
    if not is_cuda(file) or not os.path.isfile(file):
        return ""
    names = [one.name for one in declarations(read_file(file)) if one.template]
    return f"; an instance of a template has to be named, such as --entry '{names[0]}<...>'" if names else ""


def _is_mangled(symbol: str, name: str) -> bool:
    """Whether a C++ symbol is this function, in any namespace and with any template arguments (Itanium ABI, source names)."""
    return symbol.startswith("_Z") and f"{len(name)}{name}" in symbol


def check_parameters(entry: Function, specs: Sequence[ArgSpec], file: str) -> None:
    """Check the number, type and size of the arguments."""
    sizes = [parameter.nbytes for parameter in entry.params]
    if len(sizes) != len(specs):
        listed = f" ({', '.join(map(str, sizes))} bytes)" if sizes else ""
        raise UsageError(f"{entry.name} takes {_arguments(len(sizes))}{listed}, {len(specs)} given with --arg")
    check_arguments(entry, specs, (lambda: read_file(file)) if is_cuda(file) else None)
    for index, (size, spec) in enumerate(zip(sizes, specs, strict=True), 1):
        if size != spec.parameter_bytes:
            raise UsageError(f"--arg {index} '{spec.text}': is {spec.parameter_bytes} bytes, {entry.name} expects {size} there")


def _arguments(number: int) -> str:
    return f"{number or 'no'} argument{'s' * (number != 1)}"
