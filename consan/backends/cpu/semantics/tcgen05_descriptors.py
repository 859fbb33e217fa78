"""The two descriptors of tcgen05: which bytes of shared memory an operand is made of, and what a product is.

PTX ISA, "Shared memory descriptor", "Instruction descriptor" (Tables 39 to 44, 51, 52, 54, 56). Everything here is arithmetic on numbers.

An operand in shared memory is made of chunks of 16 bytes; a descriptor's 14-bit addresses and offsets count such chunks. With T elements in
a chunk, W chunks in a line of the swizzle pattern, G = 8 lines in a pattern (4 for mode 1 if MN-major), and divisions rounding down:

    K-major, chunk c of row r:      start + (r % 8) * 16 W + (r / 8) * stride + c * (16 if swizzled, else leading)
    MN-major, chunk q = r / T       start + (k % G) * 16 W + (k / G) * Y + (q / W) * X + (q % W) * 16
    of rows qT .. qT+T-1 at k:      X, Y = leading, stride if swizzled, else stride, leading

The XOR of the swizzle works on the absolute address, which is why programs step along K by adding to the start address:
`address ^= (((address >> 7) - base_offset) & mask) << low`.

Bits 46 to 48 are 0b001 by the ISA ("Shared memory descriptor"). Zero, as in wgmma's descriptors, is accepted too: Mosaic GPU makes such
descriptors, and tensor cores read the same bytes.

Not handled: K = 96 and absolute leading offsets (sm_103a). The effect of a base offset other than 0 is inferred from its formula.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass

Array = npt.NDArray[Any]
CHUNK = 16
SCALED = ("mxf8f6f4", "mxf4", "mxf4nvf4")
MINI = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
NARROW = ("e2m3", "e3m2", "e2m1")
_FIXED = (0b001, 0)  # bits 46-48
# Chunks in a line of the pattern, bits of the XOR, its lowest bit; by swizzle mode.
_PATTERNS = {0: (1, 0, 4), 1: (8, 2, 5), 2: (8, 3, 4), 4: (4, 2, 4), 6: (2, 1, 4)}
_OPERANDS = {"f16": {0: "f16", 1: "bf16"}, "tf32": {2: "tf32"}, "f8f6f4": MINI, "i8": {0: "u8", 1: "s8"}, "mxf8f6f4": MINI}
_RESULTS = {"f16": {0: "f16", 1: "f32"}, "tf32": {1: "f32"}, "f8f6f4": {0: "f16", 1: "f32"}, "i8": {2: "s32"}}
_DEPTH = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
# Factors for each row of a dense step, by the qualifier; None: without one.
_VECTORS: dict[str, dict[str | None, int]] = {
    "mxf8f6f4": {None: 1, "scale_vec::1X": 1, "block32": 1},
    "mxf4": {None: 2, "scale_vec::2X": 2, "block32": 2},
    "mxf4nvf4": {"scale_vec::2X": 2, "block32": 2, "scale_vec::4X": 4, "block16": 4},
}
_FACTOR_IDS = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}


class Illegal(Exception):  # noqa: N818 - what the ISA forbids, not an error of this machine
    """A descriptor or a shape that the ISA forbids. The text names the field and what is allowed."""


def _bits(value: int, low: int, count: int) -> int:
    return value >> low & ((1 << count) - 1)


# Operands in shared memory --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Matrix:
    """A shared memory descriptor; offsets in bytes."""

    start: int
    leading: int
    stride: int
    base: int
    mode: int

    @property
    def swizzled(self) -> bool:
        """Whether it has a swizzle pattern."""
        return self.mode != 0


@lru_cache(maxsize=4096)
def matrix(descriptor: int) -> Matrix:
    """The fields of a descriptor."""
    mode = _bits(descriptor, 61, 3)
    if mode not in _PATTERNS:
        raise Illegal(f"shared memory descriptor {descriptor:#018x}: the swizzling mode (bits 61-63) is {mode}; allowed: 0, 1, 2, 4, 6")
    if _bits(descriptor, 46, 3) not in _FIXED or _bits(descriptor, 53, 8):
        raise Illegal(f"shared memory descriptor {descriptor:#018x}: bits 46-48 must be 0b001, and bits 53-60 zero")
    if _bits(descriptor, 52, 1):
        raise Illegal(f"shared memory descriptor {descriptor:#018x}: an absolute leading dimension (bit 52) exists on sm_103a only")
    start, leading, stride = (_bits(descriptor, low, 14) << 4 for low in (0, 16, 32))
    return Matrix(start, leading, stride, _bits(descriptor, 49, 3), mode)


@lru_cache(maxsize=512)
def chunk_addresses(operand: Matrix, rows: int, along: int, per: int, mn_major: bool) -> Array:
    """Shared addresses of the chunks of an operand of `rows` rows, `per` elements in a chunk.

    Shape: [rows, along] with `along` chunks of K; MN-major [rows / per, along] with `along` elements of K.
    """
    width, bits, low = _PATTERNS[operand.mode]
    line = CHUNK * width
    if not mn_major:
        row, chunk = np.arange(rows)[:, None], np.arange(along)
        step = CHUNK if operand.swizzled else operand.leading
        address = operand.start + row % 8 * line + row // 8 * operand.stride + chunk * step
    else:
        chunk, k = np.arange(-(-rows // per))[:, None], np.arange(along)
        group = 4 if operand.mode == 1 else 8
        x, y = (operand.leading, operand.stride) if operand.swizzled else (operand.stride, operand.leading)
        address = operand.start + k % group * line + k // group * y + chunk // width * x + chunk % width * CHUNK
    address = address ^ ((address >> 7) - operand.base & (1 << bits) - 1) << low
    address.setflags(write=False)
    return np.asarray(address)


# The instruction descriptor ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProductForm:
    """The properties of a product that its opcode gives."""

    kind: str
    pair: bool
    ws: bool
    sparse: bool
    vector: str | None = None  # the qualifier of the scale factors


@dataclass(frozen=True)
class ScaleFactors:
    """The factors that a block-scaled product multiplies its operands by."""

    count: int  # of each row
    element: str
    first_a: int  # the first byte of a row's factors
    first_b: int


@dataclass(frozen=True)
class MatrixProduct:
    """A product of M x K by K x N; `k` counts the elements of a dense row of A, also where A is sparse."""

    form: ProductForm
    m: int
    n: int
    k: int
    d: str
    a: str
    b: str
    negate: bool  # the product as a whole: two signs cancel
    mn_major_a: bool
    mn_major_b: bool
    saturate: bool
    selector: int = 0  # of sparsity metadata
    scales: ScaleFactors | None = None

    @property
    def ctas(self) -> int:
        """CTAs that take part."""
        return 2 if self.form.pair else 1

    @property
    def packed(self) -> bool:
        """Whether a byte of shared or tensor memory holds two elements."""
        return self.form.kind in ("mxf4", "mxf4nvf4")


@lru_cache(maxsize=256)
def product(word: int, form: ProductForm) -> MatrixProduct:
    """The product that an instruction descriptor describes for an opcode."""
    found = (_scaled if form.kind in SCALED else _plain)(_Fields(word, form))
    _check_shape(_Fields(word, form), found)
    return found


@dataclass(frozen=True)
class _Fields:
    """The fields of a descriptor, and the errors that name them."""

    word: int
    form: ProductForm

    def take(self, low: int, count: int) -> int:
        return _bits(self.word, low, count)

    def refuse(self, low: int, count: int, name: str, value: object, allowed: str) -> Illegal:
        bits = f"bit {low}" if count == 1 else f"bits {low}-{low + count - 1}"
        group = 2 if self.form.pair else 1
        more = (", .ws" if self.form.ws else "") + (", .sp" if self.form.sparse else "")
        what = f".kind::{self.form.kind} with .cta_group::{group}{more}"
        return Illegal(f"instruction descriptor {self.word:#010x}: {name} ({bits}) is {value}; {what} allows {allowed}")

    def choose(self, low: int, count: int, name: str, values: dict[int, str]) -> str:
        given = self.take(low, count)
        if given not in values:
            raise self.refuse(low, count, name, given, ", ".join(f"{code} ({word})" for code, word in values.items()))
        return values[given]

    def zero(self, *ranges: tuple[int, int]) -> None:
        for low, count in ranges:
            if self.take(low, count):
                raise self.refuse(low, count, "a reserved field", self.take(low, count), "0")

    def check_sparsity(self) -> None:
        if self.take(2, 1) != self.form.sparse:
            has = f"{int(self.form.sparse)}, as the opcode has {'' if self.form.sparse else 'no '}.sp"
            raise self.refuse(2, 1, "sparsity", self.take(2, 1), has)


def _plain(f: _Fields) -> MatrixProduct:
    """Kinds f16, tf32, f8f6f4 and i8 (Table 42)."""
    form, integer = f.form, f.form.kind == "i8"
    f.zero((6, 1), (23, 1), (29, 1))
    f.check_sparsity()
    if integer:
        for low, name in ((13, "negate A"), (14, "negate B")):
            if f.take(low, 1):
                raise f.refuse(low, 1, name, 1, "0")
    elif f.take(3, 1):
        raise f.refuse(3, 1, "saturate", 1, "0")
    d = f.choose(4, 2, "the type of D", _RESULTS[form.kind])
    a, b = (f.choose(low, 3, f"the type of {name}", _OPERANDS[form.kind]) for low, name in ((7, "A"), (10, "B")))
    if form.kind == "f16" and d == "f16" and (a, b) != ("f16", "f16"):
        raise f.refuse(4, 2, "the type of D", "0 (f16)", f"1 (f32) with A of {a} and B of {b}")
    if form.sparse and form.kind in ("i8", "f8f6f4") and f.take(0, 2):
        raise f.refuse(0, 2, "the sparsity selector", f.take(0, 2), "0")
    return MatrixProduct(
        form, f.take(24, 5) << 4, f.take(17, 6) << 3, _DEPTH[form.kind] << form.sparse, d, a, b,
        bool(f.take(13, 1) ^ f.take(14, 1)), bool(f.take(15, 1)), bool(f.take(16, 1)), bool(f.take(3, 1)), f.take(0, 2),
    )  # fmt: skip


def _scaled(f: _Fields) -> MatrixProduct:
    """Block-scaled kinds (Tables 43, 44)."""
    form, four = f.form, f.form.kind != "mxf8f6f4"
    f.zero((0, 2), (3, 1), (6, 1), (24, 3), *(((12, 1),) if four else ((31, 1),)))
    f.check_sparsity()
    if four and f.take(31, 1):
        raise f.refuse(31, 1, "the K dimension", "1 (K = 96)", "0: K = 96 exists on sm_103a only, and this machine does not know it")
    e2m1 = {1: "e2m1"}
    a = f.choose(7, 3, "the type of A", e2m1 if four else MINI)
    b = f.choose(10, 2 if four else 3, "the type of B", e2m1 if four else MINI)
    if four:
        for low, name in ((15, "transpose A"), (16, "transpose B")):
            if f.take(low, 1):
                raise f.refuse(low, 1, name, 1, "0")
    vectors = _VECTORS[form.kind]
    if form.vector not in vectors:
        raise Illegal(f".kind::{form.kind} takes one of {', '.join(f'.{word}' for word in vectors if word)}, not {form.vector}")
    factors = vectors[form.vector]
    scales = {0: "ue4m3", 1: "ue8m0"} if form.kind == "mxf4nvf4" and factors == 4 else {1: "ue8m0"}
    scale = f.choose(23, 1, "the type of the scale factors", scales)
    ids = {number: f"byte {number}" for number in _FACTOR_IDS[factors]}
    for low, name in ((29, "the scale factor id of A"), (4, "the scale factor id of B")):
        f.choose(low, 2, name, ids)
    return MatrixProduct(
        form, f.take(27, 2) << 7, f.take(17, 6) << 3, _DEPTH[form.kind] << form.sparse, "f32", a, b,
        bool(f.take(13, 1) ^ f.take(14, 1)), bool(f.take(15, 1)), bool(f.take(16, 1)), saturate=False,
        scales=ScaleFactors(factors, scale, f.take(29, 2), f.take(4, 2)),
    )  # fmt: skip


def _check_shape(f: _Fields, found: MatrixProduct) -> None:
    """M, N (Tables 39 and 52) and majors (Table 54)."""
    form = f.form
    rows = _rows(form)
    if found.m not in rows:
        low, count = (27, 2) if form.kind in SCALED else (24, 5)
        raise f.refuse(low, count, "M", found.m, ", ".join(map(str, rows)))
    columns = _columns(found)
    if found.n not in columns:
        step = columns[-1] - columns[-2]
        steps = f"{columns[0]} to 256 in steps of {step}"
        raise f.refuse(17, 6, "N", found.n, ", ".join(map(str, columns)) if form.ws or form.kind == "i8" else steps)
    for low, name, word, major in ((15, "A", found.a, found.mn_major_a), (16, "B", found.b, found.mn_major_b)):
        if major and word in NARROW:
            raise f.refuse(low, 1, f"transpose {name}", 1, f"0 for {word}")


def _rows(form: ProductForm) -> tuple[int, ...]:
    if form.ws:
        return (32, 64, 128)
    if not form.pair:
        return (128,) if form.kind in SCALED else (64, 128)
    return (256,) if form.kind in SCALED and form.sparse else (128, 256)


def _columns(found: MatrixProduct) -> list[int]:
    form = found.form
    if form.ws:
        return [64, 128] if form.sparse else [64, 128, 256]
    if form.kind == "i8":
        return list(range(32, 257, 32)) if form.pair else [8, 16, 24, *range(32, 257, 16)]
    wide = found.mn_major_b and form.kind in ("f8f6f4", "mxf8f6f4")
    step = 8 * found.ctas * (2 if wide else 1)
    return list(range(step, 257, step))


def column_shift(mask: int, found: MatrixProduct) -> int:
    """The columns by which a zero-column mask descriptor shifts B (Table 45)."""
    shift, most = _bits(mask, 56, 6), 16 if found.m == 32 else 32
    if shift > most:
        what = f"zero-column mask descriptor {mask:#018x}: the column shift (bits 56-61)"
        raise Illegal(f"{what} is {shift}; M = {found.m} allows up to {most}")
    return shift


def check_swizzle(operand: Matrix, element: str, mn_major: bool, name: str) -> None:
    """Type, major and swizzle must fit each other (Table 54)."""
    atoms32 = operand.mode == 1
    if mn_major and atoms32 != (element == "tf32"):
        allowed = "only 1 (128 bytes in atoms of 32)" if element == "tf32" else "0, 2, 4, 6"
        raise Illegal(f"the swizzling mode (bits 61-63) of {name} is {operand.mode}; an MN-major matrix of {element} allows {allowed}")
