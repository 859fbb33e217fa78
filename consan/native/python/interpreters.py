"""Interpreters that a program starts: the `sitecustomize` in a folder on PYTHONPATH arms consan in them (consan/process/startup)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

VARIABLE: Final = "_CONSAN_CHILDREN"  # internal: set for children only
_PATH: Final = "PYTHONPATH"
_STARTUP: Final = str(Path(__file__).parents[2] / "process" / "startup")


def followed(environment: Mapping[str, str], settings: str) -> dict[str, str]:
    """The variables with which a new interpreter is armed."""
    return {VARIABLE: settings, _PATH: os.pathsep.join(filter(None, (_STARTUP, environment.get(_PATH))))}
