"""The layouts of a kernel's shared variables and of a launch's buffers, for the names in its report.

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
from dataclasses import field, replace
from typing import TYPE_CHECKING

from consan import late
from consan.dataclass import dataclass
from consan.reports.source.declarations import SourceTexts
from consan.reports.source.names import function_name, variable_name
from consan.reports.source.places import LIBRARY, rank
from consan.reports.source.sources import read_lines
from consan.reports.source.variables import Argument, Layout, address_name, layout, names_said

if TYPE_CHECKING:
    from consan.instrument.ptx import Function
    from consan.instrument.sites import SharedVariable
    from consan.ranges.forms import ParameterWord
    from consan.session.modules.device import Device
    from consan.session.modules.prepared import Prepared
    from consan.session.modules.shadow import Shadow

_FILE = re.compile(r'^\s*\.file\s+\d+\s+"([^"\n]+)"', re.MULTILINE)
AddressName = Callable[[int, int], str]
_GENERATED = re.compile(r"^_(?:raw|p)_(?=\w)")  # before the names of arrays in the kernels that CuPy writes, and in the stand-in's
_MOST_MEMORY = 1 << 40  # bytes of a device: a pointer that is further below an address is a number, or another memory's
_NAMED_LAUNCHES = 64  # of one kernel: after more, arguments no longer name its addresses


def layout_of(device: Device, prepared: Prepared, entry: str) -> Layout:
    """The layout of a kernel, as far as it is known."""
    return layout_with(prepared, entry, offsets_of(device, prepared, entry), sources_of(prepared))


def layout_with(prepared: Prepared, entry: str, offsets: Mapping[str, int], sources: Mapping[str, str]) -> Layout:
    """The same with known offsets of symbols, and the texts of the sources by their names."""
    variables = _distinct(_variables(prepared, entry))
    if not variables:
        return Layout()
    dynamic = min((offsets[each.symbol] for each in variables if not each.bytes and each.symbol in offsets), default=None)
    found = layout(variables, offsets, dynamic, SourceTexts(sources.values()), function_name(entry))
    said = [each.at(dynamic) for each in names_said(prepared.plain, entry)] if dynamic is not None else []
    return replace(found, variables=(*found.variables, *said))


def offsets_of(device: Device, prepared: Prepared, entry: str) -> Mapping[str, int]:
    """The offsets of a kernel's shared variables by symbol, as far as they are known."""
    found = _variables(prepared, entry)
    return _offsets(device, prepared, entry, found) if found else {}


def variable_name_of(device: Device, prepared: Prepared, begin: int, end: int) -> str:
    """Names bytes of the module's variables in global and constant memory; empty for other bytes, and where the driver gives no address."""
    if prepared.handle is None:
        return ""
    found = [Argument(variable_name(name), at, size) for name, at, size in prepared.variables(device.backend, "global", "const")]
    return next((each.place(begin, end) for each in found if each.begin <= begin < each.begin + each.bytes), "")


def _variables(prepared: Prepared, entry: str) -> list[SharedVariable]:
    return list(dict.fromkeys(each for function in prepared.instrumented.reachable(entry) for each in function.shared))


def sources_of(prepared: Prepared) -> dict[str, str]:
    """The sources that a module names and that can be read, but for libraries': texts by name."""
    names = {name for name in _FILE.findall(prepared.plain) if rank(name, os.getcwd()) != LIBRARY}
    return {name: "\n".join(read_lines(name)) for name in sorted(names)}


@dataclass(frozen=True)
class KernelParameters:
    """The parameters of a kernel of a module with a number, read when a finding names one."""

    number: int
    entry: str
    prepared: Prepared = field(compare=False, repr=False)

    @classmethod
    def of(cls, prepared: Prepared, entry: str) -> KernelParameters:
        """Those of a kernel."""
        return cls(prepared.number, entry, prepared)

    @functools.cached_property
    def _function(self) -> Function:
        return next(each for each in self.prepared.instrumented.module.functions if each.name == self.entry and each.body is not None)

    @functools.cached_property
    def _names(self) -> tuple[str, ...]:
        """Empty where the source does not say."""
        names = SourceTexts(sources_of(self.prepared).values()).parameters(function_name(self.entry).rsplit("::", 1)[-1])
        return tuple(_GENERATED.sub("", name) for name in names) if len(names) == len(self._function.params) else ()

    def name(self, number: int) -> str:
        """The name of a parameter, from one on; empty where the source does not have it."""
        return self._names[number - 1] if number <= len(self._names) else ""

    @functools.cached_property
    def words(self) -> Mapping[ParameterWord, int]:
        """The words that addresses follow from, with the bytes of the elements there."""
        return late.pointed.pointed_words(self._function)


class AddressNames:
    """The names that the launches of a session give to bytes of global memory."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, str], dict[AddressName, None]] = {}  # of the launches of a module's kernels
        self._kernels: dict[tuple[int, str], KernelParameters] = {}

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

    def parameters(self, prepared: Prepared, entry: str) -> KernelParameters:
        """The parameters of a kernel."""
        return self._kernels.setdefault((prepared.number, entry), KernelParameters.of(prepared, entry))

    def note_buffers(self, prepared: Prepared, entry: str, given: Sequence[Argument]) -> None:
        """The same for a launch of a framework, by the buffers among its arguments."""
        prepared.address_name = NamedBuffers(tuple(given), self.parameters(prepared, entry))
        self.note(prepared, entry)

    def note_parameters(self, prepared: Prepared, entry: str, args: Callable[[], Sequence[bytes] | None]) -> None:
        """The same for a launch of a framework. If its buffers are not known, the pointers among the parameters name addresses."""
        given = isinstance(prepared.address_name, NamedBuffers) and prepared.address_name.given
        if not given and (values := args()) is not None:
            prepared.address_name = PointedBuffers(self.parameters(prepared, entry), tuple(values))
        self.note(prepared, entry)


def name_addresses(prepared: Prepared, entry: str, given: Sequence[Argument]) -> NamedBuffers:
    """For `Session.address_name`: names global addresses by the buffers that a launch was `given`."""
    return NamedBuffers(tuple(given), KernelParameters.of(prepared, entry))


@dataclass(frozen=True)
class NamedBuffers:
    """An `AddressName` by known buffers. Equal buffers make equal names, so that repeated launches count as one.

    `kernel`: whose source names those that have no name.
    """

    given: tuple[Argument, ...]
    kernel: KernelParameters | None = None

    @property
    def buffers(self) -> tuple[Argument, ...]:
        """The buffers with their names."""
        kernel = self.kernel
        return self.given if kernel is None else tuple(replace(each, name=each.name or kernel.name(each.number)) for each in self.given)

    def __call__(self, begin: int, end: int) -> str:
        """The name of these bytes."""
        return address_name(self.buffers, begin, end)


@dataclass(frozen=True)
class PointedBuffers:
    """An `AddressName` by the pointers among the parameters of a launch. An array ends where the next one begins: nobody knows its size."""

    kernel: KernelParameters
    args: tuple[bytes, ...]

    @functools.cached_property
    def buffers(self) -> tuple[Argument, ...]:
        """The arrays. An array that is given twice is the first parameter's."""
        words = sorted((int.from_bytes(word.of(self.args), "little"), word, element) for word, element in self.kernel.words.items())
        ends = [next((other for other, *_ in words if other > begin), begin + _MOST_MEMORY) for begin, *_ in words]
        found = [
            Argument(f"argument {word.parameter + 1}", begin, min(end - begin, _MOST_MEMORY), self.kernel.name(word.parameter + 1), element)
            for (begin, word, element), end in zip(words, ends, strict=True)
        ]
        return tuple({each.begin: each for each in reversed(found)}.values())

    def __call__(self, begin: int, end: int) -> str:
        """The name of these bytes."""
        return next((each.place(begin, end) for each in self.buffers if each.begin <= begin < each.begin + each.bytes), "")


def _distinct(found: Sequence[SharedVariable]) -> list[SharedVariable]:
    """The variables whose symbol only one function declares: a layout is keyed by symbol."""
    declared = Counter(variable.symbol for variable in found)
    return [variable for variable in found if declared[variable.symbol] == 1]


def _offsets(device: Device, prepared: Prepared, entry: str, found: Sequence[SharedVariable]) -> dict[str, int]:
    """Offsets by symbol, as far as they are known."""
    offsets = device.backend.shared_offsets(prepared.loaded, entry) if prepared.loaded is not None else None
    if offsets is not None:
        return offsets
    if len(found) == 1:
        return {found[0].symbol: 0}
    return known_offsets(device.shadow, prepared, entry) if prepared.recorded is None else {}


def known_offsets(shadow: Shadow, prepared: Prepared, entry: str) -> dict[str, int]:
    """The offsets that the kernel itself has stored, once it has run."""
    function = next(each for each in prepared.instrumented.functions if each.name == entry)
    offsets = shadow.placed(prepared.number, min(function.placed.values(), default=0), len(function.placed))
    return {symbol: offset for symbol, offset in zip(function.placed, offsets, strict=True) if offset is not None}
