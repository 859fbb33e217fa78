"""Checks the fields of a record that was read from a file against their types.

The dataclasses of `model` are the schema: a stored run with a word where a number belongs is refused where it is read, and not by the
renderer that would first use it.

Not handled: the meaning of values, such as unknown kinds.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Union, cast, get_args, get_origin, get_type_hints


class ShapeError(ValueError):
    """A field has a value of another type; the message names its place."""


def check(value: Any, expected: Any, place: str) -> None:
    """Raise ShapeError unless a value has a type. `place` names the value in the message, such as `findings[2].count`."""
    if expected is Any:
        return
    origin = get_origin(expected)
    if origin in (Union, types.UnionType):
        _check_union(value, get_args(expected), place)
    elif origin is tuple:
        _check_tuple(value, get_args(expected), place)
    elif origin is not None and issubclass(origin, Mapping):
        _check_mapping(value, get_args(expected), place)
    elif not _is(value, expected):
        raise ShapeError(f"{place}: expected {_word(expected)}, found {type(value).__name__}")
    elif is_dataclass(expected):
        for name, hint in _hints(cast("type", expected)):
            check(getattr(value, name), hint, f"{place}.{name}" if place else name)


def _is(value: Any, expected: type) -> bool:
    return isinstance(value, expected) and (expected is not int or not isinstance(value, bool))


def _check_union(value: Any, choices: tuple[Any, ...], place: str) -> None:
    if value is None and type(None) in choices:
        return
    (one,) = (choice for choice in choices if choice is not type(None))
    check(value, one, place)


def _check_tuple(value: Any, inside: tuple[Any, ...], place: str) -> None:
    if not isinstance(value, tuple):
        raise ShapeError(f"{place}: expected a list, found {type(value).__name__}")
    each = inside[:1] * len(value) if inside[-1] is Ellipsis else inside
    if len(each) != len(value):
        raise ShapeError(f"{place}: expected {len(each)} values, found {len(value)}")
    for index, (item, hint) in enumerate(zip(value, each, strict=True)):
        check(item, hint, f"{place}[{index}]")


def _check_mapping(value: Any, inside: tuple[Any, ...], place: str) -> None:
    if not isinstance(value, Mapping):
        raise ShapeError(f"{place}: expected an object, found {type(value).__name__}")
    for key, item in value.items():
        check(key, inside[0], f"{place}: the key {key!r}")
        check(item, inside[1], f"{place}[{key!r}]")


def _word(expected: type) -> str:
    return {str: "text", int: "a whole number", bool: "true or false", float: "a number"}.get(expected, expected.__name__)


@functools.cache
def _hints(record: Any) -> tuple[tuple[str, Any], ...]:
    known = get_type_hints(record)
    return tuple((field.name, known[field.name]) for field in fields(record))
