"""Surfaces on a GPU: the twins of tests/kernels/global that access one, with surface objects of arrays in place of their numbers."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))

import twin_file

import consan
from consan.backends import driver as api
from consan.backends.cuda import CudaBackend

REASON = api.why_unavailable()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(REASON is not None, reason=f"no GPU: {REASON}")]
WORDS, STORABLE = 3, 2  # CU_AD_FORMAT_UNSIGNED_INT32, CUDA_ARRAY3D_SURFACE_LDST
SIZES = {"surface_within_a_cta": (64, 2), "surface_handed_to_next_cta": (64, 0), "surface_sums_of_ctas": (64, 2)}  # words and rows
Make = Callable[[int, int], int]


class _Array(ctypes.Structure):
    """CUDA_ARRAY3D_DESCRIPTOR."""

    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("width", "height", "depth")),
        *(("format", ctypes.c_int), ("channels", ctypes.c_uint), ("flags", ctypes.c_uint)),
    )


class _Resource(ctypes.Structure):
    """CUDA_RESOURCE_DESC of an array."""

    _fields_ = (("kind", ctypes.c_int), ("array", ctypes.c_void_p), ("rest", ctypes.c_char * 120), ("flags", ctypes.c_uint))


@pytest.fixture
def surface() -> Iterator[Make]:
    """Makes surface objects of new arrays of words."""
    backend, library, made = CudaBackend(), api.driver(), list[tuple[ctypes.c_uint64, ctypes.c_void_p]]()

    def make(width: int, height: int) -> int:
        array, handle = ctypes.c_void_p(), ctypes.c_uint64()
        library.call("cuArray3DCreate_v2", ctypes.byref(array), ctypes.byref(_Array(width, height, 0, WORDS, 1, STORABLE)))
        library.call("cuSurfObjectCreate", ctypes.byref(handle), ctypes.byref(_Resource(kind=0, array=array)))
        made.append((handle, array))
        return handle.value

    with backend.current():
        yield make
        for handle, array in made:
            library.call("cuSurfObjectDestroy", handle)
            library.call("cuArrayDestroy", array)


def _launch(name: str, racy: bool, handle: int) -> tuple[Any, dict[str, Any], Any]:
    path = Path(twin_file.__file__).parent / "global" / f"{name}.cu"
    spec = twin_file.read(path)
    args = spec.fresh_args() | {"plane": np.uint64(handle)}
    report = consan.launch(twin_file.kernel(path, racy), spec.grid, spec.block, spec.parameters(args), device="gpu")
    return report, args, spec


@pytest.mark.parametrize("name", SIZES)
def test_a_race_on_a_surface_is_reported(name: str, surface: Make) -> None:
    report, _, spec = _launch(name, True, surface(*SIZES[name]))
    assert {finding.kind for finding in report.findings} == {kind for each in spec.expected for kind in each.kinds}
    assert {access.space for finding in report.findings for access in finding.accesses} == {"surface"}


@pytest.mark.parametrize("name", SIZES)
def test_a_correct_kernel_is_clean(name: str, surface: Make) -> None:
    report, args, spec = _launch(name, False, surface(*SIZES[name]))
    assert (report.verdict, report.findings) == ("clean", ())
    for result in spec.results:
        np.testing.assert_array_equal(args[result], spec.reference(result))


def test_handles_differ_in_the_bits_that_name_a_surface(surface: Make) -> None:
    assert len({surface(16, 16) & 0xFFFF for _ in range(8)}) == 8
