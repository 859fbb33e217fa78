"""The registry of renderers. A new output format is one file and one row here.

A renderer is a function from a report to text, and decides nothing. Its module is imported when
the format is used.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from consan.reports.model import FORMATS, Report


def _renderer(module: str, function: str = "render") -> Callable[..., str]:
    def render_lazily(report: Report, **how: Any) -> str:
        text: str = getattr(import_module(f"consan.reports.formats.{module}"), function)(report, **how)
        return text

    return render_lazily


FORMATS.update(
    {
        "text": _renderer("text"),
        "short": _renderer("short"),
        "json": _renderer("json_format", "dumps"),
        "sarif": _renderer("sarif"),
        "html": _renderer("html"),
    }
)


class FormatError(ValueError):
    """A format without a renderer; the message lists the formats."""


def render(
    report: Report,
    format: str = "text",  # noqa: A002 - the name of the option and of the contract
    *,
    notes: bool = False,
    timeline: bool = False,
    details: bool = False,
) -> str:
    """The report as text in one of FORMATS, plain (no colour, ASCII), for a file or a pipe. Raises FormatError for another format.

    Text and lines have findings of severity note with `notes`, the text draws each finding with `timeline` and fills more than a screen
    with `details`; HTML always has all.
    """
    renderer = FORMATS.get(format)
    if renderer is None:
        raise FormatError(f"format '{format}' is unknown; choose from {', '.join(FORMATS)}")
    return renderer(report, notes=notes, timeline=timeline, details=details) if format in ("text", "short") else renderer(report)
