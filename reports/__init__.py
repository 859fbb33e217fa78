"""Reports: the findings of a run as data (`model`), their words (`catalogue`, `words`) and their renderers (`formats`).

Imports nothing from consan's backends, adapters or commands, and never sees PTX: it reads the site table instead.
"""

from __future__ import annotations

from consan.reports.formats.render import FormatError, render
from consan.reports.model import FORMATS

__all__ = ["FORMATS", "FormatError", "render"]
