"""`dataclass` of the standard library, for a quick start.

`__init__`, `__eq__` and `__hash__` are compiled when they are first called; the other methods are closures. The standard library compiles
up to six methods for each class: 2,100 for the 411 classes that a session imports, which is half of the time of these imports. Its own
decorator still reads the fields, so `fields`, `replace` and inheritance are as they were; `slots` and `order` are left to it. There is no
`InitVar`, and no `KW_ONLY`.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Sequence
from dataclasses import MISSING, FrozenInstanceError
from typing import TYPE_CHECKING, Any, NamedTuple

__all__ = ["compile_now", "dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **given: bool) -> Any:
        """Make a class a dataclass."""
        return _made(cls, given) if cls is not None else lambda each: _made(each, given)


def _made(cls: type, given: dict[str, bool]) -> type:
    if given.get("slots") or given.get("order"):
        return dataclasses.dataclass(**given)(cls)
    own, frozen = set(cls.__dict__), given.get("frozen", False)
    explicit = "__hash__" in own and (cls.__hash__ is not None or "__eq__" not in own)  # a class with __eq__ alone has None
    if not cls.__doc__:
        cls.__doc__ = cls.__name__  # or a signature is made for it, which is slow
    dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=given.get("kw_only", False))(cls)
    methods = dict[str, Any]()
    if given.get("init", True):
        methods["__init__"] = _late(cls, "__init__", lambda: _init(cls, frozen=frozen))
    if given.get("repr", True):
        methods["__repr__"] = _repr
    if given.get("eq", True):
        methods["__eq__"] = _late(cls, "__eq__", lambda: _eq(cls))
        hashed = _late(cls, "__hash__", lambda: _hash(cls)) if frozen else None
        methods |= {} if explicit else {"__hash__": hashed}
    if frozen:
        methods |= _frozen(cls, frozenset(each.name for each in dataclasses.fields(cls)))
    for name, method in methods.items():
        if name not in own or name == "__hash__":
            setattr(cls, name, method)
    return cls


class _Text(NamedTuple):
    """A method: its parameters, its lines, and what these name."""

    parameters: Sequence[str]
    lines: Sequence[str]
    names: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it


def _late(cls: Any, name: str, text: Callable[[], _Text]) -> Callable[..., Any]:
    """A method that its first call compiles. The compiled one takes its place."""

    def compiled() -> Callable[..., Any]:
        parameters, lines, names = text()
        names = {**names, "__name__": __name__}
        exec(f"def {name}({', '.join(('self', *parameters))}):\n  " + "\n  ".join(lines or ["pass"]), names)
        names[name].__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, names[name])
        method: Callable[..., Any] = names[name]
        return method

    def first(self: object, *args: object, **named: object) -> Any:
        return compiled()(self, *args, **named)

    vars(first)["compiled"] = compiled
    return first


def compile_now(*classes: Any) -> None:
    """Compile `__init__` of dataclasses now: the first object of each is made where that must not take long."""
    for each in classes:
        vars(each.__init__).get("compiled", lambda: None)()


def _init(cls: Any, *, frozen: bool) -> _Text:
    names: dict[str, Any] = {"_missing": MISSING, "_put": object.__setattr__}
    positional, named, lines = list[str](), list[str](), list[str]()
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
    return _Text([*positional, *(["*", *named] if named else [])], lines, names)


def _eq(cls: Any) -> _Text:
    mine, others = (_tuple(owner, [each.name for each in dataclasses.fields(cls) if each.compare]) for owner in ("self", "other"))
    return _Text(["other"], [f"return {mine} == {others} if other.__class__ is self.__class__ else NotImplemented"])


def _hash(cls: Any) -> _Text:
    names = [each.name for each in dataclasses.fields(cls) if (each.compare if each.hash is None else each.hash)]
    return _Text([], [f"return _hash({_tuple('self', names)})"], {"_hash": hash})


def _tuple(owner: str, names: Sequence[str]) -> str:
    return f"({' '.join(f'{owner}.{name},' for name in names)})"


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


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
