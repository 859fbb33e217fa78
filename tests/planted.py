"""Checkers in which a fault is planted."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import ModuleType

import pytest

from consan.checker import build
from consan.instrument.effects import cpp

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


def break_checker(monkeypatch: pytest.MonkeyPatch, folder: Path, modules: tuple[ModuleType, ...], file: str, old: str, new: str) -> None:
    """Let modules of consan.checker load a checker in one of whose sources a text, which stands there once, is replaced."""
    sources = build.sources()
    assert sources[file].count(old) == 1
    sources[file] = sources[file].replace(old, new)
    monkeypatch.setattr(build, "OPTIONS", ("-O0", "-std=c++17", "-shared", "-fPIC"))
    command = build.compiler()
    assert command is not None
    (folder / "broken.so").write_bytes(build.compile_checker(command, sources))
    broken = ctypes.CDLL(str(folder / "broken.so"))
    for module in modules:
        monkeypatch.setattr(module, "library", lambda: broken)
