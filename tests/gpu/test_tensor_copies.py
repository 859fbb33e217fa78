"""Tensor copies of the virtual machine against a GPU's: the same kernels, maps and memory, and the same bytes afterwards.

`python tests/gpu/test_tensor_copies.py` prints what a GPU does where the manuals say nothing and the virtual machine refuses: rows narrower
than the swizzle pattern, rounding to tf32, which NaN fills, steps between images.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "vm"))

import test_engine_tensor as vm
from engine_support import cuda

from consan.backends import driver as api
from consan.backends.cuda import CudaBackend
from consan.backends.virtual import VirtualBackend
from consan.tensormap.description import TensorMapInfo

REASON = api.why_unavailable()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(REASON is not None, reason=f"no GPU: {REASON}")]
Array = np.ndarray


def run(
    backend: Any,
    copy: str,
    tensor: Array,
    info: TensorMapInfo,
    start: Sequence[int],
    *,
    nbytes: int = 0,
    first: int = 0,
    offsets: Sequence[int] = (),
) -> tuple[Array, Array]:
    """Shared memory and the tensor after the kernel of the virtual machine's tests; `start` and `offsets` are innermost first."""
    memory = (np.arange(vm.SHARED) * 7 % 97).astype(np.uint8)
    address, fill, out = (backend.alloc(array.nbytes) for array in (tensor, memory, memory))
    backend.write(address, tensor)
    backend.write(fill, memory)
    data = backend.tensor_map(replace(info, address=address))
    numbers = [first, nbytes, *[*start, *[0] * 5][:5], *[*offsets, *[0] * 3][:3]]
    args = [data, *(pointer.to_bytes(8, "little") for pointer in (fill, out)), *((n & 0xFFFFFFFF).to_bytes(4, "little") for n in numbers)]
    handle = backend.load(cuda(vm.source(copy, info.rank)))
    backend.launch(handle, "k", (1, 1, 1), (64, 1, 1), args, shared=vm.SHARED)
    assert backend.synchronize(20)
    shared = np.frombuffer(backend.read(out, vm.SHARED), np.uint8)
    after = np.frombuffer(backend.read(address, tensor.nbytes), tensor.dtype).reshape(tensor.shape)
    for pointer in (address, fill, out):
        backend.free(pointer)
    return shared, after


def info_of(tensor: Array, dtype: str, **more: Any) -> TensorMapInfo:
    steps = (1,) * tensor.ndim
    return TensorMapInfo(dtype, 0, tensor.shape[::-1], tensor.strides[-2::-1], **{"box": (), "element_strides": steps, **more})


def check(copy: str, tensor: Array, info: TensorMapInfo, start: Sequence[int], **more: Any) -> None:
    ours, theirs = (run(backend, copy, tensor, info, start, **more) for backend in (VirtualBackend(), CudaBackend()))
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_array_equal(ours[1], theirs[1])


@pytest.mark.parametrize("first", [0, 640])
@vm.BOX
def test_loads(shape: Any, box: Any, start: Any, steps: Any, dtype: str, swizzle: int, first: int) -> None:
    tensor = vm.tensor(shape, dtype)
    info = info_of(tensor, dtype, box=box[::-1], element_strides=steps[::-1], swizzle=swizzle)
    check(vm.LOAD, tensor, info, start[::-1], nbytes=info.box_bytes, first=first)


@vm.BOX
def test_stores(shape: Any, box: Any, start: Any, steps: Any, dtype: str, swizzle: int) -> None:
    tensor = vm.tensor(shape, dtype)
    check(vm.STORE, tensor, info_of(tensor, dtype, box=box[::-1], element_strides=steps[::-1], swizzle=swizzle), vm.inside(start)[::-1])


@pytest.mark.parametrize("dtype", ["tf32", "tf32.ftz", "f32.ftz"])
def test_loads_round_to_tf32_and_stores_do_not(dtype: str) -> None:
    words = np.array([*vm.TF32] + [0] * (16 - len(vm.TF32)), np.uint32)
    check(vm.LOAD, words, info_of(words, dtype, box=(16,)), (0,), nbytes=64)
    check(vm.STORE, words, info_of(words, dtype, box=(16,)), (0,))


# An H200 takes .and of signed 64-bit elements for an illegal instruction, and .or of unsigned ones not; the ISA lists .b64.
REDUCTIONS = [(name, dtype) for name, (_, dtypes) in vm.REDUCTIONS.items() for dtype in dtypes if (name, dtype) != ("and", "s64")]


@pytest.mark.parametrize(("operation", "dtype"), REDUCTIONS)
def test_reductions(operation: str, dtype: str) -> None:
    tensor = vm.tensor((20, 16), dtype)
    check(vm.REDUCE.replace("OP", operation), tensor, info_of(tensor, dtype, box=(16 // tensor.itemsize, 5)), (8, 17))


@vm.IMAGE
def test_im2col(shape: Any, start: Any, offsets: Any, lower: Any, upper: Any, steps: Any, channels: int, pixels: int) -> None:
    tensor = vm.tensor(shape, "f16")
    corners = {"lower": lower[::-1], "upper": upper[::-1], "element_strides": (1, *steps[::-1], 1)}
    info = info_of(tensor, "f16", im2col=True, channels=channels, pixels=pixels, **corners)
    check(vm.LOAD_IM2COL, tensor, info, start[::-1], nbytes=info.box_bytes, offsets=offsets[::-1])
    if min(lower) >= 0 >= max(upper):
        check(vm.STORE_IM2COL, tensor, info, vm.inside(start)[::-1])


# What is not documented -----------------------------------------------------------------------------------------------------


def probe() -> None:
    """Print what the GPU does."""
    gpu = CudaBackend()
    numbers = np.arange(1, 16 * 64 + 1, dtype=np.uint32).reshape(16, 64)
    for inner, swizzle in ((4, 32), (4, 64), (8, 64), (8, 128), (16, 128)):
        shared, _ = run(gpu, vm.LOAD, numbers, info_of(numbers, "u32", box=(inner, 4), swizzle=swizzle), (0, 0), nbytes=16 * inner)
        words = shared.view(np.uint32)
        places = {int(number): (4 * words.tolist().index(number) if number in words else None) for number in numbers[:4, :inner:4].flat}
        print(f"rows of {4 * inner} bytes, swizzle {swizzle}: chunk of number -> byte", places)
    floats = np.array([1 + k * 2.0**-13 for k in range(16)] + [2.0**-130, -(2.0**-140), np.inf, np.nan] + [0] * 12, np.float32)
    for dtype in ("tf32", "tf32.ftz", "f32.ftz"):
        shared, _ = run(gpu, vm.LOAD, floats, info_of(floats, dtype, box=(32,)), (0,), nbytes=128)
        print(dtype, "loads", [f"{was:08x}->{now:08x}" for was, now in zip(floats.view(np.uint32), shared.view(np.uint32), strict=False)])
        _, after = run(gpu, vm.STORE, floats, info_of(floats, dtype, box=(32,)), (0,))
        print(dtype, "stores", [f"{now:08x}" for now in after.view(np.uint32)])
    for dtype, kind in (("f16", "f2"), ("bf16", "u2"), ("f32", "f4"), ("f64", "f8")):
        zeros = np.zeros(64, kind)
        shared, _ = run(gpu, vm.LOAD, zeros, info_of(zeros, dtype, box=(16,), oob="nan"), (64,), nbytes=16 * zeros.itemsize)
        print(dtype, "NaN:", shared[: zeros.itemsize][::-1].tobytes().hex())
    image = np.arange(6 * 3 * 8, dtype=np.uint16).reshape(6, 3, 8)
    info = info_of(image, "u16", im2col=True, channels=8, pixels=9, lower=(0,), upper=(0,), element_strides=(1, 1, 2))
    shared, _ = run(gpu, vm.LOAD_IM2COL, image, info, (0, 0, 0), nbytes=144, offsets=(0,))
    print("a step of 2 between images, first channel of each pixel:", shared[:144].view(np.uint16)[::8].tolist())


if __name__ == "__main__":
    probe()
