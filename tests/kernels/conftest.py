"""The backend that a kernel test runs on: `cpu` always, `gpu` where there is one (marked, and skipped visibly elsewhere)."""

from __future__ import annotations

import pytest


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


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def backend(request: pytest.FixtureRequest) -> str:
    """`cpu`, then `gpu`."""
    if request.param == "gpu":
        request.getfixturevalue("gpu")
    return str(request.param)
