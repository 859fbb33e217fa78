"""Text of records and enumerations, for C++ and C."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator

from consan.instrument.layouts.records import Record, offsets, size

_BITS = 32


def structure(record: Record, ctas: int = 1) -> Iterator[str]:
    """A structure, and assertions that C++ places its members where Python does."""
    members = [f"{_type(field.type)}{field.name}{f'[{count}]' if count else ''};" for field, count in record.members(ctas)]
    yield f"typedef struct {record.name} {{ {' '.join(members)} }} {record.name};"
    yield f'static_assert(sizeof({record.name}) == {size(record, ctas)}, "{record.name}");'
    for name, at in offsets(record, ctas).items():
        if name:
            yield f'static_assert(offsetof({record.name}, {name}) == {at}, "{record.name}.{name}");'


def _type(text: str) -> str:
    """The type, with what stands between it and a name."""
    if not text.startswith("*"):
        return f"{text} "
    return f"{text.removeprefix('*mut:')} *" if text.startswith("*mut:") else f"const {text[1:]} *"


def enumeration(name: str, kind: str, members: type[enum.IntEnum] | type[enum.IntFlag], named: Callable[[str], str] = str) -> str:
    """An enumeration of a type of 32 bits, `u32` or `i32`; in C of no type. `named`: the name of a member there."""
    values = ", ".join(f"{named(member)} = {_value(int(value), kind)}" for member, value in members.__members__.items())
    return f"enum {name}{kind and f' : {kind}'} {{ {values} }};"


def _value(value: int, kind: str) -> int:
    return value - (1 << _BITS) if kind == "i32" and value >> _BITS - 1 else value
