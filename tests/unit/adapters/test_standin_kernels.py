"""Kernels of the CPU stand-in: compiled by NVRTC for real, launched into a recorder."""

from __future__ import annotations

import importlib
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from standin_fakes import FakeSession

from consan._errors import NotSupported, UsageError
from consan.adapters.standin import CupyStandIn
from consan.adapters.standin.kernels import argument, pack

SAXPY = r"""
struct Pair { int a; double b; };
__device__ int table[4];
extern "C" __global__ void saxpy(const float *x, float *y, float a, int n, Pair p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i] + p.a + table[i & 3];
}
"""


@pytest.fixture
def session(tmp_path: Path) -> FakeSession:
    return FakeSession(tmp_path)


@pytest.fixture
def cp(session: FakeSession) -> Iterator[Any]:
    adapter = CupyStandIn()
    adapter.install(session)
    yield importlib.import_module("cupy")
    adapter.remove()


def test_launch(cp: Any, session: FakeSession) -> None:
    kernel = cp.RawKernel(SAXPY, "saxpy")
    x, y = cp.ones(64, dtype=cp.float32), cp.zeros(64, dtype=cp.float32)
    pair = np.array([(3, 2.5)], dtype=np.dtype([("a", "i4"), ("b", "f8")], align=True))
    kernel((2,), (32, 1), (x, y, np.float32(2), 64, pair), shared_mem=16)
    (launch,) = session.launches
    assert (launch.entry, launch.grid, launch.block, launch.shared, launch.cluster) == ("saxpy", (2, 1, 1), (32, 1, 1), 16, (1, 1, 1))
    assert launch.args == [
        struct.pack("<Q", x.data.ptr), struct.pack("<Q", y.data.ptr), struct.pack("<f", 2), struct.pack("<i", 64), pair.tobytes(),
    ]  # fmt: skip
    kernel((2,), (32,), (x, y, np.float32(2), 64, pair))
    assert len(session.prepared) == 1
    assert not launch.cooperative


def test_lines_are_the_scripts(cp: Any, session: FakeSession) -> None:
    cp.RawKernel(SAXPY, "saxpy").compile()
    _, ptx = session.prepared[0]
    assert re.search(rf'\.file\s+\d+ "{re.escape(__file__)}"', ptx)
    line = 1 + next(number for number, text in enumerate(Path(__file__).read_text().splitlines()) if "y[i] = a * x[i]" in text)
    assert re.search(rf"\.loc\s+\d+ {line} ", ptx)


def test_module(cp: Any, session: FakeSession) -> None:
    module = cp.RawModule(code=SAXPY, options=("-std=c++14", "-DUNUSED=1", "-lineinfo", "-arch=sm_80"))
    assert module.get_function("saxpy").name == "saxpy"
    assert ".target sm_90" in session.prepared[0][1]
    table = cp.ndarray((4,), cp.int32, module.get_global("table"))
    table[...] = cp.arange(4)
    address, _ = session.backend.symbol("handle", "table")
    assert session.machine.view(address, np.int32, 4).tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match=r"CUDA_ERROR_NOT_FOUND: named symbol not found: nope \(the module has saxpy\)"):
        module.get_function("nope")
    with pytest.raises(TypeError, match="Exactly one of"):
        cp.RawModule(code=SAXPY, path="x.ptx")


def test_module_from_ptx(cp: Any, session: FakeSession, tmp_path: Path) -> None:
    cp.RawKernel(SAXPY, "saxpy").compile()
    path = tmp_path / "k.ptx"
    path.write_text(session.prepared[0][1])
    cp.RawModule(path=str(path)).get_function("saxpy")((1,), (1,), (None, None, np.float32(0), 0, np.zeros(1, "V16")))
    assert session.launches[0].args[0] == bytes(8)
    binary = tmp_path / "k.cubin"
    binary.write_bytes(b"\x7fELF")
    with pytest.raises(NotSupported, match="is a binary"):
        cp.RawModule(path=str(binary)).get_function("saxpy")


def test_templates(cp: Any, session: FakeSession) -> None:
    code = "template <typename T, int N> __global__ void fill(T *p) { p[threadIdx.x] = N; }"
    module = cp.RawModule(code=code, name_expressions=("fill<float, 2>", "fill<double, 3>"))
    for name in module.name_expressions:
        module.get_function(name)((1,), (1,), (cp.zeros(1),))
    assert [launch.entry for launch in session.launches] == ["_Z4fillIfLi2EEvPT_", "_Z4fillIdLi3EEvPT_"]


def test_errors(cp: Any) -> None:
    kernel = cp.RawKernel(SAXPY, "saxpy")
    with pytest.raises(UsageError, match="has 5 parameters and was launched with 1 arguments"):
        kernel((1,), (1,), (cp.ones(3),))
    with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_VALUE"):
        kernel((1,), (2048,), (None,) * 5)
    with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_VALUE"):
        kernel((1,), (32,), (None,) * 5, shared_mem=50000)
    kernel.max_dynamic_shared_size_bytes = 100000
    assert kernel.attributes["max_dynamic_shared_size_bytes"] == 100000
    with pytest.raises(TypeError, match=r"pass a numpy.ndarray of shape \(3,\)"):
        kernel((1,), (1,), (np.ones(3),))
    with pytest.raises(UsageError, match="does not compile"):
        cp.RawKernel("__global__ void broken( {", "broken").compile()
    with pytest.raises(NotSupported, match="jitify"):
        cp.RawKernel(SAXPY, "saxpy", jitify=True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, b"\1"),
        (-2, struct.pack("<q", -2)),
        (1 << 63, struct.pack("<Q", 1 << 63)),
        (1.5, struct.pack("<d", 1.5)),
        (1j, struct.pack("<dd", 0, 1)),
        (np.int16(-1), b"\xff\xff"),
        (np.array(7, "u1"), b"\7"),
        (None, bytes(8)),
    ],
)
def test_arguments_follow_cupy(value: Any, expected: bytes) -> None:
    assert argument(value) == expected


def test_arguments_are_cut_to_the_parameter(cp: Any, session: FakeSession) -> None:
    assert pack([struct.pack("<q", -1), b"\1"], [4, 8], "k") == [b"\xff" * 4, b"\1" + bytes(7)]
    assert session.notes[-1] == "argument 2 of kernel k has 1 bytes, its parameter 8: the rest was taken as zeros"


def test_elementwise(cp: Any, session: FakeSession) -> None:
    def play(launch: Any) -> None:
        x, y, _, z, count = (int.from_bytes(arg, "little") for arg in launch.args)
        scale = np.frombuffer(launch.args[2], np.float32)[0]
        host = [session.machine.view(pointer, np.float32, count) for pointer in (x, y, z)]
        host[2][...] = (host[0] - host[1]) * scale

    session.play = play
    kernel = cp.ElementwiseKernel("T x, T y, float32 s", "T z", "z = (x - y) * s", "scaled_difference")
    x, y = cp.arange(6, dtype=cp.float32).reshape(2, 3), cp.ones((2, 3), dtype=cp.float32)
    assert kernel(x, y, 2).get().tolist() == [[-2, 0, 2], [4, 6, 8]]
    out = cp.zeros((2, 3), dtype=cp.float32)
    assert kernel(x, y, 3, out) is out
    assert out.get().tolist() == [[-3, 0, 3], [6, 9, 12]]
    assert session.launches[0].entry == "scaled_difference"
    with pytest.raises(TypeError, match="Type is mismatched"):
        kernel(x, y.astype(cp.float64), 2)


def test_elementwise_raw_and_size(cp: Any, session: FakeSession) -> None:
    kernel = cp.ElementwiseKernel("raw T x", "raw T y", "y[i] = x[_ind.size() - 1 - i]", "reversed_copy", no_return=True)
    x, y = cp.arange(5.0), cp.zeros(5)
    kernel(x, y, size=5)
    (launch,) = session.launches
    assert launch.args == [struct.pack("<QQ", x.data.ptr, 5), struct.pack("<QQ", y.data.ptr, 5), struct.pack("<Q", 5)]
    told = [(each.label, each.begin, each.bytes, each.element) for each in launch.address_name.given]
    assert told == [("argument 1", x.data.ptr, 40, 8), ("argument 2", y.data.ptr, 40, 8)]


def test_reduction(cp: Any, session: FakeSession) -> None:
    def play(launch: Any) -> None:
        x, y, total, outputs = (int.from_bytes(arg, "little") for arg in launch.args)
        values = session.machine.view(x, np.float32, total).reshape(outputs, -1)
        session.machine.view(y, np.float32, outputs)[...] = np.sqrt((values * values).sum(axis=1))

    session.play = play
    norm = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
    x = cp.arange(12, dtype=cp.float32).reshape(3, 4)
    assert norm(x).shape == ()
    for axis in (1, (0, 1)):
        np.testing.assert_allclose(norm(x, axis=axis).get(), np.sqrt((x.get() ** 2).sum(axis=axis)))
    assert norm(x, axis=1, keepdims=True).shape == (3, 1)
    assert "bar.sync" in session.prepared[0][1]
    with pytest.raises(NotSupported, match="without an identity"):
        cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", None)


def test_half_precision_kernels_compile(cp: Any, session: FakeSession) -> None:
    cp.ElementwiseKernel("float16 x", "float16 y", "y = x + x", "twice")(cp.ones(4, dtype=cp.float16))
    assert "twice" in session.prepared[0][1]


def test_a_grid_that_is_counted_in_clusters(cp: Any, session: FakeSession) -> None:
    source = 'extern "C" __global__ void __block_size__((64, 1, 1), (2, 1, 1)) k(float* x) { x[blockIdx.x] = 1; }'
    cp.RawKernel(source, "k", options=("-arch=sm_90",)).__call__((3,), (64,), (cp.zeros(6, dtype=cp.float32),))
    assert [(each.grid, each.cluster) for each in session.launches] == [((6, 1, 1), (2, 1, 1))]
