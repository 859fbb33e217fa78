"""Launches that are guessed, of kernels whose host code is missing or does not build: from the types and the names of parameters.

A pointer gets an array that is longer than any product of the sizes; arrays of integers are zero, since they may be indices. An integer
whose name is that of a size gets one: all of them the same. Grid and block are those of a launch that the source writes out in
numbers; else the block is that of `__launch_bounds__`, of a shared array that a thread has an element of, or of the dimensions of
`threadIdx` that the kernel reads. A finding of such a launch may be the guess's fault.

Not guessed: structs by value, and tensor maps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from consan.audit.host import text as cuda
from consan.audit.host.constants import number, shared_extents
from consan.audit.host.sizes import is_size
from consan.audit.host.sources import AuditedSource
from consan.audit.launch_file import DescribedLaunch, LaunchSize
from consan.instrument.ptx.extents import three_extents
from consan.launching.arguments import Dim3
from consan.launching.entries import has_dynamic_shared
from consan.launching.parameter_kind import CLASS, FLOAT, POINTER, WORD, CType
from consan.launching.scalars import FLOATS
from consan.launching.signature import kinds_of
from consan.launching.types_by_name import element_type, scalar_type

if TYPE_CHECKING:
    from consan.instrument.ptx import Function, Module, Param

_CTAS: Final = 2  # in each dimension that the kernel reads
_MOST_CTAS: Final = 64
_THREADS: Final = 128
_TILE: Final = 16  # threads in each of two dimensions
_SIZE: Final = 32  # of each size, if there are several
_LEAST_LENGTH, _MOST_LENGTH = 1 << 16, 1 << 20  # elements
_MOST_THREADS: Final = 1024
_DYNAMIC: Final = 48 << 10  # bytes
_TEMPLATE: Final = re.compile(r"\s*template\s*<(.*?)>\s*(?:static\s+)?(?:__global__|void|inline)", re.DOTALL)
_TYPE_PARAMETER: Final = re.compile(r"^\s*(?:typename|class)\b")


_VECTOR: Final = re.compile(r"^(?:const\s+)?(u?(?:char|short|int)|float|double)([1-4])\s+(?:const\s+)?\w+$")
_NAMES: Final = ("char", "uchar", "short", "ushort", "int", "uint", "float", "double")
_ELEMENTS: Final = dict(zip(_NAMES, ("i8", "u8", "i16", "u16", "i32", "u32", "f32", "f64"), strict=True))
_LITERAL: Final = re.compile(r"\d+|true|false|float|double|int|half2?|__half2?|(?:__)?nv_bfloat16|u?int(?:8|16|32|64)_t|char")
_MOST_WRITTEN: Final = 3
_TYPES: Final = ("float", "__half")


class NotGuessedError(Exception):
    """Why a kernel gets no launch."""


class KernelText:
    """The source's facts about a kernel. All of them are empty for PTX alone."""

    def __init__(self, source: AuditedSource | None, name: str) -> None:
        self._text, self._name = source.text if source is not None else "", name
        items = source.items if source is not None else []
        self._item = next((each for each in items if each.kind == cuda.KERNEL and each.body and each.name == name), None)
        self.body = cuda.uncommented(self._text[slice(*self._item.body)]) if self._item is not None and self._item.body else ""

    @property
    def parameters(self) -> list[str]:
        """The declarations of the parameters."""
        if self._item is None or self._item.parameters is None:
            return []
        head = self._item.head[slice(*self._item.parameters)]
        return [head[begin:end].partition("=")[0].strip() for begin, end in cuda.parted(head)]

    @property
    def template(self) -> list[str] | None:
        """The parameters of the template; None: it is none."""
        found = _TEMPLATE.match(self._item.head) if self._item else None
        return None if found is None else [found[1][begin:end].strip() for begin, end in cuda.parted(found[1])]

    @property
    def scope(self) -> str:
        """The namespaces that the kernel is in, each with `::` behind."""
        return cuda.scope(self._text, self._item.begin) if self._item is not None else ""

    def written(self, name: str) -> list[str]:
        """Arguments of the template that the source writes out: types and numbers."""
        found = re.findall(rf"\b{re.escape(name)}\s*<([\w\s,:]+)>\s*(?:<<\s*<|[;,)])", cuda.uncommented(self._text))
        return [each for each in dict.fromkeys(found) if all(_LITERAL.fullmatch(word.strip()) for word in each.split(","))][:_MOST_WRITTEN]

    def launched(self, which: int) -> Dim3 | None:
        """The grid (0) or the block (1) of the first launch, if the source writes it out in numbers and constants."""
        plain = cuda.uncommented(self._text)
        found = re.search(rf"\b{re.escape(self._name)}\s*(?:<[^;<>]*>\s*)?<<\s*<([^;]*?)>\s*>\s*>", plain) if self._name else None
        parts = cuda.parted(found[1]) if found else []
        return self._extents(found[1][slice(*parts[which])].strip()) if found and len(parts) > which else None

    def _extents(self, written: str) -> Dim3 | None:
        """The extents of a `dim3`, of a variable of that type, or of a number."""
        variable = re.search(rf"\bdim3\s+{re.escape(written)}\s*[({{]([^;]*?)[)}}]\s*;", self._text) if written.isidentifier() else None
        inner = variable[1] if variable else written.removeprefix("dim3").strip().strip("(){}")
        numbers = [number(word.strip(), self._text) for word in inner.split(",")]
        if None in numbers or not 1 <= prod(each or 0 for each in numbers) <= _MOST_THREADS:
            return None
        return three_extents([each or 1 for each in numbers])

    def reads(self, variable: str) -> bool:
        """Whether the kernel reads a dimension."""
        return re.search(rf"\b{re.escape(variable)}\b", self.body) is not None

    def tiles(self) -> Iterator[list[int]]:
        """The extents of shared arrays that are known."""
        return shared_extents(self.body, self._text)


def instances(text: KernelText, name: str) -> list[str]:
    """The kernel's name in C++, with arguments for a template, as good guesses come first. Raises NotGuessedError.

    The arguments are those that the host's code writes out, else types are float, or half, and numbers a block's threads.
    """
    if text.template is None:
        return [name]
    needed = [each for each in text.template if "=" not in each]
    if any("..." in each for each in needed):
        raise NotGuessedError("its template takes any number of arguments")
    guessed = (", ".join(_template_argument(each, of_type) for each in needed) for of_type in _TYPES)
    return [f"{text.scope}{name}<{each}>" for each in dict.fromkeys((*text.written(name), *guessed))]


def _template_argument(declared: str, of_type: str) -> str:
    if _TYPE_PARAMETER.match(declared):
        return of_type
    return "true" if re.match(r"\s*(?:const\s+)?bool\b", declared) else str(_THREADS)


def guessed_launch(module: Module, entry: Function, text: KernelText, kernel: str) -> DescribedLaunch:
    """A launch of a kernel, which is called `kernel`. Raises NotGuessedError."""
    block = _block(entry, text)
    grid = _grid(entry, text)
    declared = text.parameters if len(text.parameters) == len(entry.params) else [""] * len(entry.params)
    count = sum(map(_is_size, declared)) or ("" in declared)
    size = prod(grid) * prod(block) if count <= 1 else _SIZE
    length = min(max(size**count, _LEAST_LENGTH), _MOST_LENGTH)
    described = zip(kinds_of(entry), entry.params, declared, strict=True)
    arguments = tuple(_argument(number, *each, size, length) for number, each in enumerate(described, 1))
    cluster = _extents(entry.directives.get("reqnctapercluster")) or (1, 1, 1)
    shared = _DYNAMIC if has_dynamic_shared(module) else 0
    return DescribedLaunch(kernel, LaunchSize(grid, block, shared, cluster), arguments)


def _argument(number: int, kind: CType, parameter: Param, declared: str, size: int, length: int) -> str:
    if kind.kind == CLASS and (vector := _VECTOR.search(declared)) is not None:
        element, count = _ELEMENTS[vector[1]], int(vector[2])
        return "struct:" + ";".join(f"{element}=1@{at * int(element[1:]) // 8}" for at in range(count))
    if kind.kind == CLASS:
        raise NotGuessedError(f"its parameter {number} is a struct{f': {declared}' if declared else ''}")
    if kind.kind == POINTER or "*" in declared or (kind.kind == WORD and not declared):
        element = element_type(declared)
        return f"{element}[{length}]={'random' if element in FLOATS else 'zeros'}"
    chosen = scalar_type(parameter, declared) or "u64"
    return f"{chosen}={size if kind.kind != FLOAT and (not declared or _is_size(declared)) else 1}"


def _is_size(declared: str) -> bool:
    found = re.search(r"(\w+)\s*$", declared)
    return found is not None and "*" not in declared and is_size(found[1])


def _extents(given: Sequence[int] | str | None) -> Dim3 | None:
    return None if not given or isinstance(given, str) else three_extents(given)


def _block(entry: Function, text: KernelText) -> Dim3:
    stated = _extents(entry.directives.get("reqntid")) or text.launched(1)
    if stated is not None:
        return stated
    stated = _extents(entry.directives.get("maxntid"))
    tiles = list(text.tiles())
    if text.reads("threadIdx.y"):
        tile = next((each for each in tiles if len(each) == 2 and prod(each) <= _MOST_THREADS), [_TILE, _TILE])
        fits = stated is None or stated[1] > 1 or prod(tile) <= prod(stated)
        return (tile[1], tile[0], 1) if fits else (stated or (_TILE, _TILE, 1))
    lengths = [each[0] for each in tiles if len(each) == 1 and 2 * 32 <= each[0] <= _MOST_THREADS and each[0] % 32 == 0]
    return stated or ((max(lengths) if lengths else _THREADS), 1, 1)


def _grid(entry: Function, text: KernelText) -> Dim3:
    cluster = _extents(entry.directives.get("reqnctapercluster")) or (1, 1, 1)
    launched = text.launched(0)
    if launched is not None and prod(launched) <= _MOST_CTAS and cluster == (1, 1, 1):
        return launched
    x, y, z = (_CTAS if name == "x" or text.reads(f"blockIdx.{name}") else 1 for name in "xyz")
    return (x * cluster[0], y * cluster[1], z * cluster[2])
