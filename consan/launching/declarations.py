"""The kernels that CUDA C++ declares. The text is searched, not parsed: a kernel declared by a macro is not found."""

from __future__ import annotations

import re
from typing import Final

from consan.dataclass import dataclass

_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# The name is the first word before a parenthesis, except attributes such as __launch_bounds__(128).
_KERNEL: Final = re.compile(r"__global__\b[^;{]*?\b(?!__)([A-Za-z_]\w*)\s*\(")


@dataclass(frozen=True)
class Declaration:
    """A kernel as the source declares it."""

    name: str
    parameters: tuple[str, ...]
    template: bool = False


def declarations(source: str) -> list[Declaration]:
    """The kernels declared in CUDA C++, including templates."""
    text = _COMMENT.sub(" ", source)
    found = (Declaration(m[1], _parameters(text, m.end()), _is_template(text, m.start())) for m in _KERNEL.finditer(text))
    return list({one.name: one for one in found}.values())


def kernel_names(source: str) -> list[str]:
    """Their names."""
    return [one.name for one in declarations(source)]


def _is_template(text: str, at: int) -> bool:
    begin = max(text.rfind(mark, 0, at) for mark in ";}")
    return re.search(r"\btemplate\s*<", text[begin + 1 : at]) is not None


def _parameters(text: str, begin: int) -> tuple[str, ...]:
    """The text between the parentheses, split at top-level commas."""
    depth, parts, start = 1, [], begin
    for position in range(begin, len(text)):
        depth += (text[position] in "(<[{") - (text[position] in ")>]}")
        if depth == 0 or (depth == 1 and text[position] == ","):
            parts.append(" ".join(text[start:position].split()))
            start = position + 1
        if depth == 0:
            break
    return tuple(part for part in parts if part not in ("", "void"))
