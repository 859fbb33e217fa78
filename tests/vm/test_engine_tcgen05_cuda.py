"""CUDA C++ with tcgen05 in inline PTX on the virtual machine, in several schedules: products that compilers have seen."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_support import Device
from tcgen05_support import assembled

Array = np.ndarray[Any, Any]
KERNELS = Path(__file__).with_name("kernels")
NVCC = shutil.which("nvcc")
pytestmark = pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
SEEDS = pytest.mark.parametrize("seed", range(6))


def source(name: str) -> str:
    return (KERNELS / f"{name}.cu").read_text()


@functools.cache
def compiled(text: str, folder: Path) -> str:
    file = folder / "kernel.cu"
    file.write_text(text)
    assert NVCC is not None
    subprocess.run([NVCC, "-arch=sm_100a", "-ptx", "-o", str(file.with_suffix(".ptx")), str(file)], check=True)
    return assembled(file.with_suffix(".ptx").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kernels are compiled."""
    return tmp_path_factory.mktemp("cuda")


def matrices(m: int, n: int, k: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(k)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (n, k)))
    return a, b, a.astype(np.float32) @ b.astype(np.float32).T


@SEEDS
@pytest.mark.parametrize("ctas", [1, 3])
def test_a_persistent_product_with_roles(folder: Path, ctas: int, seed: int) -> None:
    """Four tiles; with three CTAs one of them has two, and its accumulators take turns."""
    a, b, wanted = matrices(256, 128, 256)
    device = Device(compiled(source("tcgen05_persistent"), folder))
    out = device.buffer(np.full(wanted.shape, np.nan, np.float32))
    more: dict[str, Any] = {"shared": 3 * 192 * 128 + 1024, "seed": seed}
    stats = device.launch("persistent", ctas, 192, device.buffer(a), device.buffer(b), out, 128, 256, **more)
    assert stats.completed, stats
    np.testing.assert_array_equal(device.machine.view(out, np.float32, wanted.size).reshape(wanted.shape), wanted)


@SEEDS
def test_a_product_by_a_pair_of_ctas(folder: Path, seed: int) -> None:
    a, b, wanted = matrices(256, 128, 192)
    device = Device(compiled(source("tcgen05_pair"), folder))
    out = device.buffer(np.full(wanted.shape, np.nan, np.float32))
    stats = device.launch("pair", 2, 128, device.buffer(a), device.buffer(b), out, 192, seed=seed)
    assert stats.completed, stats
    np.testing.assert_array_equal(device.machine.view(out, np.float32, wanted.size).reshape(wanted.shape), wanted)


def test_a_wait_for_a_stage_left_out_spoils_the_product(folder: Path) -> None:
    """Without it the ring is filled again while products that read it are in flight: seed 0 shows it in the numbers."""
    whole = source("tcgen05_persistent")
    broken = whole.replace("wait(&empty[stage], (round / STAGES + 1) & 1);", "")
    assert broken != whole
    a, b, wanted = matrices(256, 128, 512)
    device = Device(compiled(broken, folder))
    out = device.buffer(np.full(wanted.shape, np.nan, np.float32))
    stats = device.launch("persistent", 1, 192, device.buffer(a), device.buffer(b), out, 128, 512, shared=3 * 192 * 128 + 1024)
    found = device.machine.view(out, np.float32, wanted.size).reshape(wanted.shape)
    assert not stats.completed or not np.array_equal(found, wanted)
