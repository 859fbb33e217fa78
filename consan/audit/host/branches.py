"""The branches of `#if` that are for other compilers and other GPUs, as spaces: what is left has one definition of each name.

A condition counts as known where it has only numbers and the macros below, and has one value on the host and on the device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from typing import Final

from consan.dataclass import dataclass

_DIRECTIVE: Final = re.compile(r"^[ \t]*#[ \t]*(ifdef|ifndef|if|elif|else|endif)\b((?:\\\r?\n|[^\n])*)", re.MULTILINE)
_DEFINED: Final = re.compile(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_ELSEWHERE: Final = re.compile(
    r"USE_ROCM|USE_HIP|(?:__)?HIP_PLATFORM_(?:AMD|HCC)(?:__)?|__HIPCC__|__HIP__|__HIP_DEVICE_COMPILE__|__HCC__|__MUSACC__|__MUSA_ARCH__"
    r"|GGML_USE_(?:HIP|HIPBLAS|MUSA)|BUILD_HIP|__AMDGCN__|__gfx\w+__|_WIN32|_WIN64|WIN32|_MSC_VER|__APPLE__"
)
_ARCH: Final = "__CUDA_ARCH__"
_DEVICE: Final = 900
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_PLAIN: Final = re.compile(r"(?:\d+[uUlL]*|[()<>=!+\-*/%&|\s])*")
_GROWS: Final = re.compile(r"\*\s*\*|<\s*<|>\s*>")  # a power, which C does not have, and shifts: numbers without end


@dataclass
class _Chain:
    """An `#if` with its branches. `taken`: whether one of them is known to be it; None: this is not known, and all stay."""

    taken: bool | None = False
    marks: list[tuple[int, int]] = field(default_factory=list)  # its directives
    gone: list[tuple[int, int]] = field(default_factory=list)
    since: int | None = None  # where a branch that is not taken begins


def for_this_compiler(text: str, plain: str) -> str:
    """The text without the branches that are known not to be taken. `plain`: without comments and strings, at the same places."""
    for begin, end in _gone(plain):
        text = text[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + text[end:]
    return text


def _gone(plain: str) -> Iterator[tuple[int, int]]:
    chains: list[_Chain] = []
    for found in _DIRECTIVE.finditer(plain):
        word = found[1]
        if word.startswith("if"):
            chains.append(_Chain())
        elif not chains:
            continue
        _next_branch(chains[-1], found.start(), found.end(), _value(word, found[2]))
        if word == "endif":
            chain = chains.pop()
            if chain.taken is not None and chain.gone:
                yield from (*chain.marks, *chain.gone)


def _next_branch(chain: _Chain, begin: int, end: int, holds: bool | None) -> None:
    """A directive of a chain: the branch before it ends there."""
    chain.marks.append((begin, end))
    if chain.since is not None:
        chain.gone.append((chain.since, begin))
    chain.since = None
    if chain.taken is None:
        return
    if chain.taken or holds is False:
        chain.since = end
    elif holds is None:
        chain.taken = None
    else:
        chain.taken = True


def _value(word: str, condition: str) -> bool | None:
    """Whether the branch behind a directive is taken where none before it is. None: this is not known. `#endif` has none behind it."""
    if word == "endif":
        return False
    if word == "else":
        return True
    if word in ("ifdef", "ifndef"):
        condition = ("!" if word == "ifndef" else "") + f"defined({condition.strip()})"
    found = {_evaluated(condition, arch) for arch in (0, _DEVICE)}
    return found.pop() if len(found) == 1 else None


def _evaluated(condition: str, arch: int) -> bool | None:
    """The value of a condition where `__CUDA_ARCH__` is this; 0: it is not defined."""

    def number(name: str) -> str:
        return str(arch) if name == _ARCH else "0" if _ELSEWHERE.fullmatch(name) else name

    words = _DEFINED.sub(lambda found: number(found[1] or found[2]), condition.replace("\\\n", " "))
    words = _WORD.sub(lambda found: number(found[0]), words)
    if not _PLAIN.fullmatch(words) or not words.strip() or _GROWS.search(words):
        return None
    words = re.sub(r"(\d)[uUlL]+", r"\1", words).replace("&&", " and ").replace("||", " or ")
    try:
        return bool(eval(re.sub(r"!(?!=)", " not ", words), {"__builtins__": {}}))
    except (SyntaxError, ArithmeticError, TypeError):
        return None
