"""Arrays, textures and surfaces of the runtime and the driver on the stand-in: values, copies, and what may run at the same time."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from planted import plant
from reversed_tile import HEADER
from test_libcuda import Program, Word

from consan.libcuda import calls, launch_calls, library
from consan.libcuda.memory import texture_calls
from consan.session.session import Session

WIDTH, HEIGHT = 32, 3
# Thread x fetches element x of row 1, and out has it; or it doubles element x of row 2 of the surface, and out has what was there before.
KERNEL = """.visible .entry moves(.param .u64 texture, .param .u64 surface, .param .u64 out, .param .u32 ahead) {
    .reg .b32 %r<6>; .reg .f32 %f<9>; .reg .b64 %d<6>;
    ld.param.u64 %d1, [texture]; ld.param.u64 %d2, [surface]; ld.param.u64 %d3, [out]; ld.param.u32 %r4, [ahead];
    mov.u32 %r1, %tid.x; add.u32 %r5, %r1, %r4; cvt.rn.f32.u32 %f1, %r1; mov.f32 %f2, 0f3F800000; shl.b32 %r2, %r5, 2; mov.u32 %r3, 2;
    BODY
    mul.wide.u32 %d4, %r1, 4; add.u64 %d3, %d3, %d4; st.global.f32 [%d3], %f8;
    ret;
}
"""
FETCH = "tex.2d.v4.f32.f32 {%f8, %f4, %f5, %f6}, [%d1, {%f1, %f2}];"
STORE = """suld.b.2d.b32.OUTSIDE {%f8}, [%d2, {%r2, %r3}];
    add.f32 %f7, %f8, %f8; mov.b32 %r4, %f7; sust.b.2d.b32.OUTSIDE [%d2, {%r2, %r3}], {%r4};"""


class Arrays(Program):
    """A program with two arrays, a texture of the first and a surface of the second, and two streams."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (self.runtime("MallocArray", struct.pack("<5i", 32, 0, 0, 0, 2), WIDTH, HEIGHT, 2) for _ in range(2))
        self.values = np.arange(WIDTH * HEIGHT, dtype=np.float32).reshape(HEIGHT, WIDTH)
        for array in (self.first, self.second):
            self.copy(array, "")
        modes = struct.pack("<3i2ii4fi", 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0)
        self.texture = self.runtime("CreateTextureObject", self.resource(self.first), modes, 0)
        self.surface = self.runtime("CreateSurfaceObject", self.resource(self.second))
        self.stream, self.other = (self("cuStreamCreate", 1) for _ in range(2))

    def runtime(self, name: str, *values: int | bytes) -> int:
        """The result of a call of the runtime. Bytes are at an address."""
        kept, result = [ctypes.create_string_buffer(each) for each in values if isinstance(each, bytes)], Word()
        places = iter(kept)
        words = [ctypes.addressof(next(places)) if isinstance(each, bytes) else each for each in values]
        made = [] if name.startswith(("Memcpy", "Free", "Destroy")) else [ctypes.addressof(result)]
        assert library.driver().call(f"_cuda{name}", [*made, *words, *[0] * (16 - len(words) - len(made))]) == 0, name
        return result.value

    def served(self, name: str, *words: int) -> int:
        """The code of a call of the runtime."""
        return library.driver().call(f"_cuda{name}", [*words, *[0] * (16 - len(words))])

    def resource(self, array: int) -> bytes:
        return struct.pack("<i4xQ", 0, array) + bytes(64)

    def copy(self, array: int, how: str, *stream: int) -> None:
        self.runtime(f"Memcpy2DToArray{how}", array, 0, 0, self.values.ctypes.data, WIDTH * 4, WIDTH * 4, HEIGHT, 1, *stream)

    def run(self, stream: int, body: str = FETCH, outside: str = "trap", ahead: int = 0, *, reads: bool = False) -> np.ndarray[Any, Any]:
        module = self("cuModuleLoadData", ctypes.c_char_p((HEADER + KERNEL.replace("BODY", body).replace("OUTSIDE", outside)).encode()))
        kernel, out = self("cuModuleGetFunction", module, ctypes.c_char_p(b"moves")), self("cuMemAlloc_v2", 4 * WIDTH)
        words = [Word(each) for each in (self.texture, self.surface, out, ahead)]
        places = (ctypes.c_void_p * 4)(*map(ctypes.addressof, words))
        self.do("cuLaunchKernel", kernel, 1, 1, 1, WIDTH, 1, 1, 0, stream, places, 0)
        found = np.zeros(WIDTH, np.float32)
        if reads:
            self.do("cuMemcpyDtoHAsync_v2", found.ctypes.data, out, 4 * WIDTH, stream)
        return found


@pytest.fixture
def program(session: Session) -> Iterator[Arrays]:
    library.enter(session)
    yield Arrays()
    library.leave()


def held(program: Arrays, array: int) -> np.ndarray[Any, Any]:
    found = np.zeros((HEIGHT, WIDTH), np.float32)
    program.runtime("Memcpy2DFromArray", found.ctypes.data, WIDTH * 4, array, 0, 0, WIDTH * 4, HEIGHT, 2)
    return found


def test_a_kernel_fetches_and_stores(program: Arrays, session: Session) -> None:
    np.testing.assert_array_equal(program.run(program.stream, reads=True), program.values[1])
    np.testing.assert_array_equal(program.run(program.stream, STORE, reads=True), program.values[2])
    np.testing.assert_array_equal(held(program, program.second), [*program.values[:2], 2 * program.values[2]])
    assert session.report().verdict == "clean", session.report().incomplete
    for name, handle in (
        ("DestroyTextureObject", program.texture),
        ("DestroySurfaceObject", program.surface),
        ("FreeArray", program.first),
    ):
        program.runtime(name, handle)


@pytest.mark.parametrize("outside", ["zero", "clamp", "trap"])
def test_the_end_of_a_surface(program: Arrays, session: Session, outside: str) -> None:
    found = program.run(program.stream, STORE, outside, ahead=1, reads=True)
    if outside == "trap":
        assert any(
            "a coordinate is outside of the surface" in str(each) for each in (*session.report().incomplete, *session.report().findings)
        )
        return
    last = {"zero": 0, "clamp": program.values[2, -1]}[outside]
    assert found[-2] == program.values[2, -1]
    assert outside == "clamp" or found[-1] == last
    assert held(program, program.second)[2, 0] == program.values[2, 0]


@pytest.mark.parametrize("racy", [False, True])
def test_a_copy_and_fetches(program: Arrays, session: Session, racy: bool) -> None:
    program.run(program.stream)
    program.copy(program.first, "Async", program.other if racy else program.stream)
    report = session.report()
    assert {(each.kind, each.hazard) for each in report.findings} == ({("global-race", "WAR")} if racy else set())


@pytest.mark.parametrize("several", [False, True])
def test_a_surface_in_two_streams_is_not_judged(program: Arrays, session: Session, several: bool) -> None:
    program.copy(program.second, "Async", program.stream)
    program.run(program.other if several else program.stream, STORE)
    assert session.report().verdict == ("incomplete" if several else "clean")


def test_a_fault_in_what_a_launch_fetches(program: Arrays, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, texture_calls, "if not driver.special.objects:", "if True:")
    assert launch_calls.before_launch is texture_calls.before_launch
    program.run(program.stream)
    program.copy(program.first, "Async", program.other)
    assert not session.report().findings


class ByDriver(Arrays):
    """The same by the driver's calls."""

    def __init__(self) -> None:
        super().__init__()
        for name, handle in (("Texture", self.texture), ("Surface", self.surface)):
            self.runtime(f"Destroy{name}Object", handle)
        self.first = self("cuArrayCreate_v2", struct.pack("<2Q2I", WIDTH, HEIGHT, 0x20, 1))
        self.second = self("cuArray3DCreate_v2", struct.pack("<3Q3I4x", WIDTH, HEIGHT, 0, 0x20, 1, 2))
        for array in (self.first, self.second):
            self.rows(array, to=True, host=self.values)
        modes = struct.pack("<4iI2i3f4f", 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        self.texture = self("cuTexObjectCreate", self.resource(self.first), modes, 0)
        self.surface = self("cuSurfObjectCreate", self.resource(self.second))

    def rows(self, array: int, *, to: bool, host: np.ndarray[Any, Any]) -> None:
        """A copy between an array and memory of the host (CUDA_MEMCPY2D)."""
        ends = (0, 0, 1, host.ctypes.data, 0, 0, WIDTH * 4), (0, 0, 3, 0, 0, array, 0)
        source, target = ends if to else ends[::-1]
        self.do("cuMemcpy2D_v2", (Word * 16)(*source, *target, WIDTH * 4, HEIGHT))


@pytest.fixture
def by_driver(session: Session) -> Iterator[ByDriver]:
    library.enter(session)
    yield ByDriver()
    library.leave()


def test_arrays_of_the_driver(by_driver: ByDriver, session: Session) -> None:
    np.testing.assert_array_equal(by_driver.run(by_driver.stream, reads=True), by_driver.values[1])
    np.testing.assert_array_equal(by_driver.run(by_driver.stream, STORE, reads=True), by_driver.values[2])
    found = np.zeros((HEIGHT, WIDTH), np.float32)
    by_driver.rows(by_driver.second, to=False, host=found)
    np.testing.assert_array_equal(found, [*by_driver.values[:2], 2 * by_driver.values[2]])
    row = np.zeros(4, np.float32)
    by_driver.do("cuMemcpyHtoA_v2", by_driver.first, 8, np.full(2, 7, np.float32).ctypes.data, 8)
    by_driver.do("cuMemcpyAtoH_v2", row.ctypes.data, by_driver.first, 4, 16)
    assert row.tolist() == [1, 7, 7, 4]
    assert session.report().verdict == "clean", session.report().incomplete
    for name, handle in (("cuTexObjectDestroy", by_driver.texture), ("cuSurfObjectDestroy", by_driver.surface)):
        by_driver.do(name, handle)
    by_driver.do("cuArrayDestroy", by_driver.first)


def test_a_copy_to_an_array_that_a_texture_of_the_driver_reads(by_driver: ByDriver, session: Session) -> None:
    by_driver.run(by_driver.stream)
    words = (Word * 16)(0, 0, 1, by_driver.values.ctypes.data, 0, 0, WIDTH * 4, 0, 0, 3, 0, 0, by_driver.first, 0, WIDTH * 4, HEIGHT)
    by_driver.do("cuMemcpy2DAsync_v2", words, by_driver.other)
    assert {(each.kind, each.hazard) for each in session.report().findings} == {("global-race", "WAR")}


def test_levels_of_a_mipmapped_array_are_arrays(program: Arrays, session: Session) -> None:
    whole = program.runtime("MallocMipmappedArray", struct.pack("<5i", 32, 0, 0, 0, 2), 2 * WIDTH, 2 * HEIGHT, 0, 3, 2)
    levels = [program.runtime("GetMipmappedArrayLevel", whole, level) for level in range(3)]
    found = []
    for level in levels:
        extent, channels, flags = (ctypes.create_string_buffer(size) for size in (24, 20, 4))
        assert program.served("ArrayGetInfo", *map(ctypes.addressof, (channels, extent, flags)), level) == 0
        found.append((*struct.unpack("<3Q", extent.raw), *struct.unpack("<5i", channels.raw), *struct.unpack("<I", flags.raw)))
    assert found == [(64, 6, 0, 32, 0, 0, 0, 2, 2), (32, 3, 0, 32, 0, 0, 0, 2, 2), (16, 1, 0, 32, 0, 0, 0, 2, 2)]
    program.copy(levels[1], "")
    program.texture = program.runtime("CreateTextureObject", program.resource(levels[1]), struct.pack("<3i2ii4fi", *(1,) * 3, *(0,) * 8), 0)
    np.testing.assert_array_equal(program.run(program.stream, reads=True), program.values[1])
    result, modes = Word(), ctypes.create_string_buffer(64)
    resource = ctypes.create_string_buffer(struct.pack("<i4xQ", 1, whole) + bytes(64))
    places = [*map(ctypes.addressof, (result, resource, modes)), 0]
    assert program.served("CreateTextureObject", *places) == calls.NOT_SUPPORTED, "levels of detail"
    assert program.served("GetMipmappedArrayLevel", ctypes.addressof(result), whole, 3) == calls.INVALID_VALUE
    assert program.served("MallocMipmappedArray", *map(ctypes.addressof, (result, resource)), 4, 4, 0, 4, 0) == calls.INVALID_VALUE
    assert program.served("FreeMipmappedArray", whole) == 0
    assert session.report().findings == ()
