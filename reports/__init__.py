"""Reports: the findings of a run as data (`model`), their wording (`kinds`) and their renderers (`render`).

Imports nothing from consan's backends, adapters or commands, and never sees PTX: it reads the site table instead.
"""

from __future__ import annotations

from consan.reports.model import FORMATS
from consan.reports.render import FormatError, render

__all__ = ["FORMATS", "FormatError", "render"]
