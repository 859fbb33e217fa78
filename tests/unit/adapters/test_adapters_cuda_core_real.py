"""The installed cuda.core, compiling without a device; what a kernel of the result is would need one."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from seam_fakes import FakeSession

from consan.adapters.cuda_core import CudaCoreAdapter

pytest.importorskip("cuda.core", reason="cuda.core is not installed")
SAXPY = r"""
template <typename T> __global__ void saxpy(T a, const T *x, T *y, int n) {
    __shared__ T tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x < n) y[threadIdx.x] += a * tile[63 - threadIdx.x];
}
"""


@pytest.fixture
def session() -> FakeSession:
    return FakeSession()


@pytest.fixture
def core(session: FakeSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    module = importlib.import_module("cuda.core")
    driver = importlib.import_module("cuda.bindings.driver")
    monkeypatch.setattr(driver, "cuDriverGetVersion", lambda: (driver.CUresult.CUDA_SUCCESS, 13000))  # asked before PTX is made
    adapter = CudaCoreAdapter()
    adapter.install(session)
    session.notes.clear()
    yield module
    adapter.remove()


def program(core: Any, *args: Any, **options: Any) -> Any:
    try:
        return core.Program(*args, core.ProgramOptions(arch="sm_90a", **options))
    except Exception as error:
        if "DynamicLibNotFound" in type(error).__name__:
            pytest.skip("NVRTC or nvJitLink is not where cuda.core looks")
        raise


def test_this_version_is_taken_over(core: Any, session: FakeSession) -> None:
    assert session.notes == []
    assert core.Program.__module__ == "consan.adapters.cuda_core"


def test_a_template_of_the_users_file(core: Any, session: FakeSession) -> None:
    code = program(core, SAXPY, "c++", std="c++17", name="mine").compile("cubin", name_expressions=("saxpy<float>",))
    assert (code.code_type, bytes(code.code)[:13]) == ("cubin", b"instrumented:")
    assert list(code.symbol_mapping) == ["saxpy<float>"]
    assert isinstance(code, core.ObjectCode)
    (text,) = session.texts
    assert str(Path(__file__).name) in text
    assert ".loc" in text
    assert code.symbol_mapping["saxpy<float>"].decode() in text


def test_ptx_goes_through_and_the_linker_gets_the_plain_one(core: Any, session: FakeSession) -> None:
    program(core, SAXPY.replace("template <typename T>", 'extern "C"').replace("T ", "float "), "c++").compile("cubin")
    ptx = session.texts.pop()
    code = program(core, ptx, "ptx").compile("cubin")
    assert session.texts == [ptx]
    assert bytes(code.code) == b"instrumented:" + ptx.encode()
    loaded = core.ObjectCode.from_ptx(ptx.encode())
    assert core.Linker(loaded, options=core.LinkerOptions(arch="sm_90a")).link("cubin").code_type == "cubin"
