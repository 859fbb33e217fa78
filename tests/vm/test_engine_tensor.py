"""Tensor copies: loads, stores, reductions, maps changed on the device; against a reference that goes element by element."""

from __future__ import annotations

import operator
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tensor_reference as reference
from engine_support import Device, cuda

from consan.backends.cpu.state.faults import UnsupportedInstruction
from consan.tensormap.description import DTYPES
from consan.tensormap.encoding import encode_im2col, encode_tiled

Array = npt.NDArray[Any]
SEEDS = pytest.mark.parametrize("seed", [0, 3, 4])
SHARED = 16384
TYPES = {name: np.dtype(f"u{dtype.nbytes}") for name, dtype in DTYPES.items()} | {"f16": np.dtype("f2"), "f32": np.dtype("f4")}

# Shared memory is filled from `fill`, one thread copies, and all of it is written to `out`: `first` is where the box lies.
SOURCE = """
struct alignas(64) Map { unsigned char bits[128]; };
extern "C" __global__ void k(const __grid_constant__ Map map, const unsigned* fill, unsigned* out, unsigned first, unsigned bytes,
                             int c0, int c1, int c2, int c3, int c4, int o0, int o1, int o2) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ unsigned long long bar;
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(memory)) + first;
    unsigned mbar = static_cast<unsigned>(__cvta_generic_to_shared(&bar));
    for (unsigned i = threadIdx.x; i < WORDS; i += blockDim.x) reinterpret_cast<unsigned*>(memory)[i] = fill[i];
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(mbar) : "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(mbar), "r"(bytes) : "memory");
        asm volatile("{ .reg .b16 w, h, d, m; cvt.u16.u32 w, %8; cvt.u16.u32 h, %9; cvt.u16.u32 d, %10; mov.u16 m, 1; COPY }"
                     :: "r"(at), "l"(&map), "r"(mbar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "r"(o0), "r"(o1), "r"(o2) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W; }" :: "r"(mbar) : "memory");
    __syncthreads();
    for (unsigned i = threadIdx.x; i < WORDS; i += blockDim.x) out[i] = reinterpret_cast<unsigned*>(memory)[i];
}
""".replace("WORDS", str(SHARED // 4))
COORDINATES = ["%3", "%4", "%5", "%6", "%7"]


def source(copy: str, rank: int) -> str:
    """The kernel with COPY replaced; {c} are the coordinates of a rank, {o} its im2col offsets."""
    text = copy.format(c="{" + ", ".join(COORDINATES[:rank]) + "}", o="{" + ", ".join("whd"[: rank - 2]) + "}", n=rank)
    return SOURCE.replace("COPY", text)


LOAD = "cp.async.bulk.tensor.{n}d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {c}], [%2];"
LOAD_TILE = (
    "cp.async.bulk.tensor.{n}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {c}], [%2], m;"
)
LOAD_IM2COL = "cp.async.bulk.tensor.{n}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {c}], [%2], {o};"
STORE = "cp.async.bulk.tensor.{n}d.global.shared::cta.bulk_group [%1, {c}], [%0];"
STORE_IM2COL = "cp.async.bulk.tensor.{n}d.global.shared::cta.im2col_no_offs.bulk_group [%1, {c}], [%0];"
REDUCE = "cp.reduce.async.bulk.tensor.{n}d.global.shared::cta.OP.bulk_group [%1, {c}], [%0];"


class Case:
    """A tensor on a device, a map of it, and the memory of the kernel."""

    def __init__(self, copy: str, tensor: Array, dtype: str, rank: int | None = None) -> None:
        self.rank = rank or tensor.ndim
        self.device = Device(cuda(source(copy, self.rank)))
        self.tensor, self.dtype = tensor, dtype
        self.address = self.device.buffer(tensor)
        self.dims = tensor.shape[::-1]
        self.strides = tensor.strides[-2::-1]
        numbers = np.random.default_rng(7).integers(0, 640, SHARED // tensor.itemsize)
        self.memory = numbers.astype(tensor.dtype).view(np.uint8)

    def tiled(self, box: Sequence[int], **more: Any) -> bytes:
        return encode_tiled(self.dtype, self.address, self.dims, self.strides, tuple(box)[::-1], **more)

    def launch(self, data: bytes, start: Sequence[int], nbytes: int, *, first: int = 0, offsets: Sequence[int] = (), seed: int = 0) -> Any:
        """`start` in NumPy's order; the coordinates that the kernel gets are innermost first."""
        self.out = self.device.buffer(np.zeros(SHARED, np.uint8))
        coordinates = [*start[::-1], *[0] * 5][:5]
        moved = [*offsets[::-1], *[0] * 3][:3]
        arguments = [value & 0xFFFFFFFF for value in (first, nbytes, *coordinates, *moved)]
        fill = self.device.buffer(self.memory)
        return self.device.launch("k", 1, 64, data, fill, self.out, *arguments, shared=SHARED, seed=seed)

    @property
    def shared(self) -> Array:
        return self.device.machine.view(self.out, np.uint8, SHARED)

    @property
    def global_(self) -> Array:
        return self.device.machine.view(self.address, self.tensor.dtype, self.tensor.size).reshape(self.tensor.shape)


def tensor(shape: Sequence[int], dtype: str) -> Array:
    values = np.arange(1, np.prod(shape) + 1) % (251 if TYPES[dtype].itemsize == 1 else 1021)
    return values.astype(TYPES[dtype]).reshape(shape)


# shape, box, start, element strides: NumPy's order; the element type; the swizzle.
BOXES: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], str, int]] = [
    ((100,), (32,), (16,), (1,), "u8", 0),
    ((104,), (16,), (96,), (1,), "f32", 0),
    ((40, 64), (8, 64), (3, 0), (1, 1), "f16", 128),
    ((40, 64), (16, 64), (30, 32), (1, 1), "f16", 128),
    ((40, 64), (8, 64), (-3, -8), (1, 1), "bf16", 128),
    ((40, 64), (12, 32), (1, 8), (1, 1), "f16", 64),
    ((40, 64), (10, 16), (35, 56), (1, 1), "f16", 32),
    ((40, 64), (7, 24), (0, 8), (1, 1), "f16", 0),
    ((33, 48), (9, 16), (2, 4), (3, 1), "u32", 64),
    ((33, 48), (8, 8), (100, 2), (1, 1), "u64", 64),
    ((9, 10, 32), (3, 4, 32), (7, -1, 0), (1, 1, 1), "f32", 128),
    ((9, 10, 32), (5, 7, 8), (1, 1, 4), (2, 3, 1), "s32", 32),
    ((5, 6, 7, 32), (2, 3, 2, 32), (4, -1, 6, 8), (1, 1, 1, 1), "f16", 64),
    ((5, 6, 7, 32), (2, 5, 4, 32), (0, 1, -2, 0), (1, 4, 2, 1), "f16", 64),
    ((3, 4, 5, 6, 16), (2, 2, 3, 2, 16), (2, -1, 3, 5, 4), (1, 1, 1, 1, 1), "f32", 64),
    ((3, 4, 5, 6, 16), (3, 4, 5, 3, 16), (0, 0, 0, 1, 0), (2, 3, 4, 2, 1), "u8", 0),
]
BOX = pytest.mark.parametrize(("shape", "box", "start", "steps", "dtype", "swizzle"), BOXES)


def check_load(shape: Any, box: Any, start: Any, steps: Any, dtype: str, swizzle: int, seed: int) -> None:
    case = Case(LOAD if seed else LOAD_TILE, tensor(shape, dtype), dtype)
    coordinates = reference.tiled(start, box, steps)
    nbytes = len(coordinates) * case.tensor.itemsize
    first = (0, 128, 640)[seed % 3]
    stats = case.launch(case.tiled(box, swizzle=swizzle, element_strides=steps[::-1]), start, nbytes, first=first, seed=seed)
    assert stats.completed, stats
    np.testing.assert_array_equal(case.shared, reference.shared_image(case.tensor, coordinates, first, swizzle, case.memory))


@SEEDS
@BOX
def test_loads(shape: Any, box: Any, start: Any, steps: Any, dtype: str, swizzle: int, seed: int) -> None:
    check_load(shape, box, start, steps, dtype, swizzle, seed)


def inside(start: Sequence[int]) -> tuple[int, ...]:
    """Where a store may start."""
    return tuple(max(0, place) for place in start)


@SEEDS
@BOX
def test_stores_are_cut_off_at_the_edge(shape: Any, box: Any, start: Any, steps: Any, dtype: str, swizzle: int, seed: int) -> None:
    case, start = Case(STORE, tensor(shape, dtype), dtype), inside(start)
    coordinates = reference.tiled(start, box, steps)
    first = (0, 128, 640)[seed % 3]
    stats = case.launch(case.tiled(box, swizzle=swizzle, element_strides=steps[::-1]), start, 0, first=first, seed=seed)
    assert stats.completed, stats
    expected = reference.stored(case.tensor, coordinates, first, swizzle, case.memory, lambda _old, new: new)
    np.testing.assert_array_equal(case.global_, expected)
    np.testing.assert_array_equal(case.shared, case.memory)


REDUCTIONS = {
    "add": (operator.add, ("u32", "s32", "u64", "f32", "f16")),
    "min": (min, ("u32", "u64", "f16")),
    "max": (max, ("u32", "f16")),
    "inc": (lambda old, new: 0 if old >= new else old + 1, ("u32",)),
    "dec": (lambda old, new: new if old == 0 or old > new else old - 1, ("u32",)),
    "and": (operator.and_, ("u32", "s64")),
    "or": (operator.or_, ("u64",)),
    "xor": (operator.xor, ("s32",)),
}


@pytest.mark.parametrize(("operation", "dtype"), [(name, dtype) for name, (_, dtypes) in REDUCTIONS.items() for dtype in dtypes])
def test_reductions(operation: str, dtype: str) -> None:
    values = tensor((20, 16), dtype)
    case = Case(REDUCE.replace("OP", operation), values, dtype)
    box, start = (5, 32 // values.itemsize), (17, 8)
    assert case.launch(case.tiled(box, swizzle=32), start, 0).completed
    combine = REDUCTIONS[operation][0]
    with np.errstate(over="ignore"):
        expected = reference.stored(values, reference.tiled(start, box, (1, 1)), 0, 32, case.memory, combine)
    assert (expected != values).any()
    np.testing.assert_array_equal(case.global_, expected)


@pytest.mark.parametrize(("operation", "dtype"), [("min", "f32"), ("and", "f32"), ("inc", "u64"), ("add", "u8"), ("add", "f64")])
def test_reductions_that_the_isa_does_not_have(operation: str, dtype: str) -> None:
    case = Case(REDUCE.replace("OP", operation), np.zeros((20, 16), TYPES[dtype]), dtype)
    with pytest.raises(UnsupportedInstruction, match=rf"{operation}.*line \d+.*of {dtype}"):
        case.launch(case.tiled((5, 16)), (0, 0), 0)


# shape (N, .. W, C), start (N, .. W, C), offsets, lower, upper (.. W), steps (.. W), channels, pixels
IMAGES: list[tuple[Any, ...]] = [
    ((2, 9, 16), (0, 0, 0), (0,), (0,), (0,), (1,), 8, 12),
    ((2, 9, 16), (0, 5, 8), (2,), (-1,), (-1,), (2,), 8, 11),
    ((3, 5, 7, 16), (1, 2, 3, 0), (0, 0), (-1, -1), (-1, -1), (1, 1), 16, 32),
    ((3, 5, 7, 16), (1, 1, 2, 0), (2, 1), (0, 0), (-2, -2), (1, 1), 16, 40),
    ((3, 5, 7, 16), (0, -1, 1, 8), (1, 1), (-1, -1), (-1, 0), (2, 3), 16, 24),
    ((2, 3, 4, 5, 16), (0, 1, 2, 3, 0), (1, 0, 2), (-1, -1, -2), (0, -1, 1), (1, 1, 1), 16, 64),
    ((2, 3, 4, 5, 16), (1, 0, -1, 0, 8), (0, 2, 1), (-1, -1, 0), (1, 2, 0), (2, 1, 2), 8, 50),
]
IMAGE = pytest.mark.parametrize(("shape", "start", "offsets", "lower", "upper", "steps", "channels", "pixels"), IMAGES)


def _image(case: Case, lower: Any, upper: Any, steps: Any, channels: int, pixels: int, swizzle: int, **more: Any) -> bytes:
    return encode_im2col(
        case.dtype, case.address, case.dims, case.strides, lower[::-1], upper[::-1], channels, pixels,
        element_strides=(1, *steps[::-1], 1), swizzle=swizzle, **more,
    )  # fmt: skip


def _columns(shape: Any, start: Any, offsets: Any, lower: Any, upper: Any, steps: Any, channels: int, pixels: int) -> Any:
    image = reference.im2col(shape[:-1], start[:-1], lower, upper, steps, pixels)
    moved = [(n, *(p + o for p, o in zip(rest, offsets, strict=True))) for n, *rest in image]
    return [(*pixel, start[-1] + channel) for pixel in moved for channel in range(channels)]


@pytest.mark.parametrize("seed", [0, 3])
@IMAGE
def test_im2col_loads(
    shape: Any, start: Any, offsets: Any, lower: Any, upper: Any, steps: Any, channels: int, pixels: int, seed: int
) -> None:
    case = Case(LOAD_IM2COL, tensor(shape, "f16"), "f16")
    coordinates = _columns(shape, start, offsets, lower, upper, steps, channels, pixels)
    swizzle = 2 * channels if seed else 0
    swizzle = swizzle if swizzle in (32, 64) else 0
    data = _image(case, lower, upper, steps, channels, pixels, swizzle)
    assert case.launch(data, start, 2 * channels * pixels, offsets=offsets, seed=seed).completed
    np.testing.assert_array_equal(case.shared, reference.shared_image(case.tensor, coordinates, 0, swizzle, case.memory))


@IMAGE
def test_im2col_stores(shape: Any, start: Any, offsets: Any, lower: Any, upper: Any, steps: Any, channels: int, pixels: int) -> None:
    case, start = Case(STORE_IM2COL, tensor(shape, "f16"), "f16"), inside(start)
    coordinates = _columns(shape, start, (0,) * len(lower), lower, upper, steps, channels, pixels)
    assert case.launch(_image(case, lower, upper, steps, channels, pixels, 0), start, 0).completed
    expected = reference.stored(case.tensor, coordinates, 0, 0, case.memory, lambda _old, new: new)
    np.testing.assert_array_equal(case.global_, expected)


def test_random_boxes() -> None:
    chance = random.Random(11)
    for _ in range(12):
        rank = chance.randint(2, 5)
        shape = (*(chance.randint(1, 7) for _ in range(rank - 1)), 8 * chance.randint(1, 6))
        swizzle = chance.choice((0, 32, 64, 128))
        box = (*(chance.randint(1, 4) for _ in range(rank - 1)), (swizzle or 48) // 2)
        start = (*(chance.randint(-3, extent) for extent in shape[:-1]), 8 * chance.randint(-1, shape[-1] // 8))
        steps = (*(chance.randint(1, 3) for _ in range(rank - 1)), 1)
        check_load(shape, box, start, steps, "f16", swizzle, chance.choice((0, 3, 4)))


def test_nan_fills_floats() -> None:
    case = Case(LOAD, tensor((8, 64), "f16"), "f16")
    assert case.launch(case.tiled((4, 64), oob="nan", swizzle=128), (6, 0), 512).completed
    loaded = case.shared[:512].view(np.float16)
    assert set(loaded[128:].view(np.uint16).tolist()) == {0x7FF7}
    assert not np.isnan(loaded[:128]).any()


@SEEDS
def test_the_whole_box_counts_whatever_lies_outside(seed: int) -> None:
    """With one byte more expected the wait never ends; a load wholly outside the tensor completes as any other."""
    case = Case(LOAD, tensor((8, 64), "f16"), "f16")
    data = case.tiled((4, 64), swizzle=128)
    assert case.launch(data, (100, 0), 512, seed=seed).completed
    stats = case.launch(data, (100, 0), 528, seed=seed)
    assert stats.deadlocked
    assert stats.blocked[0].mbarrier is not None
    assert stats.blocked[0].mbarrier.tx == 16


GATHER = "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [at], [%rd0, {4, 5, -1, 0, 9}], [bar];"
SCATTER = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd0, {4, 5, 7, 0, 9}], [at];"
ROWS = """.version 8.7
.target sm_100a
.address_size 64
.shared .align 128 .b8 at[1024]; .shared .b64 bar;
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)
{
.reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
mov.b64 %rd0, map; cvta.param.u64 %rd0, %rd0; ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; mov.u32 %r1, at;
mad.lo.u32 %r2, %r0, 4, %r1; mad.wide.u32 %rd2, %r0, 4, %rd1; add.u32 %r4, %r0, 77; st.shared.u32 [%r2], %r4; bar.sync 0;
@%p0 bra N;
mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 _, [bar], BYTES;
COPY
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
W: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W;
N: bar.sync 0;
ld.shared.u32 %r3, [%r2]; st.global.u32 [%rd2], %r3; ret;
}
"""


@pytest.mark.parametrize("seed", range(3))
def test_gather4_and_scatter4(seed: int) -> None:
    values = np.arange(100, 180, dtype=np.uint32).reshape(10, 8)
    for copy, nbytes in ((GATHER, 64), (SCATTER, 0)):
        device = Device(ROWS.replace("COPY", copy).replace("BYTES", str(nbytes)))
        address, out = device.buffer(values), device.buffer(np.zeros(32, np.uint32))
        data = encode_tiled("u32", address, (8, 10), (32,), (4, 1))
        assert device.launch("k", 1, 32, data, out, seed=seed).completed
        if copy is GATHER:
            expected = [*values[5, 4:8], *[0] * 4, *values[0, 4:8], *values[9, 4:8]]
            assert device.machine.view(out, np.uint32, 16).tolist() == expected
        else:
            expected = values.copy()
            expected[[5, 7, 0, 9], 4:8] = np.arange(77, 93).reshape(4, 4)
            np.testing.assert_array_equal(device.machine.view(address, np.uint32, 80).reshape(10, 8), expected)


# Words of f32 -> what a load to tf32 leaves: below, at and above the middle of two neighbours, a carry into the exponent, small numbers.
TF32 = {
    0x3F800FFF: 0x3F800000,
    0x3F801000: 0x3F800000,
    0x3F801001: 0x3F802000,
    0x3F803000: 0x3F804000,
    0xBFFFF000: 0xC0000000,
    0x7F7FFFFF: 0x7F800000,
    0x00001001: 0x00002000,
    0x80000FFF: 0x80000000,
    0x7F800000: 0x7F800000,
    0xFF800001: 0x7FFFE000,
    0x7FC01234: 0x7FFFE000,
}


@pytest.mark.parametrize(("dtype", "rounds"), [("tf32", True), ("tf32.ftz", True), ("f32.ftz", False)])
def test_loads_round_to_tf32(dtype: str, rounds: bool) -> None:
    """To the nearest, ties to even: not documented, and as an H200 does. Elements outside the tensor are filled."""
    words = np.array([*TF32] + [0] * (16 - len(TF32)), np.uint32)
    case = Case(LOAD, words.reshape(1, 16), dtype)
    assert case.launch(case.tiled((1, 32)), (0, 0), 128).completed
    found = TF32.values() if rounds else TF32
    assert case.shared[:128].view(np.uint32).tolist() == [*found] + [0] * (32 - len(TF32))


# What is refused or wrong ---------------------------------------------------------------------------------------------------


def test_an_element_that_is_not_in_memory_is_a_fault() -> None:
    case = Case(LOAD, tensor((8, 64), "f16"), "f16")
    data = encode_tiled("f16", case.address, (64, 9), (128,), (64, 4), swizzle=128)
    assert case.launch(data, (4, 0), 512).completed
    (fault,) = case.launch(data, (6, 0), 512).faults
    assert (fault.kind, fault.space, fault.access, fault.address) == ("out-of-bounds", "global", "read", case.address + 8 * 128)


def test_boxes_must_lie_in_shared_memory_and_at_128_bytes() -> None:
    case = Case(STORE, tensor((8, 64), "f16"), "f16")
    data = case.tiled((4, 64), swizzle=128)
    (fault,) = case.launch(data, (0, 0), 0, first=64).faults
    assert (fault.kind, fault.space, fault.access) == ("misaligned", "shared", "read")
    (fault,) = case.launch(data, (0, 0), 0, first=SHARED - 128).faults
    assert (fault.kind, fault.space) == ("out-of-bounds", "shared")


@pytest.mark.parametrize("change", ["rank", "mode", "bits", "address"])
def test_a_map_that_does_not_fit_ends_the_launch(change: str) -> None:
    values = tensor((3, 8, 64), "f16")
    case = Case(LOAD, values[0] if change == "rank" else values, "f16", rank=3)
    data = bytearray(case.tiled((4, 64) if change == "rank" else (1, 4, 64)))
    if change == "mode":
        data = bytearray(encode_im2col("f16", case.address, case.dims, case.strides, (0,), (0,), 64, 4))
    elif change == "bits":
        data[11] = 0x80
    elif change == "address":
        data[0] += 8
    (fault,) = case.launch(bytes(data), (0, 0, 0), 512).faults
    assert fault.kind == "trap"
    assert "tensor map" in fault.message


def test_a_store_that_starts_at_a_negative_coordinate_ends_the_launch() -> None:
    """The ISA forbids it, and Hopper ends it with an illegal instruction."""
    case = Case(STORE, tensor((40, 64), "f16"), "f16")
    (fault,) = case.launch(case.tiled((4, 64), swizzle=128), (-1, 0), 0).faults
    assert fault.kind == "trap"
    assert "a store starts at a negative coordinate, -1" in fault.message


@pytest.mark.parametrize("copy", [LOAD, STORE])
def test_a_copy_that_starts_within_16_bytes_of_a_row_ends_the_launch(copy: str) -> None:
    """As Hopper does, with an illegal instruction."""
    case = Case(copy, tensor((40, 64), "f16"), "f16")
    data = case.tiled((4, 64), swizzle=128)
    nbytes = 512 if copy is LOAD else 0
    assert case.launch(data, (3, 8), nbytes).completed
    (fault,) = case.launch(data, (3, 4), nbytes).faults
    assert fault.kind == "trap"
    assert "the innermost coordinate, 4, is not on a multiple of 16 bytes" in fault.message


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"interleave": 16}, "an interleaved tensor map"),
        ({"swizzle": 128}, "rows of 64 bytes with a swizzle of 128 bytes"),
    ],
)
def test_what_is_not_known_is_refused_with_its_place(more: dict[str, Any], what: str) -> None:
    case = Case(LOAD, tensor((3, 8, 64), "u32"), "u32")
    data = case.tiled((1, 4, 16), **more)
    with pytest.raises(UnsupportedInstruction, match=rf"cp.async.bulk.tensor.*line \d+.*{what}"):
        case.launch(data, (0, 0, 0), 256)


# Maps on the device ---------------------------------------------------------------------------------------------------------

REPLACE = """
struct alignas(128) Map { unsigned char bits[128]; };
__device__ void replace(Map* map, unsigned long long address) {
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(map));
    #define FIELD(name, type, more, value) \\
        asm volatile("tensormap.replace.tile." name ".shared::cta.b1024." type " [%0], " more " %1;" :: "r"(at), value : "memory")
    FIELD("global_address", "b64", "", "l"(address));
    FIELD("rank", "b32", "", "r"(1));
    FIELD("box_dim", "b32", "0,", "r"(32));
    FIELD("box_dim", "b32", "1,", "r"(4));
    FIELD("global_dim", "b32", "0,", "r"(32));
    FIELD("global_dim", "b32", "1,", "r"(10));
    FIELD("global_stride", "b64", "0,", "l"(128ull));
    FIELD("element_stride", "b32", "0,", "r"(1));
    FIELD("element_stride", "b32", "1,", "r"(1));
    FIELD("elemtype", "b32", "", "n"(7));
    FIELD("interleave_layout", "b32", "", "n"(0));
    FIELD("swizzle_mode", "b32", "", "n"(3));
    FIELD("fill_mode", "b32", "", "n"(0));
}
extern "C" __global__ void k(Map* target, unsigned long long address, float* out) {
    __shared__ Map map;
    __shared__ alignas(1024) float box[128];
    __shared__ unsigned long long bar;
    unsigned mbar = static_cast<unsigned>(__cvta_generic_to_shared(&bar));
    unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(box));
    unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(&map));
    reinterpret_cast<unsigned*>(&map)[threadIdx.x] = 0;
    __syncwarp();
    if (threadIdx.x == 0) replace(&map, address);
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
                 :: "l"(target), "r"(from) : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(target) : "memory");
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(mbar) : "memory");
        asm volatile("prefetch.tensormap [%0];" :: "l"(target) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" :: "r"(mbar) : "memory");
        asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {0, 3}];" :: "l"(target) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {0, 3}], [%2];"
                     :: "r"(to), "l"(target), "r"(mbar) : "memory");
    }
    __syncwarp();
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W; }" :: "r"(mbar) : "memory");
    for (int row = 0; row < 4; row++) out[32 * row + threadIdx.x] = box[32 * row + (threadIdx.x ^ 4 * row)];
}
"""


@SEEDS
def test_a_map_made_on_the_device(seed: int) -> None:
    device = Device(cuda(REPLACE))
    values = np.arange(320, dtype=np.float32).reshape(10, 32)
    target, address, out = (device.buffer(array) for array in (np.full(128, 255, np.uint8), values, np.zeros(128, np.float32)))
    assert device.launch("k", 1, 32, target, address, out, seed=seed).completed
    np.testing.assert_array_equal(device.machine.view(out, np.float32, 128).reshape(4, 32), values[3:7])
    made = device.machine.read(target, 128)
    assert made[:64] == encode_tiled("f32", address, (32, 10), (128,), (32, 4), swizzle=128)[:64]
