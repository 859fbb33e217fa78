"""The kinds of a kernel's parameters, from its PTX, its mangled name and, for `extern "C"`, its source. Checks arguments against them.

PTX says .f32 or .u32, but not whether eight bytes are a pointer, nor whether .u32 is signed, and some compilers say .b32 only. The types of
the name or the source are used only if all of them agree with the PTX: the same number of parameters, each of the same size and sort. The
source is read conservatively: a type that is not built in, a macro, or two definitions that differ give nothing.

An argument of a wrong sort is a `UsageError`; if the sort is unknown, there is a warning. Not handled: the elements of a buffer, because
kernels take buffers through pointers of other types.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from consan._errors import UsageError
from consan.launching import mangled
from consan.launching.arguments import ArgSpec, BufferSpec, ValueSpec
from consan.launching.parameter_kind import CLASS, FLOAT, INTEGER, POINTER, UNKNOWN, UNSIGNED, WORD, CType
from consan.launching.scalars import FLOATS, TYPES

if TYPE_CHECKING:
    from consan.instrument.ptx import Function, Param

Source = Callable[[], str]
"""Gives the text of the kernel's file. It is called only if the name does not give the types."""


def kinds_of(entry: Function, source: Source | None = None) -> list[CType]:
    """The kind of each parameter."""
    plain = [kind_in_ptx(parameter) for parameter in entry.params]
    better = mangled.parameters(entry.name)
    if better is None and source is not None:
        better = in_source(entry.name, source())
    if better is None or len(better) != len(plain) or not all(map(_agree, plain, better)):
        return plain
    return [ours if theirs.kind == CLASS else theirs for ours, theirs in zip(plain, better, strict=True)]


# -- PTX --------------------------------------------------------------------------------------------------------------------


def kind_in_ptx(parameter: Param) -> CType:
    """The signature that the PTX declares."""
    text, size = f".{parameter.type}", parameter.nbytes
    if parameter.size is not None or parameter.vector > 1:
        return CType(CLASS, f"{size} bytes", size)
    if parameter.pointer is not None:
        return CType(POINTER, "a pointer", size)
    if parameter.type[0] == "b":
        return CType(UNKNOWN, text, size)
    if parameter.type[0] in "us":
        return CType(WORD if size == 8 else INTEGER, text, size)
    return CType(FLOAT, text, size)


_CAN_BE: Final = {WORD: (POINTER, INTEGER, UNSIGNED), INTEGER: (INTEGER, UNSIGNED), UNKNOWN: (POINTER, INTEGER, UNSIGNED, FLOAT)}


def _agree(ours: CType, theirs: CType) -> bool:
    """Whether `ours`, the kind in the PTX, can be that of a parameter `theirs`. A class agrees with any: it may be an enumeration."""
    if theirs.kind == CLASS:
        return True
    return theirs.nbytes == ours.nbytes and theirs.kind in _CAN_BE.get(ours.kind, (ours.kind,))


# -- the source -------------------------------------------------------------------------------------------------------------

_NOISE: Final = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_IGNORED: Final = frozenset(["const", "volatile", "__restrict__", "__restrict", "restrict", "__grid_constant__", "struct", "register"])
_WORDS: Final = {
    "float": CType(FLOAT, "float", 4), "double": CType(FLOAT, "double", 8), "bool": CType(UNSIGNED, "bool", 1),
    "size_t": CType(UNSIGNED, "size_t", 8), "uintptr_t": CType(UNSIGNED, "uintptr_t", 8), "ptrdiff_t": CType(INTEGER, "ptrdiff_t", 8),
    **{f"int{8 * size}_t": CType(INTEGER, f"int{8 * size}_t", size) for size in (1, 2, 4, 8)},
    **{f"uint{8 * size}_t": CType(UNSIGNED, f"uint{8 * size}_t", size) for size in (1, 2, 4, 8)},
}  # fmt: skip
_INTEGERS: Final = frozenset(["unsigned", "signed", "char", "short", "int", "long"])
_POINTER: Final = CType(POINTER, "a pointer", 8)
_OTHER: Final = CType(CLASS, "another type")


def in_source(name: str, text: str) -> tuple[CType, ...] | None:
    """The parameters of the kernel of this name; None if the text does not have them."""
    plain = _NOISE.sub(" ", text)
    heads = re.finditer(rf"__global__(?:[^;{{}}()]|\([^()]*\))*?\b{re.escape(name)}\s*\(", plain)
    found = {_parameters(plain, head.end()) for head in heads}
    return found.pop() if len(found) == 1 else None


def _parameters(text: str, start: int) -> tuple[CType, ...] | None:
    """The parameters of a list that begins at `start`."""
    pieces, depth = [""], 1
    for character in text[start:]:
        depth += (character in "([{<") - (character in ")]}>")
        if depth == 0:
            break
        if character == "," and depth == 1:
            pieces.append("")
        else:
            pieces[-1] += character
    if depth or "#" in "".join(pieces):
        return None
    return () if pieces in ([""], ["void"]) else tuple(map(_declared, pieces))


def _declared(text: str) -> CType:
    """One parameter, with its name or without."""
    words = [word for word in re.findall(r"[A-Za-z_]\w*|::|[*&\[<(]", text) if word not in _IGNORED]
    if {"*", "&", "["} & set(words):
        return _POINTER
    if not words or {"<", "("} & set(words):
        return _OTHER
    words = [word for word in words if word not in ("std", "cuda", "::")]
    words = words[:-1] if len(words) > 1 and words[-1] not in (*_WORDS, *_INTEGERS) else words
    if set(words) <= _INTEGERS:
        return _integer(words)
    return _WORDS.get(words[0], _OTHER) if len(words) == 1 else _OTHER


def _integer(words: list[str]) -> CType:
    """`unsigned long long int` and its like; `long` has 8 bytes, as on Linux."""
    sizes = (("char", 1), ("short", 2), ("long", 8))
    size = next((size for word, size in sizes if word in words), 4)
    return CType(UNSIGNED if "unsigned" in words else INTEGER, " ".join(words), size)


# -- arguments --------------------------------------------------------------------------------------------------------------


def check_arguments(entry: Function, specs: Sequence[ArgSpec], source: Source | None = None) -> None:
    """Raise UsageError for an argument of another sort than its parameter; warn if the sort is unknown."""
    for index, (kind, spec) in enumerate(zip(kinds_of(entry, source), specs, strict=True), 1):
        problem = _problem(kind, spec)
        if problem:
            raise UsageError(f"--arg {index} '{spec.text}': {problem.format(entry=entry.name)}")
        if kind.kind == UNKNOWN and isinstance(spec, ValueSpec) and spec.type != "bytes":
            doubt = f"the PTX of {entry.name} says {kind.text} there: whether that is a float or an integer is not known"
            print(f"consan: warning: --arg {index} '{spec.text}': {doubt}", file=sys.stderr)


def _problem(kind: CType, spec: ArgSpec) -> str:
    if isinstance(spec, BufferSpec):
        return _expected("a buffer", kind) if kind.kind in (INTEGER, UNSIGNED, FLOAT) else ""
    if not isinstance(spec, ValueSpec) or spec.type == "bytes":
        return ""
    return _problem_of_float(kind, spec) if spec.type in FLOATS else _problem_of_integer(kind, spec)


def _problem_of_float(kind: CType, spec: ValueSpec) -> str:
    if kind.kind in (INTEGER, UNSIGNED, WORD, POINTER):
        return _expected("a float", kind)
    return _expected(spec.type, kind) if kind.kind == FLOAT and kind.nbytes != spec.parameter_bytes else ""


def _problem_of_integer(kind: CType, spec: ValueSpec) -> str:
    value = int(np.frombuffer(spec.data, TYPES[spec.type])[0])
    if kind.kind == FLOAT or (kind.kind == POINTER and value):
        return _expected("an integer", kind)
    return _expected("negative", kind) if kind.kind == UNSIGNED and value < 0 else ""


_LETTERS: Final = {FLOAT: "f", INTEGER: "i", UNSIGNED: "u"}


def _expected(given: str, kind: CType) -> str:
    """`is a float, {entry} expects int there: write i32=VALUE`."""
    if kind.kind == POINTER:
        return f"is {given}, {{entry}} expects {kind.text} there: give a buffer, such as f32[1024]=zeros, or u64=0 for a null pointer"
    if kind.kind == WORD:
        return f"is {given}, {{entry}} expects {kind.text} there: write u64=VALUE, or give a buffer if it is a pointer"
    return f"is {given}, {{entry}} expects {kind.text} there: write {_LETTERS[kind.kind]}{8 * (kind.nbytes or 4)}=VALUE"
