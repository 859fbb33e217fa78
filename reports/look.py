"""How text looks in this process: in colour or not, and how much of it. One choice, made by the command line.

`--color` wins; with `auto`, NO_COLOR (not empty) takes colour away, FORCE_COLOR (not empty) gives it to pipes and files too, and
otherwise a terminal has colour. Colour changes nothing else: a pipe keeps its plain ASCII and its width.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Final

COLORS: Final = ("auto", "always", "never")


@dataclass(frozen=True)
class Look:
    """What was asked for. `quiet`: findings and the verdict, without what the verdict stands on and what to do next."""

    color: str = "auto"
    quiet: bool = False


_looks: Final = [Look()]


def use(look: Look) -> None:
    """Let this hold from now on."""
    _looks[0] = look


def quiet() -> bool:
    """Whether only findings and the verdict are asked for."""
    return _looks[0].quiet


def is_terminal(file: IO[str]) -> bool:
    """Whether somebody watches, with a cursor that can be moved."""
    return not file.closed and bool(getattr(file, "isatty", lambda: False)()) and os.environ.get("TERM", "") != "dumb"


def wants_color(file: IO[str]) -> bool:
    """Whether this stream gets colour."""
    color = _looks[0].color
    return color == "always" or (color == "auto" and _by_environment(os.environ, is_terminal(file)))


def _by_environment(environ: Mapping[str, str], terminal: bool) -> bool:
    if environ.get("NO_COLOR"):
        return False
    return terminal or bool(environ.get("FORCE_COLOR"))
