"""The variable of the program that a result is assigned to, for names in reports."""

from __future__ import annotations

import linecache
import re
import sys
from pathlib import Path
from typing import Final

_ASSIGNED: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*(?::[^=]+)?=(?!=)")
_OWN: Final = str(Path(__file__).resolve().parents[1])


def assigned() -> str:
    """The variable that the line of the program assigns to."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    found = _ASSIGNED.match(linecache.getline(frame.f_code.co_filename, frame.f_lineno))
    return found[1] if found else "buffer"
