"""Functions of CUDA's library for devices (cudadevrt) that a module declares and calls: that library is machine code.

`cudaGraphSetConditional(handle, value)`: the handle is the address of the condition (graphs/conditional_calls.py). It is a plain store,
since calls that may run at the same time are undefined (cuda_device_runtime_api.h). Each call has a function of its own, with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_NAME: Final = "cudaGraphSetConditional"
_DECLARED: Final = re.compile(rf"\.extern(\s+\.func\s+){_NAME}(\s*\(([^()]*)\)\s*;)")
_CALL: Final = re.compile(rf"\b{_NAME}\b(?=\s*,)")
_LINE: Final = re.compile(r"^\s*\.loc\b.*$", re.MULTILINE)
_STORE: Final = """
.func {name}(.param .b64 handle, .param .b32 value)
{{
    .reg .b64 %address;
    .reg .b32 %value;
{line}
    ld.param.b64 %address, [handle];
    ld.param.b32 %value, [value];
    st.global.b32 [%address], %value;
    ret;
}}
"""


def with_device_runtime(text: str) -> str:
    """PTX that defines what it calls of that library. Its lines have their numbers."""
    declared = _DECLARED.search(text)
    if declared is None:
        return text
    lines = list(_lines_of_calls(text))
    names = [f"{_NAME}__{number}" for number in range(1, len(lines) + 1)]
    left = iter(names)
    called = _CALL.sub(lambda _: next(left), text)
    heads = " ".join(f".func {name}(.param .b64 handle, .param .b32 value);" for name in names)
    called = _DECLARED.sub(lambda found: heads + "\n" * found[0].count("\n"), called)
    return called + "".join(_STORE.format(name=name, line=line) for name, line in zip(names, lines, strict=True))


def _lines_of_calls(text: str) -> Iterator[str]:
    """The `.loc` before each call; nothing where there is none."""
    places = list(_LINE.finditer(text))
    for call in _CALL.finditer(text):
        yield next((place[0] for place in reversed(places) if place.end() <= call.start()), "")
