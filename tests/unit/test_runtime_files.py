"""The files of the shadow runtime: what they include, that nothing is declared ahead, and how large they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from consan.instrument.layout import header
from consan.instrument.runtime import Variant
from consan.session import compile_runtime
from consan.toolchain import find

FOLDER = Path(__file__).parents[2] / "instrument" / "runtime"
FILES = sorted(FOLDER.glob("*.cuh"))
LONGEST = 760
# Largest variant: all that is conditional is there, but for what clusters replace.
LARGEST = Variant(partial=True, asynchronous=True, flags=True, engine=True, cluster=2, named=4, isa=True)


def _includes(path: Path) -> list[str]:
    return re.findall(r'^#include "(\w+\.cuh)"$', path.read_text(), re.MULTILINE)


def _closure(name: str, seen: dict[str, None], above: tuple[str, ...] = ()) -> dict[str, None]:
    """What a file includes, itself last; a cycle is an error."""
    assert name not in above, f"includes go round: {' -> '.join((*above, name))}"
    for each in _includes(FOLDER / name):
        _closure(each, seen, (*above, name))
    seen.setdefault(name)
    return seen


def test_the_root_includes_every_file() -> None:
    assert sorted(_closure("consan.cuh", {})) == [path.name for path in FILES]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_declares_nothing_ahead(path: Path) -> None:
    ahead = re.findall(r"^(?:template <[^>]*> )?(?:DEVICE|COLD|HOOK) [^{}=]*\);", path.read_text(), re.MULTILINE)
    assert ahead == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_says_what_it_is_and_is_not_too_long(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert lines[0].startswith("// ")
    assert len(lines) <= LONGEST


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_state_does_not_include_hooks(path: Path) -> None:
    """A file of hooks joins several concerns; what keeps state stands below it."""
    if not any(line.startswith("HOOK ") for line in path.read_text().splitlines()) and path.name not in ("consan.cuh", "waits.cuh"):
        assert not [name for name in _includes(path) if name.endswith("_hooks.cuh")]


@pytest.mark.skipif(find.locate(find.NVRTC) is None, reason="NVRTC is not installed")
@pytest.mark.parametrize("name", ["clock", "access", "operation", "overlaps", "cluster", "deadlock", "globals"])
def test_a_file_compiles_with_what_it_includes(name: str) -> None:
    texts = [(FOLDER / each).read_text() for each in _closure(f"{name}.cuh", {})]
    plain = re.sub(r'^#(?:include "\w+\.cuh"|pragma once)\n', "", "\n".join(texts), flags=re.MULTILINE)
    assert compile_runtime(header(2) + plain, "sm_90", LARGEST.defines())
