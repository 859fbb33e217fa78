"""The files of the shadow runtime: what they include, and that nothing is declared ahead. Their sizes are in test_house.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from consan.instrument.abi.header import header
from consan.instrument.runtime import Variant
from consan.toolchain import find, nvrtc

FOLDER = Path(__file__).parents[3] / "instrument" / "runtime"
FILES = sorted(FOLDER.glob("*.cuh"))
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
def test_a_file_names_each_file_once(path: Path) -> None:
    found = _includes(path)
    assert found == sorted(set(found), key=found.index)
    lines = path.read_text().splitlines()
    first = next((k for k, line in enumerate(lines) if line.startswith("#include")), 0)
    assert all(line.startswith("#include") for line in lines[first : first + len(found)])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_state_does_not_include_hooks(path: Path) -> None:
    """A file of hooks joins several concerns; what keeps state stands below it."""
    if not any(line.startswith("HOOK ") for line in path.read_text().splitlines()) and path.name not in ("consan.cuh", "waits.cuh"):
        assert not [name for name in _includes(path) if name.endswith("_hooks.cuh")]


@pytest.mark.skipif(find.locate(find.NVRTC) is None or nvrtc.version() < (13, 0), reason="no NVRTC that can stop after its front end")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_compiles_with_what_it_includes(path: Path) -> None:
    texts = [(FOLDER / each).read_text() for each in _closure(path.name, {})]
    plain = re.sub(r'^#(?:include "\w+\.cuh"|pragma once)\n', "", "\n".join(texts), flags=re.MULTILINE)
    options = ("-rdc=true", "--fdevice-syntax-only")
    nvrtc.compile_ptx(header(LARGEST) + plain, arch="sm_90", defines=dict(LARGEST.defines()), options=options)
