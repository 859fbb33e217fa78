"""Syntax colours for source excerpts in HTML: tokens by Pygments, five classes of the page's style sheet.

Not handled: comments and strings that begin above the excerpt, and files of unknown type (they stay plain).
"""

from __future__ import annotations

import functools
import html
from collections.abc import Iterable, Sequence
from typing import Any, Final

from consan import late

# The lexer by file suffix. PTX has none; the C lexer finds its registers, numbers and comments.
_LEXERS: Final = {
    **dict.fromkeys(("cu", "cuh", "h", "hpp", "hxx", "cc", "cpp", "cxx", "c", "inl"), "cuda"),
    **dict.fromkeys(("py", "pyi"), "python"),
    "ptx": "c",
}
# Prefixes of Pygments' token types -> class; the first match wins.
_CLASSES: Final = (
    ("Comment.Preproc", "p"),
    ("Comment", "c"),
    ("Keyword", "k"),
    ("Literal.String", "s"),
    ("Literal.Number", "n"),
    ("Operator.Word", "k"),
    ("Name.Builtin", "b"),
    ("Name.Decorator", "p"),
)


def lines(texts: Sequence[str], file: str) -> list[str]:
    """Each line as HTML: escaped, with `<span>` around coloured tokens."""
    lexer = _lexer(_LEXERS.get(file.rsplit(".", 1)[-1].lower(), ""))
    if lexer is None:
        return [html.escape(text) for text in texts]
    rows = [""]
    for kind, text in lexer.get_tokens("\n".join(texts)):
        for index, part in enumerate(text.split("\n")):
            if index:
                rows.append("")
            rows[-1] += _span(_class(str(kind).removeprefix("Token.")), part)
    return rows[: len(texts)]


def _span(style: str, text: str) -> str:
    shown = html.escape(text)
    return f'<span class="{style}">{shown}</span>' if style and text.strip() else shown


def _class(kind: str) -> str:
    return next((style for name, style in _CLASSES if kind.startswith(name)), "")


@functools.cache
def _lexer(name: str) -> Any:
    """The Pygments lexer. Imported with the first page, since most runs write none."""
    if not name:
        return None
    return late.lexers.get_lexer_by_name(name, stripnl=False, ensurenl=False)


def classes() -> Iterable[str]:
    """The classes that the style sheet must define."""
    return {style for _, style in _CLASSES}
