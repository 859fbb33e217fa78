"""`dataclass` of the standard library, for a quick start.

`__init__` is compiled when a class makes its first instance; the other methods are closures. The standard library compiles up to six
methods for each class: 2,100 for the 411 classes that a session imports, which is half of the time of these imports. Its own decorator
still reads the fields, so `fields`, `replace` and inheritance are as they were; `slots` and `order` are left to it. There is no `InitVar`,
and no `KW_ONLY`.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Iterable
from dataclasses import MISSING, FrozenInstanceError
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **given: bool) -> Any:
        """Make a class a dataclass."""
        return _made(cls, given) if cls is not None else lambda each: _made(each, given)


def _made(cls: type, given: dict[str, bool]) -> type:
    if given.get("slots") or given.get("order"):
        return dataclasses.dataclass(**given)(cls)
    own, frozen = set(cls.__dict__) | ({"__doc__"} if cls.__doc__ else set()), given.get("frozen", False)
    explicit = "__hash__" in own and (cls.__hash__ is not None or "__eq__" not in own)  # a class with __eq__ alone has None
    if "__doc__" not in own:
        cls.__doc__ = cls.__name__  # or a signature is made for it, which is slow
    dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=given.get("kw_only", False))(cls)
    fields, methods = dataclasses.fields(cls), dict[str, Any]()
    if given.get("init", True):
        methods["__init__"] = _first_init(cls, frozen=frozen)
    if given.get("repr", True):
        methods["__repr__"] = _repr
    if given.get("eq", True):
        methods["__eq__"] = _eq(_values(each.name for each in fields if each.compare))
        hashed = _values(each.name for each in fields if (each.compare if each.hash is None else each.hash))
        methods |= {} if explicit else {"__hash__": _hash(hashed) if frozen else None}
    if frozen:
        methods |= _frozen(cls, frozenset(each.name for each in fields))
    for name, method in methods.items():
        if name not in own or name == "__hash__":
            setattr(cls, name, method)
    return cls


def _first_init(cls: Any, *, frozen: bool) -> Callable[..., None]:
    """The `__init__` of the first instance: compiles the one of all others, which takes its place."""

    def first(self: object, *args: object, **named: object) -> None:
        cls.__init__ = _compiled_init(cls, frozen=frozen)
        cls.__init__(self, *args, **named)

    return first


def _compiled_init(cls: Any, *, frozen: bool) -> Callable[..., None]:
    names: dict[str, Any] = {"_missing": MISSING, "_put": object.__setattr__, "__name__": __name__}
    positional, named, lines = ["self"], list[str](), list[str]()
    for each in dataclasses.fields(cls):
        name = each.name
        default, value = f"_default_{name}", name
        if each.default is not MISSING:
            names[default], parameter = each.default, f"{name}={default}"
        elif each.default_factory is not MISSING:
            names[default], parameter = each.default_factory, f"{name}=_missing"
            value = f"{default}() if {name} is _missing else {name}" if each.init else f"{default}()"
        else:
            parameter = name
        if each.init:
            (named if each.kw_only else positional).append(parameter)
        elif each.default_factory is MISSING:
            continue  # the class has its default, or __post_init__ sets it
        lines.append(f"_put(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join([*positional, *(['*', *named] if named else [])])}):\n  " + "\n  ".join(lines or ["pass"]), names)
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _values(names: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The function of an instance that gives a tuple of these fields."""
    match [*names]:
        case []:
            return lambda _: ()
        case [name]:
            one = attrgetter(name)
            return lambda self: (one(self),)
        case several:
            return attrgetter(*several)


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, Any], bool]:
    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def hashed(self: object) -> int:
        return hash(values(self))

    return hashed


def _frozen(cls: type, names: frozenset[str]) -> dict[str, Callable[..., None]]:
    """The methods that refuse to change a field. A subclass that is no dataclass may have other attributes."""

    def put(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def remove(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        object.__delattr__(self, name)

    return {"__setattr__": put, "__delattr__": remove}
