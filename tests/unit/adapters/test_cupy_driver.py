"""CuPy's calls of the driver go through functions of ours: a look-up as CuPy makes it, CuPy itself, and a driver that is made up."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from seam_fakes import package

from consan._errors import EnvironmentFailure
from consan.adapters.cupy_driver import CupyDriver, CupyLaunch

COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")

DRIVER = """
unsigned long long last[12]; int refuses;
int cuCtxGetCurrent(void **context) { return 3; }
int cuGetErrorName(int code, const char **text) { *text = "CUDA_ERROR"; return 0; }
int cuGetErrorString(int code, const char **text) { *text = "failed"; return 0; }
int cuModuleGetFunction(void **found, unsigned long long module, const char *name) {
    if (name[0] == '?') return 500;
    *found = (void *)(module * 16 + name[0]);
    return 0;
}
int cuLaunchKernel(unsigned long long f, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned shared,
                   unsigned long long stream, void **params, void **extra) {
    unsigned long long all[] = {f, x, y, z, a, b, c, shared, stream, (unsigned long long)params, (unsigned long long)extra, 1};
    for (int i = 0; i < 12; i++) last[i] = all[i];
    return refuses;
}
int cuLaunchCooperativeKernel(unsigned long long f, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned shared,
                              unsigned long long stream, void **params) {
    cuLaunchKernel(f, x, y, z, a, b, c, shared, stream, params, 0);
    last[11] = 2;
    return refuses;
}
"""
# As `SoftLink.get` does it: the address of the function's code, out of an object of `ctypes`.
SOFTLINK = """
import ctypes
def get(library, name): return ctypes.c_void_p.from_address(ctypes.addressof(getattr(library, name))).value
"""
API = """
import ctypes
from cupy_backends.cuda import _softlink
class CUDADriverError(RuntimeError): pass
_P, _U = ctypes.c_void_p, ctypes.c_uint
_KINDS = {
    "cuCtxGetCurrent": (_P,), "cuModuleGetFunction": (_P, _P, ctypes.c_char_p), "cuLaunchKernel": (_P, *[_U] * 7, _P, _P, _P),
    "cuLaunchCooperativeKernel": (_P, *[_U] * 7, _P, _P),
}
_found = {}
def call(name, *arguments):
    if not _found:
        library = _softlink.ctypes.CDLL("libcuda.so.1")
        _found.update({each: ctypes.CFUNCTYPE(ctypes.c_int, *kind)(_softlink.get(library, each)) for each, kind in _KINDS.items()})
    status = _found[name](*arguments)
    if status: raise CUDADriverError(status)
def ctxGetCurrent(): call("cuCtxGetCurrent", 0)
def moduleGetFunction(module, name):
    found = _P()
    call("cuModuleGetFunction", ctypes.addressof(found), module, name.encode())
    return found.value
def launchKernel(*arguments): call("cuLaunchKernel", *arguments)
def launchCooperativeKernel(*arguments): call("cuLaunchCooperativeKernel", *arguments)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver that is made up."""
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(DRIVER)
    assert COMPILER is not None
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", folder / "libcuda.so.1", folder / "driver.c"], check=True)
    return folder / "libcuda.so.1"


@pytest.fixture
def cupy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: Path) -> Iterator[Any]:
    """The part of CuPy that calls the driver."""
    real = ctypes.CDLL
    monkeypatch.setattr(ctypes, "CDLL", lambda name, *args: real(str(library) if name == "libcuda.so.1" else name, *args))
    files = {"cupy_backends": "", "cupy_backends.cuda": "", "cupy_backends.cuda._softlink": SOFTLINK}
    files |= {"cupy_backends.cuda.api": "", "cupy_backends.cuda.api.driver": API}
    for _ in package(tmp_path / "site", monkeypatch, files):
        yield importlib.import_module("cupy_backends.cuda.api.driver")


class Taker:
    """Makes launches as they are, unless a test sets something else."""

    def __init__(self) -> None:
        self.launches: list[CupyLaunch] = []
        self.instead = 0
        self.error: BaseException | None = None
        self.driver = CupyDriver(self.launched)

    def launched(self, launch: CupyLaunch) -> int:
        self.launches.append(launch)
        if self.error is not None:
            raise self.error
        return launch.make(self.instead or launch.function)


def last(library: Path) -> list[int]:
    return list((ctypes.c_ulonglong * 12).in_dll(ctypes.CDLL(str(library)), "last"))


def refuse(library: Path, status: int) -> None:
    ctypes.c_int.in_dll(ctypes.CDLL(str(library)), "refuses").value = status


def test_launches_come_through(cupy: Any, library: Path) -> None:
    taker = Taker()
    assert taker.driver.take_over()
    assert taker.driver.take_over()
    kernel = cupy.moduleGetFunction(7, "k")
    assert taker.driver.kernels == {kernel: (7, "k")}
    cupy.launchKernel(kernel, 1, 2, 3, 4, 5, 6, 1024, 9, 4096, None)
    (launch,) = taker.launches
    assert (launch.function, launch.grid, launch.block, launch.shared, launch.stream) == (kernel, (1, 2, 3), (4, 5, 6), 1024, 9)
    assert (launch.params, launch.extra) == (4096, 0)
    assert last(library) == [kernel, 1, 2, 3, 4, 5, 6, 1024, 9, 4096, 0, 1]
    taker.instead = 77
    cupy.launchCooperativeKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, 4096)
    assert last(library) == [77, 1, 1, 1, 32, 1, 1, 0, 0, 4096, 0, 2]
    assert taker.launches[1].stream == 0


def test_what_the_driver_refuses_is_refused(cupy: Any, library: Path) -> None:
    taker = Taker()
    taker.driver.take_over()
    with pytest.raises(RuntimeError, match="500"):
        cupy.moduleGetFunction(7, "?")
    assert taker.driver.kernels == {}
    refuse(library, 701)
    try:
        with pytest.raises(RuntimeError, match="701"):
            cupy.launchKernel(1, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    finally:
        refuse(library, 0)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), EnvironmentFailure("no memory")])
def test_an_error_is_raised_in_python(cupy: Any, library: Path, error: BaseException) -> None:
    taker = Taker()
    taker.driver.take_over()
    taker.error = error
    with pytest.raises(type(error)) as caught:
        cupy.launchKernel(1, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    assert caught.value is error
    with pytest.raises(RuntimeError, match="500"):  # the next error is CuPy's
        cupy.moduleGetFunction(7, "?")


def test_a_driver_that_was_called_before_stays(cupy: Any) -> None:
    with pytest.raises(RuntimeError):
        cupy.ctxGetCurrent()
    assert not Taker().driver.take_over()


def test_a_cupy_without_these_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in package(tmp_path, monkeypatch, {"cupy_backends": "", "cupy_backends.cuda": ""}):
        assert not Taker().driver.take_over()


REAL = """
import ctypes, cupy
from cupy_backends.cuda.api import driver
from consan.adapters.cupy_driver import CupyDriver
seen = []
def launched(launch):
    seen.append((launch.function, launch.grid, launch.block, launch.shared, launch.stream))
    if len(seen) == 3: raise KeyboardInterrupt
    return launch.make(launch.function + 1)
ours = CupyDriver(launched)
assert ours.take_over()
kernel = driver.moduleGetFunction(7, "k")
assert ours.kernels == {kernel: (7, "k")}
driver.launchKernel(kernel, 1, 2, 3, 4, 5, 6, 1024, 9, 4096, 0)
last = (ctypes.c_ulonglong * 12).in_dll(ctypes.CDLL("libcuda.so.1"), "last")
assert list(last) == [kernel + 1, 1, 2, 3, 4, 5, 6, 1024, 9, 4096, 0, 1], list(last)
driver.launchCooperativeKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, 4096)
assert last[11] == 2
assert seen == [(kernel, (1, 2, 3), (4, 5, 6), 1024, 9), (kernel, (1, 1, 1), (32, 1, 1), 0, 0)], seen
try:
    driver.launchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)
except KeyboardInterrupt:
    pass
try:
    driver.moduleGetFunction(7, "?")
except cupy.cuda.driver.CUDADriverError as error:
    print(error.status, error)
"""


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed")
def test_cupy_itself(library: Path) -> None:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
    done = subprocess.run([sys.executable, "-c", REAL], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "500 CUDA_ERROR: failed\n", done.stdout + done.stderr
