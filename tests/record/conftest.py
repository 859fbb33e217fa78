"""What tests of the recording engine need: a C++ compiler, and some a GPU."""

from __future__ import annotations

import pytest

from consan.checker import build


def _gpu_problem() -> str | None:
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed"
    try:
        return None if cupy.cuda.runtime.getDeviceCount() else "no NVIDIA GPU"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no NVIDIA GPU: {error}"


@pytest.fixture(scope="session")
def gpu() -> None:
    """Skips the test that asks for it where there is no GPU."""
    problem = _gpu_problem()
    if problem:
        pytest.skip(problem)


@pytest.fixture(autouse=True)
def cxx() -> None:
    """Skips every test of this folder where nothing can compile the checker."""
    if build.compiler() is None:
        pytest.skip("no C++ compiler and no ziglang")
