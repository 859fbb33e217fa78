"""Makes control characters of foreign text visible: kernel names, source lines, messages of compilers.

A terminal acts on them: a source line could clear the screen and print a verdict. Escaped are the C0 and C1 control characters, line
separators, and the characters that change the direction of text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar, cast

Item = TypeVar("Item")

_HIDDEN: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_HIDDEN_IN_LINES: Final = re.compile(_HIDDEN.pattern.replace("\x0a-", "\x0b-"))


def visible(text: str) -> str:
    """One line of text: `\\x1b` for an escape. A tab stays."""
    return _HIDDEN.sub(_escaped, text)


def visible_lines(text: str) -> str:
    """The same for text of several lines."""
    return _HIDDEN_IN_LINES.sub(_escaped, text)


def visible_item(item: Item) -> Item:
    """The same for each text in dataclasses, tuples, lists and mappings."""
    return cast("Item", _item(item))


def _item(item: Any) -> Any:
    if isinstance(item, str):
        return visible(item)
    if isinstance(item, Mapping):
        return {_item(key): _item(value) for key, value in item.items()}
    if isinstance(item, tuple | list):
        return type(item)(map(_item, item))
    if is_dataclass(item) and not isinstance(item, type):
        return replace(item, **{field.name: _item(getattr(item, field.name)) for field in fields(item)})
    return item


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
