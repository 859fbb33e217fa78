"""wgmma.mma_async.sp: every type against plain products, on the virtual machine and on a GPU.

Operands are small integers, so results are exact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from engine_support import Device
from test_engine_wgmma import COMMIT, DEPTH, FENCE, ORIGIN, SHARED, WAIT, constants_of, d_names, kernel, values, vector
from wgmma_reference import ENCODE, NBYTES, fragment_a, matrix_d, metadata, packed, sparse, store, tile

from consan.backends.cpu import UnsupportedInstruction
from consan.backends.driver import why_unavailable
from consan.session.modules.device import open_backend
from consan.toolchain.assemble import assemble

Array = np.ndarray[Any, Any]
STATIC = 48 << 10  # bytes of shared memory that a kernel may declare
N = 16
FORMS = [
    *((types, selector) for types in ("f32.f16.f16", "f16.f16.f16", "f32.bf16.bf16", "f32.tf32.tf32") for selector in (0, 1)),
    *((f"{d}.{a}.{b}", 0) for d in ("f16", "f32") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
    *((f"s32.{a}.{b}", 0) for a in ("s8", "u8") for b in ("s8", "u8")),
]
SWIZZLES = [(0, 0), (32, 64), (128, 128)]  # of A and B: B is twice as deep


class Given(NamedTuple):
    """A kernel, its shared memory, and what its threads shall hold."""

    text: str
    image: Array
    count: int
    half: bool
    exact: Array


def _given(types: str, selector: int, swizzles: tuple[int, int] = (0, 0), *, turned: bool = False, in_registers: bool = False) -> Given:
    """One product. `turned`: both operands are stored along M and N (imm-trans)."""
    d, a_type, b_type = types.split(".")[:3]
    rng = np.random.default_rng(selector + sum(swizzles))
    depth = 2 * DEPTH[a_type]
    dense, places = sparse(rng, values(rng, a_type, (64, depth), d == "f16"), a_type)
    b = values(rng, b_type, (N, depth), d == "f16")
    codes = ENCODE[a_type](packed(dense, places, a_type))
    layout_a, _, end = tile(ORIGIN, NBYTES[a_type], swizzles[0], turned, 64, 1)
    layout_b, _, end = tile(-(-end // 1024) * 1024, NBYTES[b_type], swizzles[1], turned, N, 2)
    image = np.full(-(-(end - ORIGIN) // 16) * 16, 0xEE, np.uint8)
    store(image, layout_a, codes, ORIGIN)
    store(image, layout_b, ENCODE[b_type](b), ORIGIN)
    rows = [metadata(places, a_type, selector), *(fragment_a(codes) if in_registers else ())]
    at = len(image)
    image = np.concatenate([image, np.stack(rows).view(np.uint8).reshape(-1)])
    body = f"shl.b32 %t15, %t0, 2; add.u32 %t15, %t15, %t6; add.u32 %t15, %t15, {at};"
    body += "".join(f"ld.shared.b32 %a{row}, [%t15+{512 * row}];" for row in range(len(rows)))
    body += f"mov.b64 %g1, {layout_a.descriptor}; mov.b64 %g2, {layout_b.descriptor};"
    constants = constants_of(types, None if in_registers else turned, turned)
    operand = "{%a1, %a2, %a3, %a4}" if in_registers else "%g1"
    count = N // 4 if d == "f16" else N // 2
    opcode = f"wgmma.mma_async.sp.sync.aligned.m64n{N}k{depth}.{types}"
    operands = [vector(d_names(count)), operand, "%g2", "%a0", str(selector), "0", *filter(None, [constants])]
    body += f"{FENCE}{opcode} {', '.join(operands)};{COMMIT}{WAIT}"
    text = kernel(body, count).replace(f"smem[{SHARED}]", f"smem[{STATIC}]")
    return Given(text, image, count, d == "f16", dense.astype(np.int64) @ b.T.astype(np.int64))


def _check(given: Given, registers: Array) -> None:
    found = matrix_d(registers.reshape(-1, given.count), given.half)
    np.testing.assert_array_equal(found if given.half else found.view(np.float32), given.exact)


def _machine(given: Given) -> None:
    device = Device(given.text)
    out = device.buffer(np.zeros(128 * given.count, np.uint32))
    device.launch("k", 1, 128, out, device.buffer(given.image), given.image.nbytes)
    assert device.stats.completed, device.stats
    found = device.machine.view(out, np.uint32, 128 * given.count).copy()
    _check(given, found if ".s32." not in given.text else found.view(np.int32).astype(np.float32).view(np.uint32))


@pytest.mark.parametrize("swizzles", SWIZZLES)
@pytest.mark.parametrize(("types", "selector"), FORMS)
def test_every_type_and_selector(types: str, selector: int, swizzles: tuple[int, int]) -> None:
    _machine(_given(types, selector, swizzles))


@pytest.mark.parametrize(("types", "selector"), FORMS)
def test_a_in_registers(types: str, selector: int) -> None:
    _machine(_given(types, selector, in_registers=True))


@pytest.mark.parametrize("types", ["f32.f16.f16", "f32.bf16.bf16"])
def test_operands_along_m_and_n(types: str) -> None:
    _machine(_given(types, 1, (64, 64), turned=True))


@pytest.mark.parametrize(
    "form",
    [
        "m64n16k64.f32.e4m3.e4m3 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, %g1, %g2, %a0, 1, 0, 1, 1;",
        "m64n16k32.f32.f16.f16 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, %g1, %g2, %a0, 2, 0, 1, 1, 0, 0;",
        "m64n16k16.f32.f16.f16 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, %g1, %g2, %a0, 0, 0, 1, 1, 0, 0;",
    ],
)
def test_selectors_and_shapes_that_are_not_defined_are_refused(form: str) -> None:
    device = Device(kernel(f"wgmma.mma_async.sp.sync.aligned.{form}", 8))
    with pytest.raises(UnsupportedInstruction, match=r"wgmma\.mma_async\.sp"):
        device.launch("k", 1, 128, 0, 0, 0)


@pytest.mark.parametrize(("types", "selector"), FORMS)
def test_the_forms_assemble(types: str, selector: int) -> None:
    for in_registers in (False, True):
        assert assemble(_given(types, selector, in_registers=in_registers).text, arch="sm_90a")


@pytest.mark.gpu
@pytest.mark.skipif(bool(REASON := why_unavailable()), reason=str(REASON))
@pytest.mark.parametrize(("types", "selector"), FORMS)
def test_the_chip_agrees(types: str, selector: int) -> None:
    backend = open_backend("gpu")
    for more in ({}, {"swizzles": (32, 64)}, {"in_registers": True}):
        given = _given(types, selector, **more)  # type: ignore[arg-type]
        _machine(given)
        _check(given, _on_chip(backend, given))


def _on_chip(backend: Any, given: Given) -> Array:
    image, out = backend.alloc(given.image.nbytes), backend.alloc(512 * given.count)
    try:
        backend.write(image, given.image)
        handle = backend.load(given.text, name="sparse.ptx")
        sizes = [*(int(each).to_bytes(8, "little") for each in (out, image)), given.image.nbytes.to_bytes(4, "little")]
        backend.launch(handle, "k", (1, 1, 1), (128, 1, 1), sizes)
        backend.synchronize()
        found = np.frombuffer(backend.read(out, 512 * given.count), np.uint32)
        return found if ".s32." not in given.text else found.view(np.int32).astype(np.float32).view(np.uint32)
    finally:
        backend.free(image)
        backend.free(out)
