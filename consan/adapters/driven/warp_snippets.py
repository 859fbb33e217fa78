"""CUDA C++ in a program of Warp (`warp.func_native`): its lines are those of the program's own file, where the text stands in it.

Read against Warp 1.19, which names lines for its own code only: a snippet has those of the file that Warp generates.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

_OURS: Final = __name__.partition(".")[0]
_AFTER: Final = '\n#line 1 "generated_by_warp.cu"\n'  # the code behind a snippet is not the program's


def with_lines(original: Callable[..., Any], *snippets: str | None, **named: str | None) -> Any:
    """`warp.func_native`: the snippets know their lines."""
    caller: FrameType | None = sys._getframe(1)
    while caller is not None and caller.f_globals.get("__name__", "").partition(".")[0] == _OURS:
        caller = caller.f_back
    if caller is None:
        return original(*snippets, **named)
    file, line = caller.f_code.co_filename, caller.f_lineno
    placed = {name: _placed(each, file, line) for name, each in named.items()}
    return original(*(_placed(each, file, line) for each in snippets), **placed)


def _placed(snippet: str | None, file: str, before: int) -> str | None:
    """A snippet behind the line where it begins in the file, the last such place up to the call; unchanged, if it is not there."""
    lines = linecache.getlines(file)
    end = sum(map(len, lines[:before]))
    at = "".join(lines).rfind(snippet, 0, end) if snippet and snippet.strip() else -1
    if snippet is None or at < 0:
        return snippet
    first = "".join(lines).count("\n", 0, at) + 1
    escaped = file.replace("\\", "\\\\").replace('"', '\\"')
    return f'\n#line {first} "{escaped}"\n{snippet}{_AFTER}'
