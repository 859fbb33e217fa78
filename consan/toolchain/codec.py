"""Dataclasses as JSON, for values that are kept in the cache.

Reading builds dataclasses and members of enumerations of `consan.instrument`, and the built-in containers, and nothing else. It calls no
constructor and runs no code that a file names, unlike pickle.

Not handled: fields that hold functions, arrays or cycles (TypeError on writing).
"""

from __future__ import annotations

import enum
import functools
import json
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, Final

FORM: Final = "2"  # of what is written: a part of the key under which it is kept
_ROOM: Final = "consan.instrument."  # the package whose classes may be read
_CONTAINERS: Final[dict[str, type]] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
_RECORD, _MEMBER, _DICT = "record", "member", "dict"


def dumps(value: Any) -> bytes:
    """The value as JSON. Raises TypeError for a type that cannot be read again."""
    return json.dumps(_plain(value), separators=(",", ":")).encode()


def loads(data: bytes) -> Any:
    """The value that `dumps` wrote. Raises ValueError if it is none."""
    try:
        return _value(json.loads(data))
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, ImportError, RecursionError) as error:
        raise ValueError(f"not a stored value: {type(error).__name__}: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):  # before int: an IntEnum is both
        # Several flags together have no name of a member, nor have none.
        return [_MEMBER, _name(type(value)), value.value if isinstance(value, enum.Flag) else value.name]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return [_DICT, [[_plain(key), _plain(each)] for key, each in value.items()]]
    if is_dataclass(value) and not isinstance(value, type):
        return [_RECORD, _name(type(value)), *(_plain(getattr(value, name)) for name in _fields(type(value)))]
    if type(value).__name__ in _CONTAINERS:
        return [type(value).__name__, *map(_plain, value)]
    raise TypeError(f"{type(value).__name__} cannot be stored")


def _value(plain: Any) -> Any:
    if not isinstance(plain, list):
        return plain
    tag, *rest = plain
    if tag == _RECORD:
        return _record(_class(rest[0]), rest[1:])
    if tag == _MEMBER:
        kind, which = _class(rest[0]), rest[1]
        return kind(which) if issubclass(kind, enum.Flag) else kind[which]
    if tag == _DICT:
        return {_value(key): _value(each) for key, each in rest[0]}
    return _CONTAINERS[tag](map(_value, rest))


def _record(kind: type, values: list[Any]) -> Any:
    made: Any = object.__new__(kind)
    for name, value in zip(_fields(kind), values, strict=True):
        object.__setattr__(made, name, _value(value))
    return made


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


@functools.cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@functools.cache
def _class(name: str) -> Any:
    """A dataclass or an enumeration of the package, by its name. Raises KeyError for any other."""
    module, _, path = name.partition(":")
    if not module.startswith(_ROOM):
        raise KeyError(name)
    found = getattr(import_module(module), path)
    if not isinstance(found, type) or not (is_dataclass(found) or issubclass(found, enum.Enum)):
        raise KeyError(name)
    return found
