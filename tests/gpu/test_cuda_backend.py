"""The CUDA backend on a real GPU: memory, launches with every attribute, a hang that is ended from the host, a lost context."""

from __future__ import annotations

import struct
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from consan._errors import UsageError
from consan.backends import driver as api
from consan.backends.cuda import CudaBackend, CudaModule
from consan.toolchain.nvrtc import compile_ptx

REASON = api.why_unavailable()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(REASON is not None, reason=f"no GPU: {REASON}")]

SOURCE = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ unsigned long long counter[4] = {11, 22, 33, 44};

extern "C" __global__ void scale(float* data, float factor, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= factor;
}

extern "C" __global__ void last_byte(unsigned char* out, unsigned bytes)
{
    extern __shared__ unsigned char bytes_of_cta[];
    bytes_of_cta[bytes - 1] = 42;
    __syncthreads();
    out[0] = bytes_of_cta[bytes - 1];
}

extern "C" __global__ void ranks(unsigned* out)
{
    auto cluster = cg::this_cluster();
    out[blockIdx.x] = cluster.block_rank() * 100 + cluster.num_blocks();
}

extern "C" __global__ void grid_sum(unsigned* total, unsigned* out)
{
    if (threadIdx.x == 0) atomicAdd(total, 1);
    cg::this_grid().sync();
    if (threadIdx.x == 0) out[blockIdx.x] = *total;
}

extern "C" __global__ void spin(volatile unsigned* stop, volatile unsigned* progress)
{
    *progress = 7;
    __threadfence_system();
    while (*stop == 0) {}
}
"""


@pytest.fixture(scope="module")
def backend() -> CudaBackend:
    return CudaBackend()


@pytest.fixture(scope="module")
def module(backend: CudaBackend) -> CudaModule:
    return backend.load(compile_ptx(SOURCE, arch=backend.arch).ptx)


def pointer(address: int) -> bytes:
    return struct.pack("<Q", address)


def word(value: int) -> bytes:
    return struct.pack("<I", value)


def test_device(backend: CudaBackend) -> None:
    assert backend.device_name.startswith("NVIDIA")
    assert backend.sm_count > 0
    assert 0 < backend.free_bytes() < backend.memory_bytes


def test_kernel_computes(backend: CudaBackend, module: CudaModule) -> None:
    values = np.arange(1000, dtype=np.float32)
    data = backend.alloc(values.nbytes)
    backend.write(data, values)
    backend.launch(module, "scale", (4, 1, 1), (256, 1, 1), [pointer(data), struct.pack("<f", 2.5), word(1000)])
    assert backend.synchronize()
    np.testing.assert_array_equal(np.frombuffer(backend.read(data, values.nbytes), np.float32), values * np.float32(2.5))
    backend.free(data)


def test_symbol(backend: CudaBackend, module: CudaModule) -> None:
    address, size = backend.symbol(module, "counter")
    assert np.frombuffer(backend.read(address, size), np.uint64).tolist() == [11, 22, 33, 44]


def test_all_shared_memory(backend: CudaBackend, module: CudaModule) -> None:
    out = backend.alloc(1)
    most = backend.attributes["shared_per_cta"]
    backend.launch(module, "last_byte", (1, 1, 1), (32, 1, 1), [pointer(out), word(most)], shared=most)
    assert backend.read(out, 1) == b"\x2a"
    with pytest.raises(UsageError, match="dynamic shared memory"):
        backend.launch(module, "last_byte", (1, 1, 1), (32, 1, 1), [pointer(out), word(most)], shared=most + 1)


@pytest.mark.parametrize("size", [2, 16])
def test_clusters(backend: CudaBackend, module: CudaModule, size: int) -> None:
    if not backend.attributes["clusters"]:
        pytest.skip("the device has no clusters")
    out = backend.alloc(4 * 32)
    backend.launch(module, "ranks", (32, 1, 1), (32, 1, 1), [pointer(out)], cluster=(size, 1, 1))
    found = np.frombuffer(backend.read(out, 4 * 32), np.uint32)
    assert found.tolist() == [i % size * 100 + size for i in range(32)]


def test_cooperative_launch(backend: CudaBackend, module: CudaModule) -> None:
    ctas = backend.resident_ctas(module, "grid_sum", 64)
    total, out = backend.alloc(4), backend.alloc(4 * ctas)
    backend.fill(total, 0, 4)
    backend.launch(module, "grid_sum", (ctas, 1, 1), (64, 1, 1), [pointer(total), pointer(out)], cooperative=True)
    assert set(np.frombuffer(backend.read(out, 4 * ctas), np.uint32).tolist()) == {ctas}


def test_cooperative_launch_that_does_not_fit(backend: CudaBackend, module: CudaModule) -> None:
    ctas = backend.resident_ctas(module, "grid_sum", 64) + 1
    with pytest.raises(UsageError, match="every CTA resident"):
        backend.launch(module, "grid_sum", (ctas, 1, 1), (64, 1, 1), [pointer(0), pointer(0)], cooperative=True)


def test_wrong_arguments_are_refused(backend: CudaBackend, module: CudaModule) -> None:
    with pytest.raises(UsageError, match="scale takes parameters of 8, 4, 4 bytes, but got 8, 4"):
        backend.launch(module, "scale", (1, 1, 1), (32, 1, 1), [pointer(0), word(0)])


def test_resources(backend: CudaBackend, module: CudaModule) -> None:
    assert backend.resources(module, "scale").registers == module.assembled.info["scale"].registers  # type: ignore[union-attr]


def test_hang_is_seen_and_ended_through_the_ring(backend: CudaBackend, module: CudaModule) -> None:
    address, view = backend.host_ring(4096)
    words = view.view(np.uint32)
    backend.launch(module, "spin", (1, 1, 1), (1, 1, 1), [pointer(address), pointer(address + 64)])
    started = time.monotonic()
    assert not backend.synchronize(0.2)
    assert time.monotonic() - started < 2
    assert words[16] == 7
    words[0] = 1
    assert backend.synchronize(10)


def test_hang_is_ended_through_device_memory(backend: CudaBackend, module: CudaModule) -> None:
    stop = backend.alloc(128)
    backend.fill(stop, 0, 128)
    backend.launch(module, "spin", (1, 1, 1), (1, 1, 1), [pointer(stop), pointer(stop + 64)])
    assert not backend.synchronize(0.2)
    assert backend.peek(stop + 64, 4) == word(7)
    backend.poke(stop, word(1))
    assert backend.synchronize(10)


def test_ring_survives_a_lost_context() -> None:
    """In a process of its own: the context is gone afterwards."""
    script = """
        import struct
        from consan.backends.base import DeviceLost
        from consan.backends.cuda import CudaBackend
        from consan.toolchain.nvrtc import compile_ptx

        source = 'extern "C" __global__ void k(int* ring, int* bad) { *ring = 77; __threadfence_system(); *bad = 1; }'
        backend = CudaBackend()
        address, view = backend.host_ring(4096)
        module = backend.load(compile_ptx(source, arch=backend.arch).ptx)
        backend.launch(module, "k", (1, 1, 1), (1, 1, 1), [struct.pack("<Q", address), struct.pack("<Q", 0x10)])
        try:
            backend.synchronize(30)
        except DeviceLost as error:
            print(error.name, view[0])
        backend.close()
        print(view[0])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.returncode) == (["CUDA_ERROR_ILLEGAL_ADDRESS", "77", "77"], 0), done.stderr


def test_pointers_of_cupy(backend: CudaBackend, module: CudaModule) -> None:
    cupy = pytest.importorskip("cupy")
    values = cupy.arange(256, dtype=cupy.float32)
    backend.launch(module, "scale", (1, 1, 1), (256, 1, 1), [pointer(values.data.ptr), struct.pack("<f", 2), word(256)])
    assert backend.synchronize()
    assert values.get().tolist() == [2.0 * i for i in range(256)]
