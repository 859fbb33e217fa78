"""tex, tld4 and txq on the virtual machine, against a reference written from the programming guide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import texture_reference as reference
from engine_support import Device

import consan
from consan import NotSupported

COUNT = 32
HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 t, .param .u64 xs, .param .u64 out) {
.reg .b32 %r<40>; .reg .f32 %f<20>; .reg .b64 %d<9>; .reg .b16 %h<8>; .reg .pred %p<4>;
ld.param.u64 %d1, [t]; ld.param.u64 %d2, [xs]; ld.param.u64 %d3, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d4, %r1, 16;
add.u64 %d2, %d2, %d4; add.u64 %d3, %d3, %d4;
ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%d2]; ld.global.v4.u32 {%r11, %r12, %r13, %r14}, [%d2]; mov.u32 %r9, 0;
BODY
}
"""
STORE = "st.global.v4.b32 [%d3], {%f11, %f12, %f13, %f14}; ret;"
COORDINATES = {1: "%f1", 2: "%f1, %f2", 3: "%f1, %f2, %f3, %f3"}
F32 = "{%f11, %f12, %f13, %f14}"


def _run(texture: Any, xs: np.ndarray[Any, Any], fetch: str, store: str = STORE) -> tuple[np.ndarray[Any, Any], Any]:
    device = Device(HEAD.replace("BODY", f"{fetch} {store}"))
    out, handle = device.buffer(np.zeros((COUNT, 4), np.uint32)), 77
    if isinstance(texture, consan.Texture):
        handle = 5
        device.machine.arena.textures[handle] = texture.at(device.buffer(texture.array))
    stats = device.launch("k", 1, COUNT, handle, device.buffer(xs), out)
    return device.machine.view(out, np.uint32, COUNT * 4).reshape(COUNT, 4).copy(), stats


def _floats(*columns: Any) -> np.ndarray[Any, Any]:
    rows = np.zeros((COUNT, 4), np.float32)
    for number, column in enumerate(columns):
        rows[:, number] = column
    return rows


def _chosen(rank: int, normalized: bool, extents: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Coordinates in and around a texture; none is a border between two elements."""
    chance = np.random.default_rng(rank)
    scale = [1 if normalized else extent for extent in extents]
    return _floats(*[chance.integers(-40, 80, COUNT) / 40 * size + 1 / 97 for size in scale])


@pytest.mark.parametrize("shape", [(7,), (5, 6), (3, 4, 5)])
@pytest.mark.parametrize(
    ("address", "normalized"), [("clamp", False), ("border", False), ("clamp", True), ("border", True), ("wrap", True), ("mirror", True)]
)
@pytest.mark.parametrize("kind", ["point", "linear"])
def test_filters_and_address_modes(shape: tuple[int, ...], address: str, normalized: bool, kind: str) -> None:
    array = np.random.default_rng(5).random(shape, np.float32)
    xs = _chosen(len(shape), normalized, shape[::-1])
    texture = consan.Texture(array, filter=kind, address=address, normalized=normalized)
    out, stats = _run(texture, xs, f"tex.{len(shape)}d.v4.f32.f32 {F32}, [%d1, {{{COORDINATES[len(shape)]}}}];")
    how = {"filter": kind, "address": address, "normalized": normalized}
    expected = [reference.fetch(array, [float(each) for each in row[: len(shape)]], **how) for row in xs]
    np.testing.assert_allclose(out.view(np.float32)[:, 0], expected, rtol=2e-6, atol=1e-6)
    assert stats.completed


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32])
@pytest.mark.parametrize("channels", [1, 2, 4])
def test_elements_of_integers(dtype: Any, channels: int) -> None:
    info = np.iinfo(dtype)
    array = np.random.default_rng(channels).integers(info.min, info.max, (40, channels), dtype, endpoint=True)
    xs = np.zeros((COUNT, 4), np.int32)
    xs[:, 0] = np.arange(COUNT) * 7 % 40
    texture = consan.Texture(array if channels > 1 else array[:, 0].copy(), memory="linear", channels=channels)
    word = "u32" if info.min == 0 else "s32"
    out, _ = _run(
        texture,
        xs,
        f"tex.1d.v4.{word}.s32 {{%r21, %r22, %r23, %r24}}, [%d1, {{%r11}}];",
        "st.global.v4.b32 [%d3], {%r21, %r22, %r23, %r24}; ret;",
    )
    np.testing.assert_array_equal(out[:, :channels], array[xs[:, 0]].astype(np.int64).astype(np.uint32).reshape(COUNT, channels))
    assert not out[:, channels:].any()


@pytest.mark.parametrize(("dtype", "low"), [(np.uint8, 0.0), (np.int8, -1.0), (np.uint16, 0.0), (np.int16, -1.0)])
def test_integers_read_as_normalized_floats(dtype: Any, low: float) -> None:
    array = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 100], dtype)
    out, _ = _run(consan.Texture(array, read="normalized"), _floats(np.arange(COUNT) % 4), f"tex.1d.v4.f32.f32 {F32}, [%d1, {{%f1}}];")
    np.testing.assert_allclose(out.view(np.float32)[:4, 0], [low, 1, 0, 100 / np.iinfo(dtype).max], rtol=1e-6)


def test_halves() -> None:
    array = np.random.default_rng(2).random((8, 4)).astype(np.float16)
    texture, xs = consan.Texture(array, channels=4), _floats(np.arange(COUNT) % 8 + 0.5)
    out, _ = _run(
        texture, xs, "tex.1d.v4.f16.f32 {%h1, %h2, %h3, %h4}, [%d1, {%f1}];", "st.global.v4.b16 [%d3], {%h1, %h2, %h3, %h4}; ret;"
    )
    np.testing.assert_array_equal(out.view(np.float16)[:, :4], array[np.arange(COUNT) % 8])
    out, _ = _run(texture, xs, "tex.1d.v2.f16x2.f32 {%r21, %r22}, [%d1, {%f1}];", "st.global.v2.b32 [%d3], {%r21, %r22}; ret;")
    np.testing.assert_array_equal(out.view(np.float16)[:, :4], array[np.arange(COUNT) % 8])


def test_layers() -> None:
    array = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5)
    xs = _floats(np.arange(COUNT) % 5, np.arange(COUNT) % 4)
    out, _ = _run(
        consan.Texture(array, shape="layered"), xs, f"and.b32 %r5, %r1, 7; tex.a2d.v4.f32.f32 {F32}, [%d1, {{%r5, %f1, %f2, %f2}}];"
    )
    lanes = np.arange(COUNT)
    np.testing.assert_array_equal(out.view(np.float32)[:, 0], array[np.minimum(lanes & 7, 2), lanes % 4, lanes % 5])
    out, _ = _run(consan.Texture(array[:, 0].copy(), shape="layered"), xs, f"tex.a1d.v4.f32.f32 {F32}, [%d1, {{1, %f1}}];")
    np.testing.assert_array_equal(out.view(np.float32)[:, 0], array[1, 0, lanes % 5])


# The guide's table: a direction on each face, and the position on the face, in parts of its size (s to the right, t down).
DIRECTIONS = {
    (1.0, 0.5, -0.5): (0, 0.75, 0.25), (-1.0, 0.5, -0.5): (1, 0.25, 0.25), (0.5, 1.0, -0.5): (2, 0.75, 0.25),
    (0.5, -1.0, -0.5): (3, 0.75, 0.75), (0.5, -0.5, 1.0): (4, 0.75, 0.75), (0.5, -0.5, -1.0): (5, 0.25, 0.75),
}  # fmt: skip


@pytest.mark.parametrize("layers", [1, 2])
def test_cubes(layers: int) -> None:
    array = np.arange(6 * layers * 16, dtype=np.float32).reshape(6 * layers, 4, 4)
    rows = [list(DIRECTIONS)[lane % 6] for lane in range(COUNT)]
    prefix = "tex.cube" if layers == 1 else "tex.acube"
    coordinates = "%f1, %f2, %f3, %f3" if layers == 1 else "1, %f1, %f2, %f3"
    out, _ = _run(consan.Texture(array, shape="cube"), _floats(*np.array(rows).T), f"{prefix}.v4.f32.f32 {F32}, [%d1, {{{coordinates}}}];")
    expected = [array[face + 6 * (layers - 1), int(t * 4), int(s * 4)] for face, s, t in (DIRECTIONS[row] for row in rows)]
    np.testing.assert_array_equal(out.view(np.float32)[:, 0], expected)


def test_gathers_four_elements_counter_clockwise() -> None:
    array = np.arange(8 * 8 * 2, dtype=np.float32).reshape(8, 8, 2)
    lanes = np.arange(COUNT)
    texture = consan.Texture(array, channels=2)
    out, _ = _run(texture, _floats(lanes % 8 + 0.25, lanes % 7 + 1.0), f"tld4.g.2d.v4.f32.f32 {F32}, [%d1, {{%f1, %f2}}];")
    x = [np.clip(np.floor(lanes % 8 + 0.25 - 0.5) + step, 0, 7).astype(int) for step in (0, 1)]
    y = [np.clip(np.floor(lanes % 7 + 1.0 - 0.5) + step, 0, 7).astype(int) for step in (0, 1)]
    corners = [array[y[1], x[0], 1], array[y[1], x[1], 1], array[y[0], x[1], 1], array[y[0], x[0], 1]]
    np.testing.assert_array_equal(out.view(np.float32), np.stack(corners, axis=1))


def test_offsets_levels_and_residence() -> None:
    array = np.arange(32, dtype=np.float32)
    fetch = f"tex.level.1d.v4.f32.f32 {F32}, [%d1, {{%f1}}], %f4, {{2}};"
    out, _ = _run(consan.Texture(array), _floats(np.arange(COUNT)), fetch)
    np.testing.assert_array_equal(out.view(np.float32)[:, 0], np.minimum(np.arange(COUNT) + 2, 31))
    fetch = f"tex.1d.v4.f32.s32 {F32}|%p1, [%d1, {{%r1}}]; selp.f32 %f12, 1.0, 0.0, %p1;"
    out, _ = _run(consan.Texture(array, memory="linear"), _floats(), fetch)
    np.testing.assert_array_equal(out.view(np.float32)[:, :2], np.stack([array, np.ones(32)], axis=1))


def test_nothing_is_read_outside_of_linear_memory() -> None:
    out, _ = _run(
        consan.Texture(np.ones(8, np.float32), memory="linear"), _floats(), f"sub.u32 %r5, %r1, 4; tex.1d.v4.f32.s32 {F32}, [%d1, {{%r5}}];"
    )
    np.testing.assert_array_equal(out.view(np.float32)[:, 0], [0] * 4 + [1] * 8 + [0] * 20)


def test_queries() -> None:
    names = ("width", "height", "depth", "normalized_coords")
    queries = " ".join(f"txq.{name}.b32 %r2{number}, [%d1];" for number, name in enumerate(names))
    out, _ = _run(
        consan.Texture(np.zeros((3, 4, 5), np.float32), normalized=True),
        _floats(),
        queries,
        "st.global.v4.b32 [%d3], {%r20, %r21, %r22, %r23}; ret;",
    )
    np.testing.assert_array_equal(out[0], [5, 4, 3, 1])
    queries = "txq.array_size.b32 %r20, [%d1]; txq.level.width.b32 %r21, [%d1], 0; txq.level.width.b32 %r22, [%d1], 1;"
    queries += "txq.num_mipmap_levels.b32 %r23, [%d1];"
    out, _ = _run(
        consan.Texture(np.zeros((2, 5), np.float32), shape="layered"),
        _floats(),
        queries,
        "st.global.v4.b32 [%d3], {%r20, %r21, %r22, %r23}; ret;",
    )
    np.testing.assert_array_equal(out[0], [2, 5, 0, 1])


def test_what_ends_the_launch() -> None:
    fetch = f"tex.1d.v4.f32.s32 {F32}, [%d1, {{%r9}}];"
    for texture, said in ((None, "0x4d is no texture object"), (consan.Texture(np.zeros((2, 2), np.float32)), "the texture is not 1d")):
        (fault,) = _run(texture, _floats(), fetch)[1].faults
        assert said in str(fault)
    with pytest.raises(NotSupported, match="a fetch of f32 from a texture of s32 elements"):
        _run(consan.Texture(np.zeros(2, np.int32)), _floats(), fetch)


def test_a_decimal_constant_is_rounded_to_the_type() -> None:
    """`selp` chooses bits: those of a float, also where the constant is written as a double."""
    out, _ = _run(None, _floats(), "setp.eq.u32 %p1, %r1, 3; selp.f32 %f11, 1.5, 0.25, %p1;")
    np.testing.assert_array_equal(out.view(np.float32)[:4, 0], [0.25, 0.25, 0.25, 1.5])


def test_textures_of_several_samples() -> None:
    """The first coordinate is the sample; the others are numbers of elements."""
    array = np.random.default_rng(3).random((4, 5, 6), np.float32)
    xs = np.zeros((COUNT, 4), np.int32)
    xs[:, 0], xs[:, 1], xs[:, 2] = np.arange(COUNT) % 4, np.arange(COUNT) % 6, np.arange(COUNT) % 5
    texture = consan.Texture(array, shape="multisample")
    out, stats = _run(texture, xs, f"tex.2dms.v4.f32.s32 {F32}, [%d1, {{%r11, %r12, %r13, %r13}}];")
    assert stats.completed
    np.testing.assert_array_equal(out.view(np.float32)[:, 0], array[xs[:, 0], xs[:, 2], xs[:, 1]])
    _, stats = _run(texture, xs, f"tex.a2d.v4.f32.s32 {F32}, [%d1, {{%r11, %r12, %r13, %r13}}];")
    assert stats.faults[0].message == "the texture is not a2d"
    out, _ = _run(texture, xs, "txq.num_samples.b32 %r5, [%d1]; txq.array_size.b32 %r6, [%d1];", "st.global.v2.b32 [%d3], {%r5, %r6}; ret;")
    assert out[0, :2].tolist() == [4, 0]
