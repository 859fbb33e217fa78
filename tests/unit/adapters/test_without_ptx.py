"""Kernels that consan cannot check: their launches are listed, and one note says why."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from seam_fakes import FakeSession, package

from consan.adapters.without_ptx import CuTileAdapter, JaxUnseen

TILE = "def launch(stream, grid, kernel, args): return ('launched', args)\n"
JAX = {"jax": "", "jax._src": "", "jax._src.xla_bridge": "def _init_backend(platform): return platform\n"}


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    yield from package(tmp_path / "site", monkeypatch, "cuda", {"cuda": "", "cuda.tile": TILE, **JAX})


def kernel() -> None:
    """Stands for a kernel of cuTile."""


def test_its_launches_are_listed_with_a_note() -> None:
    session, adapter = FakeSession(), CuTileAdapter()
    adapter.install(session)
    tile: Any = importlib.import_module("cuda.tile")
    assert tile.launch(0, (1,), kernel, (3,)) == ("launched", (3,))
    adapter.remove()
    tile.launch(0, (1,), kernel, (3,))
    assert session.listed == ["kernel (cuTile)"]
    (note,) = session.notes
    assert note.startswith("cuTile makes no PTX")


def test_a_program_that_uses_the_gpu_by_jax_is_listed_on_a_gpu() -> None:
    session, adapter = FakeSession(), JaxUnseen()
    adapter.install(session)
    bridge: Any = importlib.import_module("jax._src.xla_bridge")
    assert bridge._init_backend("cpu") == "cpu"
    assert session.listed == []
    assert bridge._init_backend("cuda") == "cuda"
    adapter.remove()
    assert session.listed == ["what JAX launches (XLA, Pallas)"]
    (note,) = session.notes
    assert "--device cpu" in note
    assert "--xla_gpu_enable_libnvptxcompiler=false --xla_gpu_enable_libnvjitlink=false" in note, "either would assemble in the process"
