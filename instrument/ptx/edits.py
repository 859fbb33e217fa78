"""Edits of a module's text.

Defines the order of insertions at one place, so that passes are independent: text after the node that ends there, then text at the
offset itself, then text before the node that starts there; within each group, in the order of the calls. Two replacements must not
overlap, and nothing may be inserted inside a replaced node. The result is not parsed again; callers that need that must do it.
"""

from __future__ import annotations

from typing import NamedTuple

from consan._errors import InternalError
from consan.instrument.ptx.tree import Module, Node

_AFTER, _AT, _BEFORE, _REPLACE = range(4)


class _Edit(NamedTuple):
    offset: int
    rank: int
    number: int
    end: int
    text: str


class Edits:
    """Changes to a module's text, collected and applied at once."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._edits: list[_Edit] = []

    def __len__(self) -> int:
        return len(self._edits)

    def _add(self, offset: int, rank: int, end: int, text: str) -> None:
        self._edits.append(_Edit(offset, rank, len(self._edits), end, text))

    def insert_before(self, node: Node, text: str) -> None:
        """Insert text right before a node."""
        self._add(node.start, _BEFORE, node.start, text)

    def insert_after(self, node: Node, text: str) -> None:
        """Insert text right after a node."""
        self._add(node.end, _AFTER, node.end, text)

    def insert_at(self, offset: int, text: str) -> None:
        """Insert text at an offset of the module's text."""
        if not 0 <= offset <= len(self._module.text):
            raise InternalError(f"{self._module.name}: no offset {offset} in a text of {len(self._module.text)} characters")
        self._add(offset, _AT, offset, text)

    def replace(self, node: Node, text: str) -> None:
        """Replace a node by text; an empty text deletes it."""
        self._add(node.start, _REPLACE, node.end, text)

    def apply(self) -> str:
        """The edited text."""
        text = self._module.text
        pieces: list[str] = []
        offset = 0
        for edit in sorted(self._edits):
            if edit.offset < offset:
                line, column = self._module.source.position(edit.offset)
                raise InternalError(f"{self._module.name}:{line}:{column}: an edit inside text that another edit replaces")
            pieces += (text[offset : edit.offset], edit.text)
            offset = edit.end
        pieces.append(text[offset:])
        return "".join(pieces)

    def line_map(self) -> list[int]:
        """For each line of the edited text (index 0 is line 1), the line of the original text that its first character comes from.

        A line that begins inside inserted text maps to the original line of the insertion.
        """
        text = self._module.text
        lines, offset, current = [1], 0, 1
        for edit in sorted(self._edits):
            for _ in range(text.count("\n", offset, edit.offset)):
                current += 1
                lines.append(current)
            lines += [current] * edit.text.count("\n")
            current += text.count("\n", edit.offset, edit.end)
            offset = edit.end
        lines += range(current + 1, current + 1 + text.count("\n", offset))
        return lines
