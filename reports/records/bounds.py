"""The words for an access outside its array: its index, the index of the last element, and which index the repair must keep.

An index counts elements as wide as the access. It is given only if the array is known, and its size and the distance are whole elements.
"""

from __future__ import annotations

import re
from typing import Final

from consan.dataclass import dataclass
from consan.reports.counts import plural
from consan.reports.source.names import DIRECTLY, variable_name
from consan.reports.source.variables import DYNAMIC, Layout

_OUTSIDE: Final = re.compile(
    rf"(?:(?P<distance>[\d,]+) bytes?|{DIRECTLY}) (?P<side>past the end of|before) (?P<label>.+?)"
    r" \((?:(?P<name>\w+), )?(?P<bytes>[\d,]+) bytes?\)"
)


@dataclass(frozen=True)
class Extent:
    """An array: how a sentence calls it, where it lies, and whether `name[index]` is the source's spelling.

    `ends`: the launch ends at the first access outside it, so the furthest index is not known.
    """

    name: str
    begin: int
    bytes: int
    indexed: bool = False
    ends: bool = False


def extent_of(layout: Layout, symbol: str, shared_bytes: int, width: int) -> Extent | None:
    """The shared variable of a symbol, for accesses of a width; the dynamic memory, whatever its symbols."""
    variable = next((each for each in layout.variables if each.name == variable_name(symbol)), None) if symbol else None
    if variable is not None:
        return Extent(variable.name, variable.offset, variable.bytes, len(variable.dims) == 1 and variable.element == width)
    return Extent(DYNAMIC, layout.dynamic, shared_bytes - layout.dynamic) if symbol and layout.dynamic is not None else None


def extent_named(name: str, begin: int) -> Extent | None:
    """The buffer that an access at an address is said to be outside of (`variables.address_name`)."""
    found = _OUTSIDE.fullmatch(name)
    if found is None:
        return None
    distance, size = (int((found[group] or "0").replace(",", "")) for group in ("distance", "bytes"))
    called = f"{found['label']} ({found['name']})" if found["name"] else found["label"]
    return Extent(called, begin + distance if found["side"] == "before" else begin - distance - size, size, ends=True)


def outside(extent: Extent | None, touched: tuple[int, int], reached: tuple[int, int]) -> dict[str, str]:
    """The facts for the catalogue's words. `touched`: by one access; `reached`: by all of them. Empty if there is no index."""
    width = touched[1] - touched[0]
    if extent is None or not width:
        return {}
    counts = [(place - extent.begin) / width for place in (*touched, *reached)] + [extent.bytes / width]
    if not all(count.is_integer() for count in counts):
        return {}
    index, _, lowest, end, size = map(int, counts)
    if not size or 0 <= index < size:
        return {}
    limit, furthest = (0, lowest) if index < 0 else (size - 1, end - 1)
    edge, side, beyond = ("first", "least", "less") if index < 0 else ("last", "most", "greater")
    more = "" if not extent.ends else " or less" if index < 0 else " or more"
    unit = f"in elements of {plural(width, 'byte')} "
    index_and_limit = f"{unit}this is element {index}, and the {edge} one is {limit}"
    named = f"this is {extent.name}[{index}], and the {edge} one is {extent.name}[{limit}]"
    return {
        "element": f"; {named if extent.indexed else index_and_limit}",
        "keep": f": it must be at {side} {limit}, and reaches {furthest}{more}; correct it; or, if it is right, leave out the access"
        f" where it is {beyond}",
        "larger": "" if index < 0 else _larger(extent, furthest + 1, width),
        "more_memory": "",
    }


def _larger(extent: Extent, elements: int, width: int) -> str:
    """The size that the furthest access needs."""
    if extent.name == DYNAMIC:
        return f", or launch with at least {plural(elements * width, 'byte')} of {DYNAMIC}"
    return f", or make {extent.name} larger: at least {elements:,} elements of {plural(width, 'byte')}"
