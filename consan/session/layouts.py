"""Where the shared variables of a kernel and the buffers of a launch lie, for the names in its report.

The virtual machine lays variables out itself. An assembler does too, but the cubin does not contain its layout: a single variable lies
at the start, and kernels with several store the addresses themselves (instrument/passes/symbols.py).

Sources are read from the files that the `.file` lines of the PTX name; for a source without a file the adapters write a copy.
"""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from consan.reports.declarations import SourceTexts
from consan.reports.names import function_name
from consan.reports.places import LIBRARY, rank
from consan.reports.sources import read_lines
from consan.reports.variables import Argument, Layout, address_name, layout

if TYPE_CHECKING:
    from consan.instrument.sites import SharedVariable
    from consan.session.device import Device
    from consan.session.prepared import Prepared
    from consan.session.shadow import Shadow

_FILE = re.compile(r'^\s*\.file\s+\d+\s+"([^"\n]+)"', re.MULTILINE)
AddressName = Callable[[int, int], str]
_NAMED_LAUNCHES = 64  # of one kernel: after more, arguments no longer name its addresses


def layout_of(device: Device, prepared: Prepared, entry: str) -> Layout:
    """The layout of a kernel, as far as it is known."""
    return layout_with(prepared, entry, offsets_of(device, prepared, entry), sources_of(prepared))


def layout_with(prepared: Prepared, entry: str, offsets: Mapping[str, int], sources: Mapping[str, str]) -> Layout:
    """The same with known offsets of symbols, and the texts of the sources by their names."""
    variables = _distinct(_variables(prepared, entry))
    if not variables:
        return Layout()
    dynamic = [offsets[each.symbol] for each in variables if not each.bytes and each.symbol in offsets]
    return layout(variables, offsets, min(dynamic, default=None), SourceTexts(sources.values()))


def offsets_of(device: Device, prepared: Prepared, entry: str) -> Mapping[str, int]:
    """The offsets of a kernel's shared variables by symbol, as far as they are known."""
    found = _variables(prepared, entry)
    return _offsets(device, prepared, entry, found) if found else {}


def _variables(prepared: Prepared, entry: str) -> list[SharedVariable]:
    return list(dict.fromkeys(each for function in prepared.instrumented.reachable(entry) for each in function.shared))


def sources_of(prepared: Prepared) -> dict[str, str]:
    """The sources that a module names and that can be read, but for libraries': texts by name."""
    names = {name for name in _FILE.findall(prepared.plain) if rank(name, os.getcwd()) != LIBRARY}
    return {name: "\n".join(read_lines(name, {})) for name in sorted(names)}


class AddressNames:
    """The names that the launches of a session give to bytes of global memory."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, str], dict[AddressName, None]] = {}  # of the launches of a module's kernels

    def note(self, prepared: Prepared, entry: str) -> None:
        """Keep the names of the launch that is about to start."""
        names = self._of.setdefault((prepared.number, entry), {})
        if len(names) <= _NAMED_LAUNCHES:
            names[prepared.address_name] = None

    def name(self, number: int, entry: str, begin: int, end: int) -> str:
        """The name on which all launches of a kernel agree, because a record does not contain its launch; else empty."""
        names = self._of.get((number, entry), {})
        found = {name(begin, end) for name in names} if len(names) <= _NAMED_LAUNCHES else set()
        return found.pop() if len(found) == 1 else ""


def name_addresses(prepared: Prepared, entry: str, given: Sequence[Argument], parameters: int) -> GivenBuffers:
    """For `Session.address_name`: tells global addresses by the buffers that a launch with so many parameters was `given`."""
    buffers = tuple(given)
    numbers = [int(buffer.label.rsplit(" ", 1)[1]) for buffer in buffers]

    def named() -> tuple[Argument, ...]:
        names = _parameters(prepared, entry, parameters)
        return tuple(replace(buffer, name=names[number - 1]) for buffer, number in zip(buffers, numbers, strict=True))

    return GivenBuffers(named)


@dataclass(frozen=True)
class NamedBuffers:
    """An `AddressName` by known buffers. Equal buffers make equal names, so that repeated launches count as one."""

    buffers: tuple[Argument, ...]

    def __call__(self, begin: int, end: int) -> str:
        """The name of these bytes."""
        return address_name(self.buffers, begin, end)


class GivenBuffers:
    """An `AddressName` by buffers that are asked for at the first use: their names are read from the source."""

    def __init__(self, found: Callable[[], tuple[Argument, ...]]) -> None:
        self._found = found

    @functools.cached_property
    def buffers(self) -> tuple[Argument, ...]:
        """The buffers."""
        return self._found()

    def __call__(self, begin: int, end: int) -> str:
        """The name of these bytes."""
        return address_name(self.buffers, begin, end)


def _parameters(prepared: Prepared, entry: str, number: int) -> tuple[str, ...]:
    """Names of the kernel's parameters, empty where the source does not tell."""
    names = SourceTexts(sources_of(prepared).values()).parameters(function_name(entry).rsplit("::", 1)[-1])
    return names if len(names) == number else ("",) * number


def _distinct(found: Sequence[SharedVariable]) -> list[SharedVariable]:
    """The variables whose symbol only one function declares: a layout is keyed by symbol."""
    declared = Counter(variable.symbol for variable in found)
    return [variable for variable in found if declared[variable.symbol] == 1]


def _offsets(device: Device, prepared: Prepared, entry: str, found: Sequence[SharedVariable]) -> dict[str, int]:
    """Offsets by symbol, as far as they are known."""
    offsets = device.backend.shared_offsets(prepared.loaded, entry) if prepared.loaded is not None else None
    if offsets is not None:
        return offsets
    return {found[0].symbol: 0} if len(found) == 1 else told_offsets(device.shadow, prepared, entry)


def told_offsets(shadow: Shadow, prepared: Prepared, entry: str) -> dict[str, int]:
    """The offsets that the kernel itself has stored, once it has run."""
    function = next(each for each in prepared.instrumented.functions if each.name == entry)
    offsets = shadow.placed(prepared.number, function.first_placed, len(function.placed))
    return {symbol: offset for symbol, offset in zip(function.placed, offsets, strict=True) if offset is not None}
