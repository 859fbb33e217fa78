"""The page of a kind of finding, as text for `consan explain` and as Markdown for reports/KINDS.md and SARIF.

The order of the parts is decided here; the words are in explanations/. `consan explain --markdown -o reports/KINDS.md` regenerates the
documentation, and a test compares it.
"""

from __future__ import annotations

import textwrap
from typing import Final

from consan.reports.catalogue.catalogue import KINDS
from consan.reports.explanations import explanations

WIDTH: Final = 90
_TITLE: Final = """# Kinds of findings

The findings of consan, why the PTX ISA says so, and a kernel with the defect beside one without. Written by
`consan explain --markdown`; `consan explain KIND` prints a page of it. Section numbers are those of PTX ISA 9.1."""


def page(kind_id: str) -> str:
    """The page of one kind as text."""
    kind, explanation = KINDS[kind_id], explanations()[kind_id]
    blocks = (
        f"{kind.id}: {kind.title} ({kind.severity})",
        _fill(explanation.about),
        _labelled("Why", explanation.isa),
        _labelled("PTX ISA", "; ".join(explanation.sections)),
        "Wrong:\n\n" + textwrap.indent(explanation.racy.rstrip(), "    "),
        "Right:\n\n" + textwrap.indent(explanation.fixed.rstrip(), "    "),
        _labelled("How to fix it", explanation.repair),
        f"Try it:\n\n    consan check FILE.cu {explanation.launch}",
        "To accept one finding, with a reason:\n\n" + textwrap.indent(suppression(kind_id), "    "),
    )
    return "\n\n".join(blocks) + "\n"


def summary() -> str:
    """One line for each kind."""
    width = max(map(len, KINDS))
    lines = [f"  {kind.id:<{width}}  {kind.title} ({kind.severity})" for kind in KINDS.values()]
    return "Kinds of findings; `consan explain KIND` tells more:\n" + "\n".join(lines) + "\n"


def markdown(kind_id: str) -> str:
    """The page of one kind as Markdown, with a heading of the second level."""
    kind, explanation = KINDS[kind_id], explanations()[kind_id]
    blocks = (
        f"## {kind.id}",
        f"*{kind.title}, {kind.severity}.* " + _one_line(explanation.about),
        f"**Why.** {_one_line(explanation.isa)} (PTX ISA: {'; '.join(explanation.sections)})",
        "**Wrong**",
        _fenced("cuda", explanation.racy),
        "**Right**",
        _fenced("cuda", explanation.fixed),
        f"**How to fix it.** {_one_line(explanation.repair)}",
        "**Try it**",
        _fenced("console", f"$ consan check FILE.cu {explanation.launch}"),
        "**To accept one finding, with a reason**",
        _fenced("text", suppression(kind_id)),
    )
    return "\n\n".join(blocks) + "\n"


def document() -> str:
    """All pages as one Markdown document."""
    contents = "\n".join(f"- [{kind.id}](#{kind.id}): {kind.title}" for kind in KINDS.values())
    return "\n".join((_TITLE + "\n", contents + "\n", *map(markdown, KINDS)))


def suppression(kind_id: str) -> str:
    """The three ways to suppress a finding."""
    return "\n".join(
        (
            f"// consan: allow({kind_id}) REASON",
            "    in the source, at either line or right above it",
            f'[[tool.consan.suppressions]] kind = "{kind_id}", reason = "REASON"',
            "    in pyproject.toml; consan report RUN.json --emit-suppression writes it",
            f'@pytest.mark.consan_allow("{kind_id}", reason="REASON")',
            "    on a test",
        )
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _labelled(label: str, text: str) -> str:
    used = len(f"{label}: ")
    return f"{label}: " + textwrap.fill(_one_line(text), WIDTH, initial_indent=" " * used)[used:]


def _fill(text: str) -> str:
    return textwrap.fill(_one_line(text), WIDTH)


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"
