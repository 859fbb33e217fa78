"""Names for the memory of a kernel of CuTe DSL: its parameters', and those that its program gives what it allocates in shared memory.

The compiler lays shared memory out. It says where in a remark, in the order of the allocations (CuTe DSL 4.8); of a struct it says where
its members are. An allocation has the name of the variable to which the program assigns it. Where the remark does not fit what the kernel
has allocated, nothing has a name.

Not handled: programs that have the compiler's remarks or warnings for themselves.
"""

from __future__ import annotations

import itertools
import linecache
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from types import FrameType
from typing import Any, Final

from consan.dataclass import dataclass
from consan.reports.source.variables import SharedName

_ASSIGNED: Final = re.compile(r"\s*(?:self\.)?([A-Za-z_]\w*)\s*(?::[^=]*)?=(?!=)")
_IN_A_ROW: Final = re.compile(r"\(?\d+\)?:\(?1\)?")  # a layout of one dimension, whose elements follow each other
_REMARK: Final = re.compile(r"^Name: +RemarkMemorySmemBreakdown$.*?^Function: +(\S+)$(.*?)^\.\.\.$", re.MULTILINE | re.DOTALL)
_PLACE: Final = re.compile(r"- (alloc|field)_(\w+)_(size|align|offset): +(\d+)")
_ENTRY: Final = re.compile(r"^[^/\n]*\.entry\s+([\w$]+)\s*\(([^)]*)\)", re.MULTILINE)
_SIZE: Final = re.compile(r"\(?(\d+)\)?:")
_BETWEEN: Final = ("consan", "cutlass")
_FILTER: Final = "Memory"


@dataclass(frozen=True)
class AskedMemory:
    """Memory that a kernel has asked for. `fields`: of a struct, each with its name, size, offset, and the size of its elements."""

    name: str
    nbytes: int
    alignment: int
    element: int = 0  # 0: the places of its elements are not known
    fields: tuple[tuple[str, int, int, int], ...] = ()


@dataclass
class _Traced:
    words: int = 0  # of all parameters; the compiler adds some behind them
    parameters: list[tuple[str, int]] = field(default_factory=list)  # each with the first of its words
    allocations: list[AskedMemory] = field(default_factory=list)


class CuteNames:
    """The names that the kernels being traced have for their memory. `folder`: for the compiler's remarks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()
        self._remarks: list[Path] = []
        self._kernels: dict[str, _Traced] = {}
        self._traced = _Traced()

    def trace(self, original: Callable[..., Any], dsl: Any, args: Any, named: Any, function: Any, *rest: Any) -> Any:
        """`BaseDSL.generate_execution_arguments`: the body of this function comes next."""
        words = len(function.regions[0].blocks[0].arguments)
        self._traced = self._kernels[function.attributes["sym_name"].value] = _Traced(words)
        return original(dsl, args, named, function, *rest)

    def parameter(self, original: Callable[..., Any], dsl: Any, arg: Any, spec: Any, name: str, number: int, given: Any, first: int) -> Any:
        """`_generate_execution_arguments_for_known_types`, which is asked about each argument in their order."""
        self._traced.parameters.append((name, first))
        return original(dsl, arg, spec, name, number, given, first)

    def allocate(
        self, original: Callable[..., Any], allocator: Any, layout: Any, dtype: Any, alignment: int, *rest: Any, **named: Any
    ) -> Any:
        """`SmemAllocator._smem_alloca`, behind all that allocate shared memory."""
        self._traced.allocations.append(
            allocation(str(layout), max(alignment, dtype.width // 8), named.get("struct_fields"), sys._getframe(1))
        )
        return original(allocator, layout, dtype, alignment, *rest, **named)

    def ask(self, original: Callable[..., None], session: Any, context: Any, **named: Any) -> None:
        """`CompilerDiagnosticSession.__init__`: the compiler writes its remarks, if the program has no use for them."""
        if not named.get("remark_output") and not named.get("collect_diagnostics"):
            self._remarks.append(self._folder / f"remarks-{next(self._numbers)}.yaml")
            named |= {"remark_output": str(self._remarks[-1]), "remark_filter": _FILTER}
        original(session, context, **named)

    def parameters_of(self, ptx: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The kernels of a text, each with the names of its parameters."""
        for entry, declared in _ENTRY.findall(ptx):
            kernel = self._kernels.get(entry, _Traced())
            count = declared.count(".param")
            parameters = [*kernel.parameters, ("", kernel.words)]
            ends = [first for _, first in parameters[1:]] + [count]
            if all(first <= end for (_, first), end in zip(parameters, ends, strict=True)):
                names = [name for (name, first), end in zip(parameters, ends, strict=True) for _ in range(first, end)]
                yield entry, tuple(names) if len(names) == count else ()

    def named(self, ptx: str) -> str:
        """A text that was compiled just now, with the names of its kernels' shared memory behind it."""
        remarks = dict(each for path in self._remarks if path.exists() for each in _REMARK.findall(path.read_text(errors="replace")))
        self._remarks = []
        found = [
            shared.text(entry)
            for entry, _ in _ENTRY.findall(ptx)
            if entry in remarks
            for shared in placed(self._kernels.get(entry, _Traced()).allocations, remarks[entry])
        ]
        return "\n".join([ptx, *found, ""]) if found else ptx


def allocation(layout: str, alignment: int, fields: Sequence[tuple[str, int, int]] | None, frame: FrameType | None) -> AskedMemory:
    """An allocation of so many bytes as its layout says, which functions of CuTe DSL make in this frame for the program."""
    of_struct, element = dict[str, int](), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        known, function = frame.f_locals, frame.f_code.co_name
        if function == "allocate_array" or (function == "allocate_tensor" and _IN_A_ROW.fullmatch(str(known["layout"]))):
            element = known["element_type"].width // 8
        if function == "allocate" and fields:
            of_struct = {name: _element_of(member) for name, member in known["size_or_type"]._annotations.items()}
        frame = frame.f_back
    assigned = _ASSIGNED.match(linecache.getline(frame.f_code.co_filename, frame.f_lineno)) if frame is not None else None
    members = tuple((name, size, offset, of_struct.get(name, 0)) for name, size, offset in fields or ())
    size = _SIZE.match(layout)
    return AskedMemory(assigned[1] if assigned else "", int(size[1]) if size else 0, alignment, element, members)


def _element_of(member: Any) -> int:
    """The bytes of the elements of a member: an array's, also an aligned one's. 0: it is a struct."""
    widths = (getattr(each, name, None) for each in (member, getattr(member, "dtype", None)) for name in ("elem_width", "width"))
    return next((each // 8 for each in widths if isinstance(each, int)), 0)


def placed(allocations: Sequence[AskedMemory], remark: str) -> list[SharedName]:
    """The names of the bytes of dynamic shared memory; empty where the compiler's remark does not fit the allocations."""
    said: dict[str, dict[str, int]] = {}
    for kind, name, what, value in _PLACE.findall(remark):
        said.setdefault(f"{kind}_{name}", {})[what] = int(value)
    found, end = list[SharedName](), 0
    for number, each in enumerate(allocations):
        begin = -(-end // each.alignment) * each.alignment
        if each.fields:
            fits = all(said.get(f"field_{name}") == {"size": size, "offset": offset} for name, size, offset, _ in each.fields)
        else:
            fits = said.get(f"alloc_{number}") == {"size": each.nbytes, "align": each.alignment, "offset": begin}
        if not fits:
            return []
        found += _names(each, begin)
        end = begin + each.nbytes
    counted = [each.name for each in found]
    return [each for each in found if counted.count(each.name) == 1] if f"alloc_{len(allocations)}" not in said else []


def _names(given: AskedMemory, begin: int) -> Iterator[SharedName]:
    if given.name and not given.fields:
        yield SharedName(given.name, begin, given.nbytes, given.element)
    for name, size, offset, element in given.fields if given.name else ():
        yield SharedName(f"{given.name}.{name}", begin + offset, size, element)
