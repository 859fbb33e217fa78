"""Annotations in kernels of CuTe DSL: an order that no rule sees, a race that is meant, a place in shared memory. No device is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import consan

cutlass: Any = pytest.importorskip("cutlass", reason="CuTe DSL is not installed")
cute: Any = pytest.importorskip("cutlass.cute", reason="CuTe DSL is not installed")
from consan.annotations.cute import acquire, ignore_begin, ignore_end, release  # noqa: E402 - it imports CuTe DSL

OPTIONS = "--keep-ptx --generate-line-info --gpu-arch sm_90a"
pytestmark = pytest.mark.filterwarnings("default")


@cute.kernel
def hand_over(data: cute.Tensor, flag: cute.Tensor, out: cute.Tensor, annotated: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    if thread != 0:
        pass
    elif block == 0:
        data[0] = 3
        if cutlass.const_expr(annotated):
            release(flag)
        cute.arch.atomic_exch(flag.iterator, cutlass.Int32(1), sem="relaxed", scope="gpu")
    else:
        while cute.arch.atomic_add(flag.iterator, cutlass.Int32(0), sem="relaxed", scope="gpu") == 0:
            pass
        if cutlass.const_expr(annotated):
            acquire(flag.iterator)
        out[0] = data[0]


@cute.kernel
def set_hint(data: cute.Tensor, _flag: cute.Tensor, _out: cute.Tensor, annotated: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    if cutlass.const_expr(annotated):
        ignore_begin()
    data[0] = block
    if cutlass.const_expr(annotated):
        ignore_end()


@cute.kernel
def name_shared_memory(_data: cute.Tensor, flag: cute.Tensor, out: cute.Tensor, annotated: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout(2))
    if block == 0:
        if thread == 0:
            tile[0] = 3
            if cutlass.const_expr(annotated):
                release(tile)
            cute.arch.atomic_exch(flag.iterator, cutlass.Int32(1), sem="relaxed", scope="gpu")
        elif thread == 32:
            while cute.arch.atomic_add(flag.iterator, cutlass.Int32(0), sem="relaxed", scope="gpu") == 0:
                pass
            if cutlass.const_expr(annotated):
                acquire(tile)
            out[0] = tile[0]


@cute.jit
def launched(kernel: cutlass.Constexpr, data: cute.Tensor, flag: cute.Tensor, out: cute.Tensor, annotated: cutlass.Constexpr):
    kernel(data, flag, out, annotated).launch(grid=[2, 1, 1], block=[64, 1, 1])


@pytest.mark.parametrize(("annotated", "verdict"), [(False, "violations"), (True, "clean")])
@pytest.mark.parametrize("kernel", [hand_over, set_hint, name_shared_memory], ids=lambda kernel: kernel.__name__)
def test_what_annotations_say_is_so(kernel: Any, annotated: bool, verdict: str, tmp_path: Path) -> None:
    from cutlass.cute.runtime import make_fake_compact_tensor

    tensors = [make_fake_compact_tensor(cutlass.Int32, (2,)) for _ in range(3)]
    text = cute.compile(launched, kernel, *tensors, annotated, options=f"{OPTIONS} --dump-dir {tmp_path}").__ptx__
    report = consan.launch(consan.Kernel(text), 2, 64, [np.zeros(2, np.int32) for _ in range(3)], smem=8, device="cpu")
    assert report.verdict == verdict, report
    assert bool(report.kernels[0].annotations) == annotated
