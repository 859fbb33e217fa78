"""How text looks in this process: colour and verbosity. The command line sets it once.

`--color` wins. With `auto`, NO_COLOR (not empty) turns colour off, FORCE_COLOR (not empty) turns it on also for pipes and files, and
otherwise terminals get colour. Colour changes nothing else: a pipe keeps plain ASCII and its width.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import IO, Final

from consan.dataclass import dataclass

COLORS: Final = ("auto", "always", "never")


@dataclass(frozen=True)
class Look:
    """The requested look. `quiet`: only findings and the verdict, without the facts behind it and the next commands."""

    color: str = "auto"
    quiet: bool = False


_looks: Final = [Look()]


def use(look: Look) -> None:
    """Set the look of this process."""
    _looks[0] = look


def quiet() -> bool:
    """Whether only findings and the verdict are printed."""
    return _looks[0].quiet


def is_terminal(file: IO[str]) -> bool:
    """Whether the stream is a terminal whose cursor can be moved."""
    return not file.closed and bool(getattr(file, "isatty", lambda: False)()) and os.environ.get("TERM", "") != "dumb"


def wants_color(file: IO[str]) -> bool:
    """Whether this stream gets colour."""
    color = _looks[0].color
    return color == "always" or (color == "auto" and _by_environment(os.environ, is_terminal(file)))


def _by_environment(environ: Mapping[str, str], terminal: bool) -> bool:
    if environ.get("NO_COLOR"):
        return False
    return terminal or bool(environ.get("FORCE_COLOR"))
