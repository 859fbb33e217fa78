"""How a report says that one stream waits for another: as the package spells it through which the program has made the stream."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from planted import plant

from consan.libcuda import stream_calls

NUMBA = "event.wait(second)"


def said(package: str) -> str:
    """A stream that a module of a package makes has the words of that package."""
    edges: list[str] = []
    streams = SimpleNamespace(make=lambda *, blocking, edge: edges.append(edge) or SimpleNamespace(handle=1))
    module: dict[str, Any] = {
        "__name__": package,
        "create": stream_calls.create,
        "driver": SimpleNamespace(session=SimpleNamespace(streams=streams)),
    }
    exec("create(driver, 0)", module)
    return edges[0]


@pytest.mark.parametrize(
    ("package", "edge"),
    [("numba.cuda.cudadrv", NUMBA), ("numba_cuda_mlir.numba_cuda.cudadrv", NUMBA), ("warp._src.context", "cuStreamWaitEvent")],
)
def test_an_edge_is_spelled_as_in_the_package(package: str, edge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cuda.core", raising=False)
    assert edge in said(package)


def test_without_the_name_of_a_package_its_spelling_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cuda.core", raising=False)
    plant(monkeypatch, stream_calls, '"numba_cuda", "numba_cuda_mlir"', '"numba_cuda"')
    assert NUMBA not in said("numba_cuda_mlir.numba_cuda.cudadrv")
