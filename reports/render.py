"""The registry of renderers: a new output is one file and one row here.

A renderer is a function from a report to text. It prints what the model holds and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from consan.reports import html, json_format, sarif, text
from consan.reports.model import Report

FORMATS: Final[dict[str, Callable[[Report], str]]] = {
    "text": text.render,
    "json": json_format.dumps,
    "sarif": sarif.render,
    "html": html.render,
}


class FormatError(ValueError):
    """A format without a renderer; the message says which there are."""


def render(report: Report, format: str = "text", *, notes: bool = False) -> str:  # noqa: A002 - the name of the option and of the contract
    """The report as text in one of FORMATS, plain (no colour, ASCII): what a file or a pipe gets.

    `notes`: the text prints findings of severity note in full; the other formats always have them.
    """
    if format == "text":
        return text.render(report, notes=notes)
    renderer = FORMATS.get(format)
    if renderer is None:
        raise FormatError(f"format '{format}' is unknown; choose from {', '.join(FORMATS)}")
    return renderer(report)
