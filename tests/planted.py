"""Checkers in which a fault is planted."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from consan.checker import build
from consan.instrument.effects import cpp
from consan.toolchain.host_library import CXX

Fault = tuple[str, str, str]  # a file of the checker, a text that stands there once, and what comes in its place


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
    return replace(build.CHECKER, options=options or ("-O0", "-std=c++17", "-shared", "-fPIC")).compile(command, sources)


def break_checker(monkeypatch: pytest.MonkeyPatch, folder: Path, modules: tuple[ModuleType, ...], file: str, old: str, new: str) -> None:
    """Let modules of consan.checker load a checker in one of whose sources a text, which stands there once, is replaced."""
    sources = build.sources()
    assert sources[file].count(old) == 1
    sources[file] = sources[file].replace(old, new)
    (folder / "broken.so").write_bytes(compiled(sources))
    broken = ctypes.CDLL(str(folder / "broken.so"))
    for module in modules:
        monkeypatch.setattr(module, "library", lambda: broken)
