"""The API reference of the guide, made from signatures and docstrings: `python tests/tutorials/api_page.py` writes it."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import consan

PAGE = Path(__file__).parents[2] / "tutorials" / "guide" / "api.md"
_HEAD = """# API reference

The public names of `consan`, from their docstrings (`python tests/tutorials/api_page.py` writes this page). [Python](python.md) shows how
they are used.
"""
_OF_CONSAN = {
    "consan.Stream": ("place", "launched"),
    "consan.TensorMap": ("on_device", "at"),
    "consan.Texture": ("at",),
}  # methods that consan calls
_FIELD = re.compile(r"^    (\w+): (.*?)(?: = .*?)?(?:  # (.*))?$", re.MULTILINE)


def page() -> str:
    """The page."""
    return "\n".join([_HEAD, *(line for name in consan.__all__ for line in _of(f"consan.{name}", getattr(consan, name)))])


def _of(name: str, what: Any) -> Iterator[str]:
    yield f"## `{name}`\n"
    if isinstance(what, ModuleType):
        yield from _words(what)
        for each, function in vars(what).items():
            if inspect.isfunction(function) and function.__module__ == what.__name__ and not each.startswith("_"):
                yield from _callable(f"{name}.{each}", function)
    elif inspect.isclass(what):
        yield from _class(name, what)
    else:
        yield from _callable(name, what)


def _class(name: str, what: type) -> Iterator[str]:
    if dataclasses.is_dataclass(what) or issubclass(what, Exception):
        yield from _words(what)
    else:
        yield from _callable(name, what)
    fields = _FIELD.findall(inspect.getsource(what)) if dataclasses.is_dataclass(what) else []
    known = {field.name for field in dataclasses.fields(what)} if dataclasses.is_dataclass(what) else set()
    rows = [f"| `{field}` | `{kind}` | {words} |".replace(" | None", " \\| None") for field, kind, words in fields if field in known]
    if rows:
        yield "\n".join(["| field | type | |", "|---|---|---|", *rows]) + "\n"
    for each, member in vars(what).items():
        if each.startswith("_") or each in known or each in _OF_CONSAN.get(name, ()):
            continue
        if isinstance(member, property):
            yield f"**`.{each}`** {inspect.getdoc(member)}\n"
        elif inspect.isfunction(member):
            yield f"**`.{each}{_signature(member)}`** {inspect.getdoc(member)}\n"


def _callable(name: str, what: Callable[..., Any]) -> Iterator[str]:
    yield f"```text\n{name}{_signature(what)}\n```\n"
    yield from _words(what)


def _signature(what: Callable[..., Any]) -> str:
    """The parameters, one a line where they are long."""
    found = inspect.signature(what)
    found = found.replace(parameters=[each for each in found.parameters.values() if each.name != "self"])
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(found))  # annotations are texts
    if len(text) < 100:
        return text
    before, _, after = text.rpartition(") -> ")
    parts = re.split(r", (?=\*|\w+:)", before[1:])
    return "(\n    " + ",\n    ".join(parts) + f",\n) -> {after}"


def _words(what: object) -> Iterator[str]:
    yield f"{inspect.getdoc(what)}\n"


if __name__ == "__main__":
    PAGE.write_text(page())
