"""Which modules may be recorded whose launches may also take called hooks: the two forms are two modules, with variables of their own.

So a module with variables that its program can reach has one form only, the one with called hooks.
"""

from __future__ import annotations

import re
from typing import Final

from consan.instrument.ptx import parse

# Texts of printf and assert, and tables of libdevice: nobody writes them.
_CONSTANT: Final = re.compile(r"\$str|__unnamed_|__PRETTY_FUNCTION__|__func__|__FUNCTION__|__cudart_")
_WORD: Final = re.compile(r"[A-Za-z_$%][\w$]*")


def keeps_state(ptx: str) -> str:
    """A variable of a module that its kernels use, and that the program may write; empty if there is none."""
    module = parse(ptx)
    outside = (each for each in module.variables if each.space not in ("shared", "local"))
    names = {name.name for each in outside for name in each.names if not _CONSTANT.search(name.name)}
    if not names:
        return ""
    used = (word for function in module.functions for word in _WORD.findall(function.text))
    return next((word for word in used if word in names), "")
