"""Sizes that the constants of kernels imply: code that works in tiles takes whole ones for granted.

`tile` is what each of several sizes has at least, `block` what a single one or each of two has. Both are powers of two of at most `_MOST`,
since what a size is halved to stays one where it was one; 0: nothing is implied. The text is CUDA C++, or a module with it in strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from consan.audit.host import text as cuda

_MOST: Final = 1024
_SHARED: Final = re.compile(r"__shared__[^;=\[]*?\w+\s*((?:\[[^\]]*\])+)\s*;")
_VALUE: Final = (
    r"(?:#\s*define\s+{0}\s+\(?|\b(?:constexpr|const|int)\b[^;=\n]*\b{0}\s*=\s*|\b{0}\s*:\s*tl\.constexpr\s*=\s*|^\s*{0}\s*=\s*)(\d+)\b"
)
_NAMED: Final = re.compile(r"(?:#[ \t]*define[ \t]+(\w+)[ \t]+\(?|\b(\w+)(?:\s*:\s*tl\.constexpr)?\s*=\s*)(\d+)\b")
_TILE: Final = re.compile(r"tile|^b[mnk]$|^block_?(?:size_?)?[mnk]$|^w?[mnk]_?tile$", re.IGNORECASE)
_BLOCK: Final = re.compile(r"tile|block|thread|chunk|warps|^b[mnk]$|^nt$", re.IGNORECASE)
_COUNTS: Final = re.compile(r"grid|num_?blocks|n_?blocks|blocks$|nb$", re.IGNORECASE)
_CONFIGURED: Final = re.compile(r"<<<(.*?)>>>|\bdim3\s+(?!grid)\w+\s*[({](.*?)[)}]\s*;", re.DOTALL)
_BOUNDS: Final = re.compile(r"__launch_bounds__\s*\([^)]*\)")
_NUMBER: Final = re.compile(r"(?<![\w.])(\d{2,4})(?![\w.])")
_STRING: Final = re.compile(r'("""|\'\'\')(.*?)\1', re.DOTALL)
_ON_DEVICE: Final = (cuda.KERNEL, cuda.DEVICE, cuda.BOTH)


def number(word: str, text: str) -> int | None:
    """A whole number, or the constant of a name in a text."""
    found = re.search(_VALUE.format(re.escape(word)), text, re.MULTILINE) if re.fullmatch(r"[A-Za-z_]\w*", word) else None
    return int(word) if word.isdecimal() else int(found[1]) if found else None


def shared_extents(body: str, text: str) -> Iterator[list[int]]:
    """The extents of the shared arrays of a kernel that are known. `text`: has its constants."""
    for found in _SHARED.finditer(body):
        extents = [number(word.partition("+")[0].strip(), text) for word in re.findall(r"\[([^\]]*)\]", found[1])]
        if None not in extents:
            yield [each for each in extents if each is not None]


def tile(text: str) -> int:
    """The largest extent of a tile: of a shared array with several dimensions, or of a constant that has the name of one."""
    plain = text if _strings(text) else cuda.uncommented(text)
    arrays = (each for extents in shared_extents(plain, plain) if len(extents) > 1 for each in extents)
    return _largest((*arrays, *_named(plain, _TILE)))


def block(text: str) -> int:
    """The largest constant of the code: in kernels, in launches, and of names that speak of blocks. Never less than a tile."""
    code = _strings(text) or text
    device = " ".join(code[slice(*item.body)] for item in cuda.items(code) if item.kind in _ON_DEVICE and item.body)
    plain = cuda.uncommented(device)
    configured = " ".join(filter(None, (group for found in _CONFIGURED.finditer(cuda.uncommented(code)) for group in found.groups())))
    literal = (int(each) for each in _NUMBER.findall(_BOUNDS.sub("", plain + " " + configured)))
    return max(tile(text), _largest((*literal, *_named(text, _BLOCK))))


def _strings(text: str) -> str:
    """The long strings of a module that have kernels."""
    return "\n".join(found[2] for found in _STRING.finditer(text) if "__global__" in found[2])


def _named(text: str, pattern: re.Pattern[str]) -> Iterator[int]:
    for macro, name, value in _NAMED.findall(text):
        if pattern.search(macro or name) and not _COUNTS.search(macro or name):
            yield int(value)


def _largest(values: Iterable[int]) -> int:
    return max((each for each in values if 1 < each <= _MOST and each & (each - 1) == 0), default=0)
