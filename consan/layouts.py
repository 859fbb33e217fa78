"""Where the shared variables of a kernel and the buffers of a launch lie, for the names in its report.

The virtual machine lays variables out itself and tells. An assembler chooses, and a cubin does not tell: there only a layout is known that
leaves no choice, one variable alone or memory that is all dynamic.

Sources are read from disk where the `.file` lines of the PTX name them; the adapters keep copies there of those that have no file.
"""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from consan.reports.declarations import Source
from consan.reports.names import function_name
from consan.reports.places import LIBRARY, rank
from consan.reports.sources import read_lines
from consan.reports.variables import Argument, Layout, address_name, layout

if TYPE_CHECKING:
    from consan.instrument.sites import SharedVariable
    from consan.session import Prepared

_FILE = re.compile(r'^\s*\.file\s+\d+\s+"([^"\n]+)"', re.MULTILINE)
AddressName = Callable[[int, int], str]
_POINTER = 8  # bytes
_DYNAMIC_ALIGNMENT = 16  # of dynamic shared memory on every device


def layout_of(backend: Any, prepared: Prepared, entry: str) -> Layout:
    """The layout of a kernel, as far as it is known."""
    variables = _variables(prepared, entry)
    if not variables:
        return Layout()
    offsets = _told(backend, prepared, entry)
    offsets = _forced(variables) if offsets is None else offsets
    dynamic = [offsets[each.symbol] for each in variables if not each.bytes and each.symbol in offsets]
    return layout(variables, offsets, min(dynamic, default=None), source_of(prepared))


def source_of(prepared: Prepared) -> Source:
    """The sources that a module names and that can be read, but for libraries'."""
    names = {name for name in _FILE.findall(prepared.plain) if rank(name, os.getcwd()) != LIBRARY}
    return Source("\n".join(read_lines(name, {})) for name in sorted(names))


def name_addresses(prepared: Prepared, entry: str, label: str, given: Sequence[Any], values: Sequence[bytes]) -> AddressName:
    """For `Session.address_name`: tells global addresses by the buffers a launch was `given`, whose addresses are among the `values`."""
    buffers = [
        Argument(f"{label} {number}", int.from_bytes(value, "little"), array.nbytes)
        for number, (array, value) in enumerate(zip(given, values, strict=True), 1)
        if len(value) == _POINTER and _is_buffer(array)
    ]
    numbers = [int(buffer.label.rsplit(" ", 1)[1]) for buffer in buffers]

    @functools.cache
    def named() -> tuple[Argument, ...]:
        names = _parameters(prepared, entry, len(values))
        return tuple(replace(buffer, name=names[number - 1]) for buffer, number in zip(buffers, numbers, strict=True))

    return lambda begin, end: address_name(named(), begin, end)


def _is_buffer(value: Any) -> bool:
    return hasattr(value, "nbytes") and bool(getattr(value, "ndim", 0))


def _parameters(prepared: Prepared, entry: str, number: int) -> tuple[str, ...]:
    """Names of the kernel's parameters, empty where the source does not tell."""
    names = source_of(prepared).parameters(function_name(entry).rsplit("::", 1)[-1])
    return names if len(names) == number else ("",) * number


def _variables(prepared: Prepared, entry: str) -> list[SharedVariable]:
    """Those that the kernel can reach; of one symbol in several functions none, since a layout goes by symbols."""
    found = dict.fromkeys(each for function in prepared.instrumented.reachable(entry) for each in function.shared)
    declared = Counter(variable.symbol for variable in found)
    return [variable for variable in found if declared[variable.symbol] == 1]


def _told(backend: Any, prepared: Prepared, entry: str) -> dict[str, int] | None:
    tell = getattr(backend, "shared_offsets", None)
    return None if tell is None or prepared.loaded is None else tell(prepared.loaded, entry)


def _forced(variables: Sequence[SharedVariable]) -> dict[str, int]:
    static = [variable for variable in variables if variable.bytes]
    dynamic = [variable for variable in variables if not variable.bytes]
    if len(static) > 1:
        return {}
    end = sum(variable.bytes for variable in static)
    aligned = end % max((_DYNAMIC_ALIGNMENT, *(variable.align for variable in dynamic))) == 0
    return {variable.symbol: 0 for variable in static} | ({variable.symbol: end for variable in dynamic} if aligned else {})
