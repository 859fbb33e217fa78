"""C++ symbols as the source names them: demangled and shortened.

Two short forms. `kernel_name` keeps template arguments, which tell instances apart, as far as they fit on a line.
`function_name` is the qualified name without template arguments, parameters, return type, and
namespaces and tags that only carry a version or a translation unit (`cub::_V_300500_SM_900`, `_INTERNAL_...`, `[abi:v1]`).

The demangler is `__cxa_demangle` of the C++ runtime library (Itanium C++ ABI). Without it, plain nested names are still read
(`_ZN3foo3barEi` is `foo::bar`); any other symbol stays as it is.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache
from typing import Final

DIRECTLY: Final = "directly"  # begins the name of bytes right behind a buffer (variables.py)
WRITTEN_AT: Final = "the buffer written at "  # begins the name of a buffer without a symbol (buffers.py)
LONGEST: Final = 72  # a longer kernel name loses its template arguments in a title

_LIBRARIES: Final = ("libstdc++.so.6", "libc++abi.so.1", "libc++abi.dylib", "libc++.1.dylib")
_VERSIONS: Final = re.compile(r"\b(?:_INTERNAL_\w+|_GLOBAL__N_\w*|_V_\d+\w*|(?:CUB|THRUST)_\d+\w*|__\d+)::|\[abi:\w+\]")
_WARP: Final = re.compile(r"_[0-9a-f]{8}_cuda_kernel_forward$")  # the adjoint kernel keeps its long name
_PART: Final = re.compile(r"(?<=\w)_\$_\d+$")  # of an array that the compiler has split
_LAMBDA: Final = re.compile(r"\{lambda\(.*?\)#(\d+)\}")
_OPERATOR: Final = re.compile(r"operator ?(?:\(\)|<<=?|>>=?|<=>|<=?|>=?|->\*?)")
_ELEMENT: Final = re.compile(r"(?:bytes? [\d.]+ of )?(?P<base>[^\[.]*?)(?:[\[.].*?)?(?P<owner>(?: of the CTA of rank \d+)?)")
_LENGTH: Final = re.compile(r"\d+")
_BRACKETS: Final = {"<": ">", "(": ")"}


@cache
def demangled(symbol: str) -> str:
    """`_Z3revIfLi128EEvPf` to `void rev<float, 128>(float*)`; a symbol that is not mangled stays as it is."""
    if not symbol.startswith("_Z"):
        return symbol
    demangle = _demangler()
    return (demangle(symbol) if demangle else None) or _nested_name(symbol)


def kernel_name(symbol: str) -> str:
    """`rev<float, 128>`: the kernel's name in a title. Long template arguments become `<...>`. An operation keeps its words."""
    if is_operation(symbol):
        return symbol
    text = _bare(_VERSIONS.sub("", demangled(_WARP.sub("", symbol))), "(")
    if len(text) <= LONGEST:
        return text
    plain = _bare(text, "<")
    return f"{plain}<...>" if plain != text else text


def is_operation(symbol: str) -> bool:
    """Whether a finding's kernel is none, but words for an operation without a kernel (`the copy to the host`)."""
    return " " in symbol


@cache
def function_name(symbol: str) -> str:
    """`foo::bar` for `void foo::bar<int>(int)`: a function's name in an inlining chain."""
    return _bare(_VERSIONS.sub("", demangled(symbol)), "(<")


def variable_name(symbol: str) -> str:
    """`tile` for `_ZZ1kPfE4tile`, and for its part `_ZZ1kPfE4tile_$_1`: a local variable without its function."""
    text = _bare(_VERSIONS.sub("", demangled(_PART.sub("", symbol))), "(<")
    return text.rsplit("::", 1)[-1] if symbol.startswith("_ZZ") else text


def name_without_element(name: str) -> str:
    """The variable in a name like `tile[1][3]`, `pairs[0].weight` or `bytes 8..11 of tile`. An owner (`of the CTA of rank 1`) stays."""
    found = None if name.startswith(WRITTEN_AT) else _ELEMENT.fullmatch(name)
    return name if found is None else found["base"] + found["owner"]


@cache
def _demangler() -> Callable[[str], str | None] | None:
    """`__cxa_demangle` of the C++ runtime in use, or None."""
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
            function, free = library["__cxa_demangle"], ctypes.CDLL(None).free
        except (OSError, AttributeError, TypeError):
            continue
        function.restype = ctypes.c_void_p
        function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
        free.argtypes = [ctypes.c_void_p]
        return lambda symbol: _call(function, free, symbol)
    return None


def _call(function: Callable[..., int | None], free: Callable[[int], None], symbol: str) -> str | None:
    status = ctypes.c_int(-1)
    address = function(symbol.encode(), None, None, ctypes.byref(status))
    if not address:
        return None
    text = ctypes.string_at(address).decode("utf-8", "replace")
    free(address)
    return text


def _bare(text: str, brackets: str) -> str:
    """A demangled name without return type and without the contents of these brackets. Operators and lambdas keep their signs."""
    text = text.replace("(anonymous namespace)", "{anonymous}")
    text = _LAMBDA.sub(r"{lambda#\1}", text)
    kept, position, closing = [], 0, ""
    depth = 0
    while position < len(text):
        operator = _OPERATOR.match(text, position) if not depth else None
        if operator:
            kept.append(operator[0])
            position = operator.end()
            continue
        character = text[position]
        if not depth and character in brackets:
            closing, depth = _BRACKETS[character], 1
            opening = character
        elif depth:
            depth += (character == opening) - (character == closing)
        else:
            kept.append(character)
        position += 1
    return _without_type("".join(kept))


def _without_type(text: str) -> str:
    """Remove the part before the last blank outside template arguments, and trailing `const` and the like."""
    text = re.sub(r"(?: const| volatile|&| \[[^]]*\])+$", "", text.strip())
    depth, start = 0, 0
    for position, character in enumerate(text):
        depth += (character == "<") - (character == ">")
        if character == " " and depth == 0 and not text[:position].endswith("operator"):
            start = position + 1
    return text[start:]


def _nested_name(symbol: str) -> str:
    """Plain names of the ABI's `<nested-name>` and `<unscoped-name>`; any other symbol unchanged."""
    nested = symbol.startswith("_ZN")
    names, position = [], 3 if nested else 2
    while digits := _LENGTH.match(symbol, position):
        position = digits.end() + int(digits[0])
        names.append(symbol[digits.end() : position])
    return symbol if not names or (nested and not symbol.startswith("E", position)) else "::".join(names)
