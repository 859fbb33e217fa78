"""Checkers in which a fault is planted."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import ModuleType

import pytest

from consan.checker import build


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
