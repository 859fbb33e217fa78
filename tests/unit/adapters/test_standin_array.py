"""Arrays, random numbers and the `cupy.cuda` stubs of the CPU stand-in."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from standin_fakes import FakeSession

from consan._errors import NotSupported
from consan.adapters.standin import CupyStandIn


@pytest.fixture
def session(tmp_path: Path) -> FakeSession:
    return FakeSession(tmp_path)


@pytest.fixture
def cp(session: FakeSession) -> Iterator[Any]:
    adapter = CupyStandIn()
    adapter.install(session)
    yield importlib.import_module("cupy")
    adapter.remove()


def in_device(session: FakeSession, array: Any) -> bool:
    seen = session.machine.view(array.data.ptr, array.dtype, 1)[0]
    return bool(seen == array.get().reshape(-1)[0])


def test_arrays_live_in_device_memory(cp: Any, session: FakeSession) -> None:
    a = cp.arange(1, 9, dtype=cp.float32)
    assert in_device(session, a)
    session.machine.view(a.data.ptr, np.float32, 8)[3] = 77
    assert a.get()[3] == 77


@pytest.mark.parametrize("make", ["cp.zeros((2, 3))", "cp.ones(6)", "cp.full((6,), 7, dtype=cp.int32)", "cp.array([1.5, 2.5])",
                                  "cp.linspace(1, 2, 5)", "cp.ones_like(cp.zeros(3, 'i4'))", "cp.eye(3)", "cp.arange(5) + 1",
                                  "cp.sqrt(cp.full(4, 4.0))", "cp.full(4, 3.0).astype(cp.float16)", "cp.arange(6).reshape(2, 3).T + 2",
                                  "cp.ones((4, 4)) @ cp.ones((4, 4))", "cp.concatenate([cp.ones(2), cp.ones(3)])",
                                  "cp.asarray(np.arange(3) + 1)", "cp.where(cp.arange(3) > 1, 1.0, 2.0)", "cp.arange(3).sum()",
                                  "cp.maximum(cp.arange(4), 2)", "cp.random.rand(3)", "cp.linalg.norm(cp.ones(4))"])  # fmt: skip
def test_every_result_is_a_device_array(cp: Any, session: FakeSession, make: str) -> None:
    result = eval(make, {"cp": cp, "np": np})
    expected = eval(make.replace("cp.", "np.").replace("np.random.rand(3)", "0"), {"np": np})
    assert isinstance(result, cp.ndarray)
    assert in_device(session, result)
    if "random" not in make:
        assert result.dtype == np.asarray(expected).dtype
        np.testing.assert_array_equal(result.get(), expected)


def test_views_share_memory_and_copies_do_not(cp: Any) -> None:
    a = cp.arange(12, dtype=cp.int32).reshape(3, 4)
    row, column = a[1], a[:, 2]
    assert row.data.ptr == a.data.ptr + 16
    assert column.data.ptr == a.data.ptr + 8
    row[...] = 100
    a[2][1] = 5
    assert a.get()[1].tolist() == [100] * 4
    assert a.get()[2, 1] == 5
    assert a.copy().data.ptr != a.data.ptr
    assert a[[0, 2]].data.ptr != a.data.ptr
    assert a.ravel().data.ptr == a.data.ptr


def test_scalars_are_zero_dimensional_arrays(cp: Any) -> None:
    total = cp.arange(4).sum()
    assert isinstance(total, cp.ndarray)
    assert (total.shape, int(total), float(total), f"{cp.arange(4).mean():.2f}") == ((), 6, 6.0, "1.50")
    assert isinstance(cp.arange(4)[2], cp.ndarray)
    assert cp.arange(4)[2].item() == 2
    assert bool(cp.allclose(cp.ones(3), cp.ones(3)))


def test_in_place_operators_keep_the_array(cp: Any) -> None:
    a = cp.ones(4, dtype=cp.float32)
    before = a.data.ptr
    a += 2
    a *= cp.arange(4, dtype=cp.float32)
    assert a.data.ptr == before
    assert a.get().tolist() == [0, 3, 6, 9]
    out = cp.empty(4, dtype=cp.float32)
    assert cp.add(a, 1, out=out) is out
    assert out.get().tolist() == [1, 4, 7, 10]


def test_numpy_and_cupy_do_not_mix_silently(cp: Any) -> None:
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(cp.ones(3))
    with pytest.raises(TypeError, match="Unsupported type"):
        cp.ones(3) + np.ones(3)
    with pytest.raises(TypeError, match="Unsupported dtype"):
        cp.array(["text"])


def test_transfers(cp: Any) -> None:
    host = np.arange(6, dtype=np.int16).reshape(2, 3)
    a = cp.empty((2, 3), dtype=cp.int16)
    a.set(host)
    assert (cp.asnumpy(a) == host).all()
    assert type(cp.asnumpy(a)) is np.ndarray
    assert cp.asnumpy(a) is not a.get()
    fortran = cp.asarray(np.asfortranarray(host))
    assert fortran.flags.f_contiguous
    assert (fortran.get() == host).all()
    assert cp.asarray(a) is a
    assert cp.get_array_module(a) is cp
    assert cp.get_array_module(host) is np


def test_memory_is_freed_with_the_last_view(cp: Any, session: FakeSession) -> None:
    a = cp.zeros(1000)
    view = a[10:20].reshape(2, 5)
    held = set(session.machine.blocks)
    del a
    gc.collect()
    assert set(session.machine.blocks) == held
    del view
    gc.collect()
    assert len(session.machine.blocks) == len(held) - 1


def test_random_is_repeatable_typed_and_apart_from_numpy(cp: Any) -> None:
    np.random.seed(5)
    expected = np.random.rand(2)
    np.random.seed(5)
    cp.random.seed(3)
    first = [cp.random.rand(4, dtype=cp.float32), cp.random.randn(2, 2), cp.random.randint(0, 10, size=5, dtype=cp.int32)]
    cp.random.seed(3)
    second = [cp.random.rand(4, dtype=cp.float32), cp.random.randn(2, 2), cp.random.randint(0, 10, size=5, dtype=cp.int32)]
    assert all((a.get() == b.get()).all() for a, b in zip(first, second, strict=True))
    assert [a.dtype.name for a in first] == ["float32", "float64", "int32"]
    assert (np.random.rand(2) == expected).all()
    more = [cp.random.random(3, dtype=cp.float32), cp.random.uniform(-1, 1, (2, 3)), cp.random.normal(0, 1, 4, dtype=cp.float32)]
    more += [cp.random.standard_normal(3), cp.random.default_rng(1).random(3, dtype=cp.float32), cp.random.permutation(4)]
    assert all(isinstance(a, cp.ndarray) for a in more)


def test_testing(cp: Any) -> None:
    cp.testing.assert_allclose(cp.ones(3), np.ones(3))
    with pytest.raises(AssertionError):
        cp.testing.assert_array_equal(cp.ones(3), cp.zeros(3))


def test_streams_events_devices(cp: Any) -> None:
    with cp.cuda.Stream(non_blocking=True) as stream, cp.cuda.Device(0) as device:
        start, end = cp.cuda.Event(), stream.record()
        start.record()
        end.record(stream)
        stream.synchronize()
    assert cp.cuda.get_elapsed_time(start, end) >= 0
    assert (device.compute_capability, device.attributes["MultiProcessorCount"]) == ("90", 4)
    cp.cuda.Stream.null.synchronize()
    cp.cuda.runtime.deviceSynchronize()
    assert (cp.cuda.runtime.getDeviceCount(), cp.cuda.is_available(), cp.is_available()) == (1, True, True)
    assert cp.cuda.runtime.getDeviceProperties(0)["major"] == 9
    pinned = np.frombuffer(cp.cuda.alloc_pinned_memory(64), np.float32, 16)
    pinned[...] = 2
    cp.get_default_memory_pool().free_all_blocks()
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError):
        cp.cuda.Device(1)


def test_memory_pointers(cp: Any) -> None:
    pointer = cp.cuda.alloc(64)
    a = cp.ndarray((4,), cp.float32, pointer + 16)
    a[...] = [1, 2, 3, 4]
    assert a.data.ptr == pointer.ptr + 16
    host = np.zeros(4, np.float32)
    cp.cuda.runtime.memcpy(host.ctypes.data, a.data.ptr, 16, cp.cuda.runtime.memcpyDeviceToHost)
    assert host.tolist() == [1, 2, 3, 4]
    cp.cuda.runtime.memset(a.data.ptr, 0, 8)
    assert a.get().tolist() == [0, 0, 3, 4]


def test_submodule_imports(cp: Any) -> None:
    from cupy.cuda import Event, Stream
    from cupy.cuda.runtime import deviceSynchronize

    assert (Event, Stream) == (cp.cuda.Event, cp.cuda.Stream)
    deviceSynchronize()
    import cupyx

    assert cupyx.zeros_pinned(3).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("cp.fuse", "cupy.fuse"),
        ("cp.ones(3).toDlpack()", "cupy.ndarray.toDlpack"),
        ("cp.cuda.Graph", "cupy.cuda.Graph"),
        ("cp.cuda.runtime.graphLaunch", "cupy.cuda.runtime.graphLaunch"),
        ("cp.cuda.Stream().begin_capture()", "cupy.cuda.Stream.begin_capture"),
        ("cp.random.beta_of_nothing", "cupy.random.beta_of_nothing"),
        ("__import__('cupyx.jit')", "cupyx.jit"),
        ("__import__('cupyx.scipy.ndimage')", "cupyx.scipy"),
        ("exec('from cupy import fft', {})", "cupy.fft"),
    ],
)
def test_the_rest_is_one_clear_sentence(cp: Any, statement: str, name: str) -> None:
    with pytest.raises(NotSupported, match=rf"^{name} is not part of consan's CPU stand-in for CuPy; run on a GPU"):
        eval(statement, {"cp": cp})


def test_missing_names_are_attribute_errors(cp: Any) -> None:
    assert not hasattr(cp, "fuse")
    assert not hasattr(cp.cuda, "Graph")


def test_the_report_says_so_and_removal_takes_it_away(session: FakeSession) -> None:
    adapter = CupyStandIn()
    adapter.install(session)
    assert session.notes == []
    assert "cupy" not in sys.modules
    importlib.import_module("cupy.cuda")
    assert len(session.notes) == 1
    assert "stand-in" in session.notes[0]
    adapter.remove()
    adapter.remove()
    assert [name for name in sys.modules if name.partition(".")[0] in ("cupy", "cupyx")] == []


def test_a_cupy_that_is_loaded_is_left_alone(session: FakeSession, monkeypatch: pytest.MonkeyPatch) -> None:
    real = object()
    monkeypatch.setitem(sys.modules, "cupy", real)
    adapter = CupyStandIn()
    adapter.install(session)
    assert sys.modules["cupy"] is real
    assert "imported before" in session.notes[0]
    adapter.remove()
    assert sys.modules["cupy"] is real
