"""Where the shared variables of a kernel lie, for the names in its report.

The virtual machine lays variables out itself and tells. An assembler chooses, and a cubin does not tell: there only a layout is known that
leaves no choice, one variable alone or memory that is all dynamic.

Sources are read from disk where the sites of the kernel name them; the adapters keep copies there of those that have no file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from consan.reports.declarations import Source
from consan.reports.sources import read_lines
from consan.reports.variables import Layout, layout

if TYPE_CHECKING:
    from consan.instrument.sites import SharedVariable
    from consan.session import Prepared

_DYNAMIC_ALIGNMENT = 16  # of dynamic shared memory on every device


def layout_of(backend: Any, prepared: Prepared, entry: str) -> Layout:
    """The layout of a kernel, as far as it is known."""
    variables = _variables(prepared, entry)
    if not variables:
        return Layout()
    offsets = _told(backend, prepared, entry)
    offsets = _forced(variables) if offsets is None else offsets
    dynamic = [offsets[each.symbol] for each in variables if not each.bytes and each.symbol in offsets]
    return layout(variables, offsets, min(dynamic, default=None), sources_of(prepared))


def sources_of(prepared: Prepared) -> dict[str, Source]:
    """The sources of a module that can be read."""
    names = {file for site in prepared.instrumented.sites for file in (site.file, *(frame.file for frame in site.inlined)) if file}
    texts = {name: "\n".join(read_lines(name, {})) for name in sorted(names)}
    return {name: Source(text) for name, text in texts.items() if "__shared__" in text or "__global__" in text}


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
