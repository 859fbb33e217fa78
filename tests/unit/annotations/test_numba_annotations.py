"""Annotations in kernels of Numba: an order that no rule sees, a race that is meant, a place in shared memory. No device is needed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import consan

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of Numba about NumPy
    from numba import cuda
    from numba.cuda import types

    from consan.annotations.numba import acquire, ignore_begin, ignore_end, release

NULL, FOUR = np.int64(0), np.int64(4)
pytestmark = pytest.mark.filterwarnings("default")


def handed_over(data: Any, flag: Any, out: Any) -> None:
    if cuda.blockIdx.x == 0:
        data[0] = 3
        cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        out[0] = data[0]


def annotated_handover(data: Any, flag: Any, out: Any) -> None:
    if cuda.blockIdx.x == 0:
        data[0] = 3
        release(flag)
        cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        acquire(flag)
        out[0] = data[0]


def other_element(data: Any, flag: Any, out: Any) -> None:
    if cuda.blockIdx.x == 0:
        data[0] = 3
        release(flag[1:])
        cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        acquire(flag)
        out[0] = data[0]


def hint(data: Any, _flag: Any, _out: Any) -> None:
    data[0] = cuda.blockIdx.x


def annotated_hint(data: Any, _flag: Any, _out: Any) -> None:
    ignore_begin()
    data[0] = cuda.blockIdx.x
    ignore_end()


def place_in_shared_memory(_data: Any, flag: Any, out: Any) -> None:
    tile = cuda.shared.array(2, types.int32)
    if cuda.blockIdx.x == 0:
        if cuda.threadIdx.x == 0:
            tile[0] = 3
            release(tile)
            cuda.atomic.exch(flag, 0, 1)
        elif cuda.threadIdx.x == 32:
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass
            acquire(tile)
            out[0] = tile[0]


def _checked(function: Any, block: int = 1) -> consan.Report:
    arrays = (types.int32[::1],) * 3
    try:
        text, _ = cuda.compile_ptx(function, arrays, cc=(9, 0), lineinfo=True)
    except Exception as error:
        if "DynamicLibNotFound" in type(error).__name__ or "nvvm" in str(error).lower():
            pytest.skip(f"Numba cannot compile here: {type(error).__name__}")
        raise
    zeros = [np.zeros(size, np.int32) for size in (1, 2, 1)]
    words = [word for array in zeros for word in (NULL, NULL, np.int64(array.size), FOUR, array, np.int64(array.size), FOUR)]
    return consan.launch(consan.Kernel(text), 2, block, words, device="cpu")


HANDOVERS = [(handed_over, "violations"), (annotated_handover, "clean"), (other_element, "violations")]


@pytest.mark.parametrize(("function", "verdict"), HANDOVERS)
def test_a_handover_by_annotations(function: Any, verdict: str) -> None:
    report = _checked(function)
    assert report.verdict == verdict, report
    listed = " ".join(report.kernels[0].annotations)
    assert [f"{name} at {__file__}:" in listed for name in ("release", "acquire")] == [function is not handed_over] * 2


@pytest.mark.parametrize(("function", "verdict"), [(hint, "violations"), (annotated_hint, "clean")])
def test_a_race_that_is_meant(function: Any, verdict: str) -> None:
    assert _checked(function).verdict == verdict


def test_an_array_in_shared_memory_names_an_order() -> None:
    report = _checked(place_in_shared_memory, 64)
    assert report.verdict == "clean", report
