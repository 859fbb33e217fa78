"""f32 and f64 arithmetic: PTX ISA "Floating Point Instructions", "Mixed Precision Floating Point Instructions".

Exact: add, sub, mul, fma, mad, div.rnd, rcp.rnd, sqrt.rnd in every rounding mode, abs, neg, min, max, testp, copysign, with .ftz and
.sat. NaN results of f32 are canonical (0x7fffffff).

Approximate forms (div.approx, div.full, rcp.approx, sqrt.approx, rsqrt, sin, cos, lg2, ex2, tanh) return the host library's value, which
is well inside the error bound that the ISA states, and the ISA's values for special operands. They do not reproduce the bits of
the hardware's tables.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from . import ops_rounding as rounding
from .ops_base import Array, Function, Op, Operations, any_true, bits, canonicalize, from_ufunc, lane
from .ops_half import HALVES, extreme, extreme_signed
from .ops_rounding import F32, F64, flush, saturate

PAIR_DTYPE = np.dtype(np.uint64)


def modified(fn: Function, ftz: str, sat: str = "", word: str = "f32") -> Function:
    """Wrap a function of floats with input and output flushing, saturation, and the canonical NaN of f32."""
    if word == "f64":
        return fn
    if not ftz and not sat:
        return lambda *operands: canonicalize(fn(*operands), "f32")
    before: Function = flush if ftz else np.asarray

    def wrapped(*operands: Array) -> Array:
        result = np.asarray(fn(*map(before, operands)))
        result = flush(result) if ftz else result
        return saturate(result) if sat else canonicalize(np.array(result), "f32")

    return wrapped


# add, sub, mul, fma ----------------------------------------------------------------------------------------------


def _sub32(a: Array, b: Array, mode: str) -> Array:
    return rounding.add32(a, np.negative(b), mode)


def _sub64(a: Array, b: Array, mode: str) -> Array:
    return rounding.add64(a, np.negative(b), mode)


NEAREST: dict[str, np.ufunc] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
DIRECTED: dict[tuple[str, str], Callable[..., Array]] = {
    ("add", "f32"): rounding.add32,
    ("sub", "f32"): _sub32,
    ("mul", "f32"): rounding.mul32,
    ("fma", "f32"): rounding.fma32,
    ("add", "f64"): rounding.add64,
    ("sub", "f64"): _sub64,
    ("mul", "f64"): rounding.mul64,
    ("fma", "f64"): rounding.fma64,
}
ARITY = {"add": 2, "sub": 2, "mul": 2, "fma": 3}


def arithmetic(name: str, mode: str, word: str) -> Function:
    """The bare function of one rounding mode."""
    if mode in ("", "rn") and name in NEAREST:
        return NEAREST[name]
    return partial(DIRECTED[name, word], mode=mode or "rn")


def _binary32(name: str, mode: str, ftz: str, sat: str) -> Op:
    fn = arithmetic(name, mode, "f32")
    plain = isinstance(fn, np.ufunc) and not ftz and not sat
    whole = fn if name == "fma" and not ftz and not sat else modified(fn, ftz, sat)  # fma32 writes canonical NaN itself
    return lane(("f32",) * ARITY[name], "f32", whole, ufunc=fn if plain else None, canonical_nan=plain)


def _binary64(name: str, mode: str) -> Op:
    fn = arithmetic(name, mode, "f64")
    return lane(("f64",) * ARITY[name], "f64", fn, ufunc=fn if isinstance(fn, np.ufunc) else None)


def _pair32(name: str, mode: str, ftz: str) -> Op:
    """f32x2: two f32 in a 64-bit word."""
    fn = modified(arithmetic(name, mode, "f32"), ftz)

    def packed(*operands: Array) -> Array:
        parts = [np.asarray(x)[..., None].view(F32) if np.ndim(x) else np.asarray(x).reshape(1).view(F32) for x in operands]
        return np.ascontiguousarray(fn(*parts)).view(PAIR_DTYPE)[..., 0]

    return lane(("f32x2",) * ARITY[name], "f32x2", packed)


def _mixed(name: str, mode: str, sat: str, half: str) -> Op:
    """add and sub of a half and an f32, fma of two halves and an f32: widen, then the f32 instruction."""
    fn, widen, halves = modified(arithmetic(name, mode, "f32"), "", sat), HALVES[half].widen, ARITY[name] - 1

    def mixed(*operands: Array) -> Array:
        result: Array = fn(*map(widen, operands[:halves]), operands[halves])
        return result

    return lane((*(half,) * halves, "f32"), "f32", mixed)


# div, rcp, sqrt --------------------------------------------------------------------------------------------------

ROUNDED: dict[tuple[str, str], Callable[..., Array]] = {
    ("div", "f32"): rounding.div32,
    ("div", "f64"): rounding.div64,
    ("rcp", "f32"): lambda a, mode: rounding.div32(np.ones_like(a), a, mode),
    ("rcp", "f64"): lambda a, mode: rounding.div64(np.ones_like(a), a, mode),
    ("sqrt", "f32"): rounding.sqrt32,
    ("sqrt", "f64"): rounding.sqrt64,
}
ROOTS_AND_QUOTIENTS: dict[str, np.ufunc] = {"div": np.divide, "rcp": np.reciprocal, "sqrt": np.sqrt}


def _rounded(name: str, mode: str, ftz: str, word: str) -> Op:
    arity = 2 if name == "div" else 1
    fn = partial(ROUNDED[name, word], mode=mode)
    plain = mode == "rn" and not ftz and name in ("div", "sqrt")
    ufunc = ROOTS_AND_QUOTIENTS[name] if plain else None
    return lane((word,) * arity, word, modified(fn, ftz, "", word), ufunc=ufunc, canonical_nan=plain and word == "f32")


# Approximations --------------------------------------------------------------------------------------------------


def _divide_approx(a: Array, b: Array) -> Array:
    """Quotient; for 2**126 < |b| < 2**128 the reciprocal is flushed: zero, or NaN for an infinite dividend."""
    result = np.asarray(np.divide(a, b))
    size = np.abs(b)
    huge = (size > F32(2.0**126)) & (size < F32(np.inf))
    return np.where(huge, a * np.copysign(F32(0), b), result) if any_true(huge) else result


def _rsqrt32(a: Array) -> Array:
    return np.asarray(1.0 / np.sqrt(a.astype(F64))).astype(F32)


def _rsqrt64(a: Array) -> Array:
    return np.asarray(1.0 / np.sqrt(a))


def _gross(fn: Function) -> Function:
    """The .approx.ftz.f64 forms: only the upper words of operand and result exist."""
    upper = np.uint64(0xFFFFFFFF00000000)

    def wrapped(a: Array) -> Array:
        result = np.asarray(flush(fn(flush(np.asarray(bits(np.asarray(a)) & upper).view(F64)))))
        word = np.where(np.isnan(result), np.uint64(0x7FFFFFFF00000000), bits(result) & upper)
        return np.asarray(word.view(F64))

    return wrapped


APPROXIMATE32: dict[str, Function] = {
    "rcp": lambda a: np.divide(F32(1), a),
    "sqrt": np.sqrt,
    "rsqrt": _rsqrt32,
    "sin": np.sin,
    "cos": np.cos,
    "lg2": np.log2,
    "ex2": np.exp2,
}
DIVISIONS: dict[str, Function] = {"approx": _divide_approx, "full": np.divide}
GROSS64: dict[str, Function] = {"rcp": lambda a: np.divide(F64(1), a), "rsqrt": _rsqrt64}


def _approximate(name: str, ftz: str) -> Op:
    return lane("f32", "f32", modified(APPROXIMATE32[name], ftz))


def _division(kind: str, ftz: str) -> Op:
    return lane("f32 f32", "f32", modified(DIVISIONS[kind], ftz))


# min, max --------------------------------------------------------------------------------------------------------


def _extreme32(name: str, ftz: str, nan: str, signed: str) -> Op:
    choose: Any = partial(extreme_signed if signed else extreme, name, bool(nan))

    def fold(first: Array, *others: Array) -> Array:
        for operand in others:
            first = choose(first, operand)
        return first

    return lane("f32 f32", "f32", modified(fold, ftz))


def _extreme_abs32(name: str, ftz: str, nan: str) -> Op:
    op = _extreme32(name, ftz, nan, "")
    return lane("f32 f32 f32", "f32", lambda *operands: op.fn(*map(np.abs, operands)))


# abs, neg, testp, copysign ---------------------------------------------------------------------------------------

SIGNS: dict[str, np.ufunc] = {"abs": np.absolute, "neg": np.negative}


def _sign(name: str, ftz: str, word: str) -> Op:
    ufunc = SIGNS[name]
    return lane(word, word, lambda a: ufunc(flush(a))) if ftz else from_ufunc(ufunc, word)


def _is_subnormal(a: Array) -> Array:
    return np.asarray((a != 0) & (np.abs(a) < np.finfo(a.dtype).tiny))


TESTS: dict[str, Function] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda a: ~np.isnan(a),
    "notanumber": np.isnan,
    "normal": lambda a: np.isfinite(a) & ~_is_subnormal(a),
    "subnormal": _is_subnormal,
}


def _testp(name: str, word: str) -> Op:
    return lane(word, "pred", TESTS[name])


def _copysign(word: str) -> Op:
    return lane((word, word), word, lambda a, b: np.copysign(b, a))


def _sums(name: str) -> Operations:
    return {
        f"{name}{{.rnd}}{{.ftz}}{{.sat}}.f32": partial(_binary32, name),
        f"{name}{{.rnd}}{{.ftz}}.f32x2": partial(_pair32, name),
        f"{name}{{.rnd}}.f64": partial(_binary64, name),
    }


def _rooted(name: str) -> Operations:
    return {
        f"{name}.rnd{{.ftz}}.f32": lambda mode, ftz: _rounded(name, mode, ftz, "f32"),
        f"{name}.rnd.f64": lambda mode: _rounded(name, mode, "", "f64"),
    }


def _extremes(name: str) -> Operations:
    return {
        f"{name}{{.ftz}}{{.NaN}}{{.xorsign.abs}}.f32": lambda ftz, nan, signed, _abs: _extreme32(name, ftz, nan, signed),
        f"{name}{{.ftz}}{{.NaN}}.abs.f32": partial(_extreme_abs32, name),
        f"{name}.f64": lambda: lane("f64 f64", "f64", partial(extreme, name, False)),
    }


def _signs(name: str) -> Operations:
    return {f"{name}{{.ftz}}.f32": lambda ftz: _sign(name, ftz, "f32"), f"{name}.f64": lambda: _sign(name, "", "f64")}


def _mad32(mode: str, ftz: str, sat: str) -> Op | None:
    """mad.f32. Without a rounding mode it is a form of sm_1x, which the machine does not execute."""
    return _binary32("fma", mode, ftz, sat) if mode else None


OPERATIONS: Operations = {
    **{form: build for name in NEAREST for form, build in _sums(name).items()},
    "fma.rnd{.ftz}{.sat}.f32": partial(_binary32, "fma"),
    "fma.rnd{.ftz}.f32x2": partial(_pair32, "fma"),
    "fma.rnd.f64": partial(_binary64, "fma"),
    "mad{.rnd}{.ftz}{.sat}.f32": _mad32,
    "mad.rnd.f64": partial(_binary64, "fma"),
    **{f"{name}{{.rnd}}{{.sat}}.f32.atype": partial(_mixed, name) for name in ("add", "sub")},
    "fma.rnd{.sat}.f32.atype": partial(_mixed, "fma"),
    **{form: build for name in ROOTS_AND_QUOTIENTS for form, build in _rooted(name).items()},
    **{f"div.{kind}{{.ftz}}.f32": partial(_division, kind) for kind in DIVISIONS},
    **{f"{name}.approx{{.ftz}}.f32": partial(_approximate, name) for name in APPROXIMATE32},
    "tanh.approx.f32": lambda: lane("f32", "f32", modified(np.tanh, "")),
    "rcp.approx.ftz.f64": lambda: lane("f64", "f64", _gross(GROSS64["rcp"])),
    "rsqrt.approx{.ftz}.f64": lambda ftz: lane("f64", "f64", _gross(GROSS64["rsqrt"]) if ftz else _rsqrt64),
    **{form: build for name in ("min", "max") for form, build in _extremes(name).items()},
    **{form: build for name in SIGNS for form, build in _signs(name).items()},
    "testp.op.type": _testp,
    "copysign.type": _copysign,
}
