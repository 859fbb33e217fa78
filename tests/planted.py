"""Checkers in which a fault is planted.

Where it fits a fault is an operator on something with a name, not on text: an effect is dropped (`dropped`), a leaf of one is wrong
(`leaf`), a decision of a rule always comes out one way, or findings of a reason are lost or get another one (`Plant`).

Compiling a checker takes many seconds. All faults of `Plant` and `quick` are in one checker, in which a number selects one of them; each
other fault of the checker has one of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import inspect
import marshal
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from twin_file import COMPILED

from consan.checker.compiled import build
from consan.instrument.effects import cpp
from consan.toolchain.host_library import CXX

_QUICK = ("-O0", "-fno-exceptions", "-fno-asynchronous-unwind-tables", "-std=c++17", "-shared", "-fPIC")
Fault = tuple[str, str, str]  # a file of the checker, a text that stands there once, and what comes in its place
_QUICK_FAULTS: list[Fault] = []  # in the order of the files of tests, which all workers collect

# In place of decided.hpp. The family: that of a decision's type, or how findings of a reason change.
_DECIDED = """
#pragma once
#include "types.hpp"
enum class Edge : u32;
enum class Inclusion : u32;
enum Family : u32 { NO_FAULT, EDGE, INCLUSION, REASON, LOST, REPLACED };
constexpr Family family_of(Edge) { return EDGE; }
constexpr Family family_of(Inclusion) { return INCLUSION; }
constexpr Family family_of(Reason) { return REASON; }
extern "C" {
struct Planted { u32 family, decision, outcome, text; };
Planted planted_fault = {};
}
template <auto Decision> bool decided(bool holds = true) {
    return planted_fault.family == family_of(Decision) && planted_fault.decision == (u32)Decision ? planted_fault.outcome : holds;
}
inline bool reported(Record &found) {
    if (planted_fault.decision != found.reason) return true;
    if (planted_fault.family == REPLACED) found.reason = NO_REASON;
    return planted_fault.family != LOST;
}
"""
_FAMILIES = ("", "Edge", "Inclusion", "Reason", "lost", "replaced")


class _Planted(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("family", "decision", "outcome", "text")]


@functools.cache
def enumerators(enumeration: str) -> dict[str, int]:
    """The names of an enumeration of the checker, and their numbers."""
    text = "".join(build.sources()[file] for file in ("decisions.hpp", "layouts.hpp"))
    match = re.search(rf"enum (?:class )?{enumeration} : u32 {{(.*?)}};", text, re.DOTALL)
    assert match is not None
    rows = [row.partition("=") for row in re.sub(r"//.*", "", match[1]).split(",") if row.strip()]
    return {name.strip(): int(number) if number else place for place, (name, _, number) in enumerate(rows)}


@functools.cache
def decisions() -> set[str]:
    """The decisions that the checker's sources make, as they are written there: `Edge::CTA_BARRIER`, `NO_WARP_SYNC`."""
    return {name for text in build.sources().values() for name in re.findall(r"\bdecided<([\w:]+)>", text)}


def outcomes() -> set[tuple[str, bool]]:
    """The decisions, each with the outcomes that make a fault: one that has no condition always holds."""
    text = "".join(build.sources().values())
    return {
        (name, outcome) for name in decisions() for outcome in (False, True) if not outcome or re.search(rf"\bdecided<{name}>\([^)]", text)
    }


def quick(file: str, old: str, new: str) -> Fault:
    """A fault for `break_checker` that needs no checker of its own. Both texts are statements, with their semicolons, or expressions."""
    if (file, old, new) not in _QUICK_FAULTS:
        _QUICK_FAULTS.append((file, old, new))
    return file, old, new


def _selected(number: int, old: str, new: str) -> str:
    """A text of the checker that is another one where a number selects that."""
    chosen = f"planted_fault.text == {number}"
    return f"if ({chosen}) {{ {new} }} else {{ {old} }}" if old.endswith(";") else f"({chosen} ? ({new}) : ({old}))"


def _with_all() -> dict[str, str]:
    """The sources of the checker that has all faults of `Plant` and `quick`."""
    sources = {**build.sources(), "decided.hpp": _DECIDED}
    for number, (file, old, new) in enumerate(_QUICK_FAULTS, start=1):
        assert sources[file].count(old) == 1, (file, old)
        sources[file] = sources[file].replace(old, _selected(number, old, new))
    return sources


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """No other process of this run of the tests is here."""
    with open(Path(os.environ[COMPILED]) / "planted.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@functools.cache
def _checker() -> ctypes.CDLL:
    with _alone():  # who comes later finds the library in the cache
        data = replace(build.CHECKER, options=_QUICK).compiled(_with_all())
    with tempfile.TemporaryDirectory() as folder:  # loaded by a name of its own: the loader takes an equal name for the same library
        path = Path(folder) / "planted.so"
        path.write_bytes(data)
        return ctypes.CDLL(str(path))


def _shared_checker(monkeypatch: pytest.MonkeyPatch, modules: tuple[ModuleType, ...]) -> _Planted:
    """The fault, none yet, of the checker that these modules load from now on."""
    checker = _checker()
    for module in modules:
        monkeypatch.setattr(module, "library", lambda: checker)
    fault = _Planted.in_dll(checker, "planted_fault")
    fault.family = fault.text = 0
    return fault


class Plant:
    """A checker, for modules of consan.checker, in which one decision at a time is wrong."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, modules: tuple[ModuleType, ...]) -> None:
        self._fault = _shared_checker(monkeypatch, modules)

    def decides(self, decision: str, outcome: bool) -> None:
        """From now on a decision comes always to `outcome`."""
        family, _, name = decision.rpartition("::")
        self._set(family or "Reason", name, outcome)

    def loses(self, reason: str) -> None:
        """From now on no finding with a reason is reported."""
        self._set("lost", reason, False)

    def replaces(self, reason: str) -> None:
        """From now on findings with a reason have none."""
        self._set("replaced", reason, False)

    def _set(self, family: str, name: str, outcome: bool) -> None:
        enumeration = family if family in ("Edge", "Inclusion") else "Reason"
        self._fault.decision, self._fault.outcome = enumerators(enumeration)[name], outcome
        self._fault.family = _FAMILIES.index(family)


def dropped(effect: str) -> Fault:
    """No rule takes an effect."""
    old = f"case {cpp.name_of(cpp.named(effect))}: return on({effect}{{log}});"
    return "effects.hpp", old, f"case {cpp.name_of(cpp.named(effect))}: return decltype(on({effect}{{log}}))(1);"


def leaf(structure: str, name: str, value: str) -> Fault:
    """A leaf or a flag of an effect is always the same. `structure`: the one that declares it."""
    text = cpp.header()
    begin = text.index(f"struct {structure} ")
    head, accessor = text[begin:].split(f" {name}(", 1)
    old = f"{head} {name}({accessor.partition(chr(10))[0]}"
    return "effects.hpp", old, f"{old.rpartition('{')[0]}{{ return {value}; }}"


def compiled(sources: dict[str, str], *options: str) -> bytes:
    """The checker of changed sources. `options`: of the compiler, in place of those for a library. Raises EnvironmentFailure."""
    command = CXX.compiler()
    assert command is not None
    return replace(build.CHECKER, options=options or _QUICK).compile(command, sources)


def break_checker(monkeypatch: pytest.MonkeyPatch, folder: Path, modules: tuple[ModuleType, ...], file: str, old: str, new: str) -> None:
    """Let modules of consan.checker load a checker in one of whose sources a text, which stands there once, is replaced."""
    if (file, old, new) in _QUICK_FAULTS:
        _shared_checker(monkeypatch, modules).text = _QUICK_FAULTS.index((file, old, new)) + 1
        return
    sources = dict(build.sources())
    assert sources[file].count(old) == 1
    sources[file] = sources[file].replace(old, new)
    (folder / "broken.so").write_bytes(compiled(sources))
    broken = ctypes.CDLL(str(folder / "broken.so"))
    for module in modules:
        monkeypatch.setattr(module, "library", lambda: broken)


def plant(monkeypatch: pytest.MonkeyPatch, module: ModuleType, old: str, new: str, name: str = "") -> None:
    """Let functions and constants of a module be those of another text, in which something that stands there once is replaced.

    `name`: the only function that changes, `Class.method`. The text may stand in others, too.
    """
    text = inspect.getsource(module)
    assert text.count(old) == 1 or (name and old in text)
    other: dict[str, Any] = {"__name__": module.__name__, "__file__": module.__file__}
    with _tables_kept():
        exec(compile(text.replace(old, new), str(module.__file__), "exec"), other)
    changes: list[tuple[object, str, object]] = [
        (right, "__code__", wrong.__code__)
        for right, wrong in _functions(module, vars(module), other)
        if right.__code__ != wrong.__code__ and name in ("", right.__qualname__)
    ]
    changes += [
        (module, constant, other[constant]) for constant in _constants(module) if not name and vars(module)[constant] != other[constant]
    ]
    assert changes, "nothing has the text"
    for change in changes:
        monkeypatch.setattr(*change)


@contextlib.contextmanager
def _tables_kept() -> Iterator[None]:
    """A module may add its functions to tables of others (`serves`): those of another text do not stay there."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "consan"]
    kept = [(table, dict(table)) for module in modules for table in list(vars(module).values()) if type(table) is dict]
    try:
        yield
    finally:
        for table, before in kept:
            if len(table) != len(before) or any(table[key] is not value for key, value in before.items()):
                table.clear()
                table.update(before)


def _constants(module: ModuleType) -> list[str]:
    """The names of values without functions and objects in them."""
    found = []
    for name, value in vars(module).items():
        with contextlib.suppress(ValueError):  # of other values
            marshal.dumps(value)
            found += [name] * (not name.startswith("__"))
    return found


def _functions(module: ModuleType, right: Mapping[str, Any], wrong: Mapping[str, Any]) -> Iterator[tuple[FunctionType, FunctionType]]:
    """The functions and methods of a module, each with the one of the same name in another text."""
    for name in right.keys() & wrong.keys():
        one, other = _function(right[name]), _function(wrong[name])
        if getattr(one, "__module__", None) != module.__name__:
            continue
        if isinstance(one, type):
            yield from _functions(module, vars(one), vars(other))
        elif isinstance(one, FunctionType):
            yield one, other


def _function(value: Any) -> Any:
    """The function in a property, a class method or a cache. Another value as it is."""
    for name in ("fget", "func", "__func__", "__wrapped__"):
        value = getattr(value, name, None) or value
    return value
