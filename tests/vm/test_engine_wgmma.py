"""wgmma: every type, swizzle and order against plain products, when operations land, and kernels that Triton compiled."""

from __future__ import annotations

from typing import Any

import corpus
import numpy as np
import pytest
from engine_support import HEADER, Device
from wgmma_reference import ENCODE, NBYTES, Layout, fragment_a, matrix_d, slices_of, store, tile

from consan.backends.cpu import Machine, UnsupportedInstruction
from consan.backends.cpu.semantics.descriptors import CHUNK, K_MAJOR, MN_MAJOR, chunk_addresses

Array = np.ndarray[Any, Any]
SHARED = 128 << 10
ORIGIN = 1024  # of shared memory as kernels see it
DEPTH = {"tf32": 8, "f16": 16, "bf16": 16, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32, "b1": 256}
SWIZZLES = (0, 32, 64, 128)
REGISTERS = 128
FILL = """
mov.u32 %t0, %tid.x; mov.u32 %t1, %ntid.x; mov.u32 %t2, %ctaid.x; mad.lo.u32 %t3, %t2, %t1, %t0;
ld.param.u64 %out, [out]; ld.param.u64 %in, [in]; ld.param.u32 %t5, [nbytes];
mul.wide.u32 %g0, %t2, %t5; add.u64 %in, %in, %g0; mov.u32 %t6, smem; shl.b32 %t7, %t0, 4;
LOOP: setp.ge.u32 %p0, %t7, %t5; @%p0 bra DONE;
cvt.u64.u32 %g0, %t7; add.u64 %g0, %in, %g0; add.u32 %t8, %t6, %t7;
ld.global.v4.u32 {%t10, %t11, %t12, %t13}, [%g0]; st.shared.v4.u32 [%t8], {%t10, %t11, %t12, %t13};
shl.b32 %t9, %t1, 4; add.u32 %t7, %t7, %t9; bra LOOP;
DONE: fence.proxy.async; bar.sync 0;
"""
FENCE, COMMIT, WAIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"


def d_names(count: int, first: int = 0) -> list[str]:
    return [f"%d{i}" for i in range(first, first + count)]


def vector(names: list[str]) -> str:
    return "{" + ", ".join(names) + "}"


def kernel(body: str, count: int) -> str:
    """Shared memory from `in`, `body`, then %d0 to %d(count-1) of each thread to `out`."""
    save = f"mul.wide.u32 %g0, %t3, {4 * count}; add.u64 %g0, %out, %g0;"
    save += "".join(f"st.global.b32 [%g0+{4 * i}], {name};" for i, name in enumerate(d_names(count)))
    return f"""{HEADER}.shared .align 1024 .b8 smem[{SHARED}];
.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 nbytes)
{{ .reg .b32 %t<32>; .reg .b32 %d<{2 * REGISTERS}>; .reg .b32 %a<8>; .reg .b64 %g<8>; .reg .b64 %out, %in; .reg .pred %p<4>;
{FILL}{body}{save}
ret; }}
"""


def start(body: str, image: Array, count: int, threads: int = 128, grid: int = 1, seed: int = 0) -> tuple[Device, int]:
    device = Device(kernel(body, count))
    address = device.buffer(np.zeros(grid * threads * count, np.uint32))
    nbytes = image.nbytes // grid
    device.launch("k", grid, threads, address, device.buffer(image), nbytes, seed=seed)
    return device, address


def run(body: str, image: Array, count: int, threads: int = 128, grid: int = 1, seed: int = 0) -> Array:
    """The registers [threads, count] that a body leaves."""
    device, address = start(body, image, count, threads, grid, seed)
    assert device.stats.completed, device.stats
    return device.machine.view(address, np.uint32, grid * threads * count).reshape(-1, count).copy()


def mma(n: int, types: str, a: str, b: str, *, scale_d: str = "1", constants: str = "", names: list[str] | None = None) -> str:
    """One instruction; `types` is "d.a.b" and more."""
    d, a_type = types.split(".")[:2]
    regs = names if names is not None else d_names(n // 4 if d == "f16" else n // 2)
    more = f", {constants}" if constants else ""
    return f"wgmma.mma_async.sync.aligned.m64n{n}k{DEPTH[a_type]}.{types} {vector(regs)}, {a}, {b}, {scale_d}{more};"


def values(rng: np.random.Generator, a_type: str, shape: tuple[int, int], small: bool) -> Array:
    low, high = (0 if a_type == "u8" else (-1 if small else -4)), 2 if small else 5
    return rng.integers(low, high, shape)


def constants_of(types: str, order_a: bool | None, order_b: bool) -> str:
    """Signs and orders, as many as the type takes; `order_a` None: A is in registers."""
    a_type = types.split(".")[1]
    if a_type in ("s8", "u8"):
        return ""
    orders = [] if a_type not in ("f16", "bf16") else ([] if order_a is None else [str(int(order_a))]) + [str(int(order_b))]
    return ", ".join(["1", "1", *orders])


def product(types: str, n: int, swizzle: int, mn: tuple[bool, bool] = (False, False), in_registers: bool = False) -> None:
    """Check all k-slices of a tile: C starts as 0 through scale-d, operands are small integers, so results are exact."""
    d, a_type, b_type = types.split(".")[:3]
    rng = np.random.default_rng(n + swizzle)
    slices = min(slices_of(swizzle, mn_major=order) for order in mn)
    layout_a, step_a, end = tile(ORIGIN, NBYTES[a_type], swizzle, mn[0], 64, slices)
    layout_b, step_b, end = tile(-(-end // 1024) * 1024, NBYTES[b_type], swizzle, mn[1], n, slices)
    depth = DEPTH[a_type] * slices
    a, b = values(rng, a_type, (64, depth), d == "f16"), values(rng, b_type, (n, depth), d == "f16")
    image = np.full(-(-(end - ORIGIN) // 16) * 16, 0xEE, np.uint8)
    codes_a = ENCODE[a_type](a)
    store(image, layout_a, codes_a, ORIGIN)
    store(image, layout_b, ENCODE[b_type](b), ORIGIN)
    body = FENCE
    if in_registers:
        fragments = np.stack([fragment_a(codes_a[:, i * DEPTH[a_type] :][:, : DEPTH[a_type]]) for i in range(slices)])
        at = len(image)
        image = np.concatenate([image, fragments.view(np.uint8).reshape(-1)])
    for i in range(slices):
        operand_a, desc_b = "%g1", layout_b.descriptor + (i * step_b >> 4)
        if in_registers:
            body += f"shl.b32 %t15, %t0, 2; add.u32 %t15, %t15, smem; mov.b32 %t14, {at + i * 2048}; add.u32 %t15, %t15, %t14;"
            body += "".join(f"ld.shared.b32 %a{r}, [%t15+{512 * r}];" for r in range(4))
            operand_a = "{%a0, %a1, %a2, %a3}"
        body += f"mov.b64 %g1, {layout_a.descriptor + (i * step_a >> 4)}; mov.b64 %g2, {desc_b};"
        orders = constants_of(types, None if in_registers else mn[0], mn[1])
        body += mma(n, types, operand_a, "%g2", scale_d=str(int(i > 0)), constants=orders) + COMMIT + (WAIT if in_registers else "")
    found = matrix_d(run(body + WAIT, image, n // 4 if d == "f16" else n // 2), d == "f16")
    exact = a.astype(np.int64) @ b.T.astype(np.int64)
    np.testing.assert_array_equal(found.view(np.float32 if d == "f32" else np.int32).astype(np.int64) if d != "f16" else found, exact)


TYPES = (
    "f32.f16.f16",
    "f16.f16.f16",
    "f32.bf16.bf16",
    "f32.tf32.tf32",
    "f32.e4m3.e4m3",
    "f32.e4m3.e5m2",
    "f16.e5m2.e4m3",
    "s32.s8.s8",
    "s32.u8.s8",
)


@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("types", TYPES)
def test_every_type_and_swizzle(types: str, swizzle: int) -> None:
    product(types, 64, swizzle)


@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("n", [8, 128])
@pytest.mark.parametrize("mn", [(True, False), (False, True), (True, True)])
def test_both_orders_of_16_bit_operands(mn: tuple[bool, bool], n: int, swizzle: int) -> None:
    product("f32.bf16.bf16" if n == 8 else "f32.f16.f16", n, swizzle, mn)


@pytest.mark.parametrize(("types", "n"), [("f32.f16.f16", 256), ("f32.tf32.tf32", 256), ("f16.f16.f16", 256), ("s32.s8.u8", 8)])
def test_other_widths(types: str, n: int) -> None:
    product(types, n, 128)


@pytest.mark.parametrize("types", TYPES)
def test_a_in_registers(types: str) -> None:
    product(types, 64 if "s32" in types else 72, 128, in_registers=True)


@pytest.mark.parametrize("swizzle", [0, 128])
def test_b_in_mn_order_with_a_in_registers(swizzle: int) -> None:
    product("f32.f16.f16", 128, swizzle, (False, True), in_registers=True)


def test_single_bits() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 256, (64, 32), np.uint8), rng.integers(0, 256, (8, 32), np.uint8)
    layout_a, layout_b = Layout(ORIGIN, 1, 0, False, 128, 256), Layout(ORIGIN + 4096, 1, 0, False, 128, 256)
    image = np.zeros(8192, np.uint8)
    store(image, layout_a, a, ORIGIN)
    store(image, layout_b, b, ORIGIN)
    body = f"mov.b64 %g1, {layout_a.descriptor}; mov.b64 %g2, {layout_b.descriptor};"
    body += "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%d0, %d1, %d2, %d3}, %g1, %g2, 0;" + COMMIT + WAIT
    expected = np.unpackbits(a[:, None] & b[None], axis=-1).sum(-1)
    np.testing.assert_array_equal(matrix_d(run(body, image, 4), False), expected)


# One small product for everything that is not layout -------------------------------------------------------------------

A, B = Layout(ORIGIN, 2, 0, False, 128, 256), Layout(ORIGIN + 4096, 2, 0, False, 128, 256)
DESCRIPTORS = f"mov.b64 %g1, {A.descriptor}; mov.b64 %g2, {B.descriptor};"
HALF = "f32.f16.f16"
ONCE = mma(8, HALF, "%g1", "%g2", constants="1, 1, 0, 0")


def operands(a: Array, b: Array) -> Array:
    image = np.zeros(8192, np.uint8)
    store(image, A, a.astype(np.float16), ORIGIN)
    store(image, B, b.astype(np.float16), ORIGIN)
    return image


@pytest.fixture(scope="module")
def small() -> tuple[Array, Array]:
    """The image of A and B, and their product."""
    rng = np.random.default_rng(5)
    a, b = rng.integers(-4, 5, (64, 16)), rng.integers(-4, 5, (8, 16))
    return operands(a, b), a @ b.T


def four(body: str, image: Array, seed: int = 0) -> Array:
    return matrix_d(run(DESCRIPTORS + body, image, 4, seed=seed).view(np.float32), False)


SEEDS = pytest.mark.parametrize("seed", range(6))


@SEEDS
def test_products_accumulate_in_order(seed: int, small: tuple[Array, Array]) -> None:
    image, exact = small
    np.testing.assert_array_equal(four(FENCE + ONCE * 3 + COMMIT + ONCE + COMMIT + WAIT, image, seed), 4 * exact)


def test_scale_d_and_signs(small: tuple[Array, Array]) -> None:
    image, exact = small
    seven = "".join(f"mov.b32 {name}, 0f40E00000;" for name in d_names(4))
    end = COMMIT + WAIT
    np.testing.assert_array_equal(four(seven + ONCE + end, image), exact + 7)
    np.testing.assert_array_equal(four(seven + mma(8, HALF, "%g1", "%g2", scale_d="0", constants="1, 1, 0, 0") + end, image), exact)
    signs = [("-1, 1", -1), ("1, -1", -1), ("-1, -1", 1)]
    for sign, factor in signs:
        text = seven + mma(8, HALF, "%g1", "%g2", constants=f"{sign}, 0, 0") + end
        np.testing.assert_array_equal(four(text, image), factor * exact + 7)
    by_warp = "and.b32 %t20, %t0, 32; setp.ne.u32 %p1, %t20, 0;" + seven
    found = four(by_warp + mma(8, HALF, "%g1", "%g2", scale_d="%p1", constants="1, 1, 0, 0") + end, image)
    np.testing.assert_array_equal(found, exact + np.repeat([0, 7, 0, 7], 16)[:, None])


def test_rounding() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((64, 16)).astype(np.float16), rng.standard_normal((8, 16)).astype(np.float16)
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_array_equal(four(ONCE + COMMIT + WAIT, operands(a, b)), exact.astype(np.float32))


@pytest.mark.parametrize("satfinite", [False, True])
def test_integer_overflow(satfinite: bool) -> None:
    layout_a, layout_b = (Layout(base, 1, 0, False, 128, 256) for base in (ORIGIN, ORIGIN + 4096))
    image = np.zeros(8192, np.uint8)
    store(image, layout_a, np.full((64, 32), 100, np.uint8), ORIGIN)
    store(image, layout_b, np.full((8, 32), 100, np.uint8), ORIGIN)
    body = f"mov.b64 %g1, {layout_a.descriptor}; mov.b64 %g2, {layout_b.descriptor};"
    body += "".join(f"mov.b32 {name}, 2147483000;" for name in d_names(4))
    found = run(body + mma(8, "s32.s8.s8" + ".satfinite" * satfinite, "%g1", "%g2") + COMMIT + WAIT, image, 4).view(np.int32)
    assert set(found.flat) == {2**31 - 1 if satfinite else 2147483000 + 320000 - 2**32}


# When operations land ---------------------------------------------------------------------------------------------------


def test_without_a_wait_the_schedule_decides(small: tuple[Array, Array]) -> None:
    image, exact = small
    unwaited = FENCE + ONCE + COMMIT + "add.f32 %d0, %d0, 0f00000000;"
    assert not four(unwaited, image)[exact != 0].any(), "seed 0 lands products as late as is legal"
    found = {four(unwaited, image, seed).tobytes() for seed in range(12)}
    assert len(found) > 1


def test_what_is_not_committed_is_not_waited_for(small: tuple[Array, Array]) -> None:
    image, _ = small
    assert not four(ONCE + WAIT, image).any()


@SEEDS
def test_wait_group_covers_all_but_the_newest(seed: int, small: tuple[Array, Array]) -> None:
    image, exact = small
    second = mma(8, HALF, "%g1", "%g2", constants="1, 1, 0, 0", names=d_names(4, 4))
    body = ONCE + COMMIT + second + COMMIT + "wgmma.wait_group.sync.aligned 1;"
    np.testing.assert_array_equal(four(body, image, seed), exact)
    swapped = second + COMMIT + ONCE + COMMIT + "wgmma.wait_group.sync.aligned 1;"
    assert seed or not four(swapped, image, seed).any()


def test_operands_are_read_when_the_product_lands(small: tuple[Array, Array]) -> None:
    image, exact = small
    clear = "shl.b32 %t20, %t0, 4; add.u32 %t20, %t20, smem; mov.b32 %t21, 0; st.shared.v4.b32 [%t20], {%t21, %t21, %t21, %t21};"
    clear += "bar.sync 0;"
    found = four(ONCE + COMMIT + clear + WAIT, image)
    assert not found.any(), "A was overwritten before the wait"
    np.testing.assert_array_equal(four(ONCE + COMMIT + WAIT + clear, image), exact)
    found = four(mma(8, HALF, "{%a0, %a1, %a2, %a3}", "%g2", constants="1, 1, 0") + COMMIT + "mov.b32 %a0, 0x3C003C00;" + WAIT, image)
    assert found.any(), "a register of A was written before the wait"


@SEEDS
def test_a_wait_of_one_warp_covers_what_the_others_have_of_the_product(seed: int, small: tuple[Array, Array]) -> None:
    """A group is one "per warpgroup" (ISA 9.7.15.7), so the warp that has waited may free the operand."""
    image, exact = small
    stores = "".join(f"st.shared.v4.b32 [%t20+{16 * i}], {{%t21, %t21, %t21, %t21}};" for i in range(4))
    clear = f"setp.gt.u32 %p1, %t0, 31; @%p1 bra SKIP; shl.b32 %t20, %t0, 6; add.u32 %t20, %t20, smem; mov.b32 %t21, 0; {stores} SKIP:"
    np.testing.assert_array_equal(
        four(ONCE + COMMIT + "setp.gt.u32 %p1, %t0, 31; @%p1 bra OTHERS;" + WAIT + "OTHERS:" + clear + WAIT, image, seed), exact
    )


def test_writing_an_accumulator_in_flight_is_lost(small: tuple[Array, Array]) -> None:
    image, exact = small
    scaled = mma(8, HALF, "%g1", "%g2", scale_d="0", constants="1, 1, 0, 0")
    np.testing.assert_array_equal(four(scaled + COMMIT + "mov.b32 %d0, 0f40E00000;" + WAIT, image), exact)


@SEEDS
def test_mov_follows_accumulators_in_flight(seed: int, small: tuple[Array, Array]) -> None:
    image, exact = small
    away = "".join(f"mov.b32 %d{20 + i}, %d{i};" for i in range(4))
    again = mma(8, HALF, "%g1", "%g2", constants="1, 1, 0, 0", names=d_names(4, 20))
    back = "".join(f"mov.b32 %d{40 + i}, %d{20 + i};" for i in range(4))
    show = "".join(f"add.f32 %d{i}, %d{40 + i}, 0f00000000;" for i in range(4))
    found = four(FENCE + ONCE + COMMIT + away + again + COMMIT + back + WAIT + show, image, seed)
    np.testing.assert_array_equal(found, 2 * exact)
    first = four(FENCE + ONCE + COMMIT + away + again + COMMIT + "wgmma.wait_group.sync.aligned 1;", image, seed)
    np.testing.assert_array_equal(first, exact)


@SEEDS
def test_warps_of_several_warpgroups_and_ctas(seed: int) -> None:
    """Each warpgroup has its own A, each CTA its own memory; one warp comes late."""
    rng = np.random.default_rng(9)
    image = np.zeros((2, 8192), np.uint8)
    second = Layout(ORIGIN + 2048, 2, 0, False, 128, 256)
    expected = np.zeros((2, 2, 64, 8))
    for cta in range(2):
        b = rng.integers(-4, 5, (8, 16))
        store(image[cta], B, b.astype(np.float16), ORIGIN)
        for group, layout in enumerate((A, second)):
            a = rng.integers(-4, 5, (64, 16))
            store(image[cta], layout, a.astype(np.float16), ORIGIN)
            expected[cta, group] = a @ b.T
    body = DESCRIPTORS + "shr.u32 %t20, %t0, 7; cvt.u64.u32 %g3, %t20; shl.b64 %g3, %g3, 7; add.u64 %g1, %g1, %g3;"
    body += "shr.u32 %t21, %t0, 5; setp.ne.u32 %p1, %t21, 2; @%p1 bra GO; mov.u32 %t22, 0; mov.u32 %t22, 1; GO:" + ONCE + COMMIT + WAIT
    found = run(body, image, 4, threads=256, grid=2, seed=seed).view(np.float32).reshape(2, 2, 128, 4)
    for cta in range(2):
        for group in range(2):
            np.testing.assert_array_equal(matrix_d(found[cta, group], False), expected[cta, group])


def test_the_warp_is_whole_at_wgmma(small: tuple[Array, Array]) -> None:
    image, exact = small
    body = "and.b32 %t20, %t0, 1; setp.eq.u32 %p1, %t20, 0; @%p1 bra GO; mov.u32 %t22, 1; GO:" + ONCE + COMMIT + WAIT
    np.testing.assert_array_equal(four(body, image), exact)


# What is refused ----------------------------------------------------------------------------------------------------------


def test_descriptors_out_of_bounds_are_faults(small: tuple[Array, Array]) -> None:
    body = f"mov.b64 %g1, {A.descriptor}; mov.b64 %g2, {B.descriptor & ~0x3FFF | 0x3FF0};"
    device, _ = start(body + ONCE + COMMIT + WAIT, small[0], 4)
    (fault,) = device.stats.faults
    assert (fault.kind, fault.space, fault.nbytes, fault.access) == ("out-of-bounds", "shared", 16, "read")
    assert "wgmma.mma_async" in fault.opcode


@pytest.mark.parametrize(
    "text",
    [
        "wgmma.mma_async.sync.aligned.m64n8k8.f32.f16.f16 {%d0, %d1, %d2, %d3}, %g1, %g2, 1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2}, %g1, %g2, 1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%d0, %d1, %d2, %d3}, %g1, %g2, 1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %g1, %g2, 1, 2, 1, 0, 0;",
    ],
)
def test_unknown_forms_are_refused(text: str, small: tuple[Array, Array]) -> None:
    with pytest.raises(UnsupportedInstruction, match=r"wgmma\.mma_async"):
        start(text, small[0], 4)


# Descriptors ----------------------------------------------------------------------------------------------------------------


def operand_addresses(descriptor: Any, rows: int, elements: int, element_bytes: int, major: int) -> Array:
    """Byte address of every element of an operand: shape of `descriptor`, then [rows, elements]."""
    chunks = chunk_addresses(descriptor, rows, elements, element_bytes, major)
    inside = np.arange(CHUNK // element_bytes) * element_bytes
    expanded = chunks[..., None] + inside
    if major == K_MAJOR:
        return np.asarray(expanded.reshape(*chunks.shape[:-1], -1)[..., :elements])
    swapped = np.swapaxes(expanded, -1, -2)  # [chunks of a column, T, elements]
    return np.asarray(swapped.reshape(*chunks.shape[:-2], -1, elements)[..., :rows, :])


def operand_chunks(descriptor: int, rows: int, elements: int, element_bytes: int, major: int) -> Array:
    """The 16-byte chunks that an operand touches: their addresses, sorted and distinct."""
    return np.unique(chunk_addresses(descriptor, rows, elements, element_bytes, major))


@pytest.mark.parametrize("nbytes", [1, 2, 4])
@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("mn_major", [False, True])
def test_addresses_and_chunks(mn_major: bool, swizzle: int, nbytes: int) -> None:
    rows, depth = 64, 32 // nbytes
    layout, _, _ = tile(4096, nbytes, swizzle, mn_major, rows, 1)
    expected = np.array([[layout.address(mn, k) for k in range(depth)] for mn in range(rows)])
    arguments = (layout.descriptor, rows, depth, nbytes, MN_MAJOR if mn_major else K_MAJOR)
    np.testing.assert_array_equal(operand_addresses(*arguments), expected)
    touched = {address + i for address in expected.flat for i in range(nbytes)}
    chunks = operand_chunks(*arguments)
    assert {int(chunk) + i for chunk in chunks for i in range(16)} == touched
    assert len(chunks) == 128
    assert (np.diff(chunks) > 0).all()


@pytest.mark.parametrize("swizzle", SWIZZLES[1:])
def test_a_base_offset_says_where_the_pattern_starts(swizzle: int) -> None:
    aligned = Layout(4096, 2, swizzle, False, 16, 8 * swizzle)
    moved = Layout(4096 + 3 * 128, 2, swizzle, False, 16, 8 * swizzle, 3)
    found = operand_addresses(np.array([aligned.descriptor, moved.descriptor], np.uint64), 64, 16, 2, K_MAJOR)
    np.testing.assert_array_equal(found[1], found[0] + 3 * 128)


# Compiled by Triton -----------------------------------------------------------------------------------------------------------


def _triton(name: str) -> str:
    entry = corpus.get(f"triton_hopper/{name}/sm_90a")
    if entry.skip:
        pytest.skip(entry.skip)
    return entry.make()


def _launch(machine: Machine, ptx: str, grid: tuple[int, int, int], arguments: tuple[Any, ...], seed: int) -> float:
    """Launch a Triton kernel as its `notes` say; the seconds that it took."""
    notes, module = corpus.notes(ptx), machine.load(ptx)
    entry = next(iter(module.entries))
    info = module.entry(entry)
    raw = b""
    for param, value in zip(info.params, arguments, strict=False):  # the rest are Triton's own scratch pointers
        raw += bytes(param.offset - len(raw)) + (value if isinstance(value, bytes) else value.to_bytes(param.nbytes, "little"))
    raw += bytes(info.param_bytes - len(raw))
    stats = machine.launch(module, entry, grid, (notes["threads"], 1, 1), raw, shared=notes["shared"], seed=seed)
    assert stats.completed, stats
    return stats.seconds


# name -> type of A and B, type of C
MATMULS = {
    "matmul_2_stages": ("f16", "f16"),
    "matmul_3_stages": ("f16", "f16"),
    "matmul_transposed": ("f16", "f16"),
    "matmul_bf16": ("bf16", "bf16"),
    "matmul_fp8": ("e4m3", "f16"),
    "matmul_tf32": ("tf32", "tf32"),
    "matmul_int8": ("s8", "s32"),
}
RESULTS = {**ENCODE, "tf32": lambda x: x.astype(np.float32).view(np.uint32), "s32": lambda x: x.astype(np.int32)}


def _matmul(name: str, seed: int, m: int, n: int, k: int) -> float:
    """Run a matmul of the corpus on small integers, whose product every type holds exactly, and compare all bits."""
    ptx = _triton(name)
    constants = corpus.notes(ptx)["constants"]
    kind, result = MATMULS[name]
    rng = np.random.default_rng(3)
    a, b = rng.integers(-1, 2, (m, k)), rng.integers(-1, 2, (k, n))
    by_columns = "stride_bk" in constants
    machine = Machine()
    images = [RESULTS[kind](a), RESULTS[kind](np.ascontiguousarray(b.T) if by_columns else b)]
    expected = RESULTS[result](a @ b)
    buffers = [machine.alloc(x.nbytes) for x in (*images, expected)]
    for buffer, x in zip(buffers, images, strict=False):
        machine.write(buffer, x)
    grid = -(-m // constants["BLOCK_M"]) * -(-n // constants["BLOCK_N"])
    arguments = (*buffers, m, n, k, k, k if by_columns else n, n)
    seconds = _launch(machine, ptx, (grid, 1, 1), arguments, seed)
    np.testing.assert_array_equal(machine.view(buffers[2], expected.dtype, m * n).reshape(m, n), expected)
    return seconds


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", MATMULS)
def test_triton_matmul(name: str, seed: int) -> None:
    _matmul(name, seed, 128, 256, 256)


def test_a_long_product_takes_seconds_at_most() -> None:
    assert _matmul("matmul_3_stages", 0, 128, 128, 1024) < 5


@pytest.mark.parametrize("causal", [False, True])
def test_triton_attention(causal: bool) -> None:
    """Probabilities go from the first product's registers into the second as A."""
    ptx, n, dim = _triton("attention_causal" if causal else "attention"), 128, 64
    rng = np.random.default_rng(4)
    q, k, v = (rng.standard_normal((n, dim)).astype(np.float16) for _ in range(3))
    machine = Machine()
    buffers = [machine.alloc(q.nbytes) for _ in range(4)]
    for buffer, x in zip(buffers, (q, k, v), strict=False):
        machine.write(buffer, x)
    scale = np.float32(1.4426950408889634 / np.sqrt(dim))
    _launch(machine, ptx, (n // 64, 1, 1), (*buffers, n, scale.tobytes()), 0)
    scores = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(dim)
    if causal:
        scores[np.triu_indices(n, 1)] = -np.inf
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights / weights.sum(1, keepdims=True) @ v.astype(np.float64)
    np.testing.assert_allclose(machine.view(buffers[3], np.float16, n * dim).reshape(n, dim), expected, atol=3e-3)
