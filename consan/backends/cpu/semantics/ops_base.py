"""The vocabulary of the instruction semantics: what an `Op` is, and how a module registers its operations.

Decides: the NumPy dtype behind each PTX type word, and the shape of a semantic function. PTX ISA "Operand Size Exceeding
Instruction-Type Size". Does not know any instruction: the `ops_*` modules register theirs for rows of `instrument/isa`.

Conventions that every operation follows
- A source word names the dtype of the array that the function gets: bX is uintX, f16 is float16; bf16, f16x2, bf16x2, f32x2 and the
  8-bit packed formats are raw unsigned words; pred and cc are bool.
- A destination word also says how to widen into a larger register: signed words sign-extend, all others zero-extend.
- `cc` is the carry bit CC.CF of the thread ("Extended-Precision Integer Arithmetic Instructions"): a bool that is no operand of
  the instruction. It stands last in `sources` when it is read and last in `dests` when it is written.
- Integer immediates are taken modulo 2**width of their word.
- Functions never write to their sources, may return an alias of one, and may return fewer elements than the lanes (a 0-d array for
  immediates): results broadcast like sources do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass

Array = npt.NDArray[Any]
DType = np.dtype[Any]
Function = Callable[..., Any]

DTYPES: dict[str, DType] = {
    **{f"{kind}{bits}": np.dtype(f"uint{bits}") for kind in "ub" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "bf16": np.dtype(np.uint16),
    "f16x2": np.dtype(np.uint32),
    "bf16x2": np.dtype(np.uint32),
    "f32x2": np.dtype(np.uint64),
    "pred": np.dtype(np.bool_),
    "cc": np.dtype(np.bool_),
}
"""NumPy dtype of each type word. b128 has none: see ops_move."""

# The bits that the hardware writes for a NaN result; f64 operations keep the host's (identical) default quiet NaN.
CANONICAL_NAN: dict[str, int] = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}


@dataclass(frozen=True)
class Op:
    """Semantics of one opcode.

    `fn(*sources)` ("lane") or `fn(mask, *sources)` ("warp") returns one array, or a tuple when there are several `dests`.
    `ufunc(*sources, out=dest)` is the same function with one exception: where `canonical_nan` is set, NaN results of the ufunc
    have the host's payload, while `fn` writes the canonical one (`canonicalize` repairs an array in place).
    `pair` is the form with a second destination, for instructions written with `d|p` where that is optional.
    """

    kind: Literal["lane", "warp"]
    sources: tuple[str, ...]
    dests: tuple[str, ...]
    fn: Function
    ufunc: np.ufunc | None = None
    canonical_nan: bool = False
    pair: Op | None = None


Builder = Callable[..., Op | None]
Operations = dict[str, Builder]
"""The form of a row of the instruction table -> what builds its Op from `Row.choices`, one word for each modifier of the form that is not
the same in all its opcodes. None: a combination that the machine does not execute."""


def lane(sources: Iterable[str] | str, dests: Iterable[str] | str, fn: Function, **more: Any) -> Op:
    """An Op that works on each thread alone; words are given as a string "u32 u32" or a tuple."""
    return Op("lane", words(sources), words(dests), fn, **more)


def warp(sources: Iterable[str] | str, dests: Iterable[str] | str, fn: Function, **more: Any) -> Op:
    """An Op that works on whole warps, arrays of shape [W, 32]."""
    return Op("warp", words(sources), words(dests), fn, **more)


def words(names: Iterable[str] | str) -> tuple[str, ...]:
    """Tuple of type words from either spelling."""
    return tuple(names.split()) if isinstance(names, str) else tuple(names)


def from_ufunc(ufunc: np.ufunc, source: str) -> Op:
    """An Op that is exactly one ufunc on operands of one type."""
    return lane((source,) * ufunc.nin, (source,), ufunc, ufunc=ufunc)


def bits_of(word: str) -> int:
    """Width in bits of a type word."""
    return 8 * DTYPES[word].itemsize


def unsigned(word: str) -> str:
    """The unsigned word of the same width: wrap-around arithmetic needs no signed type."""
    return f"u{bits_of(word)}"


def raw(word: str) -> str:
    """The bit word of the same width, for moves and selections that must not touch NaN payloads."""
    return word if word == "pred" else f"b{bits_of(word)}"


BLOCK = 4096  # lanes at a time in a function of several steps: its f64 temporaries stay in the cache, and below malloc's mmap threshold


def blocked(fn: Function) -> Function:
    """`fn` of lanes, evaluated in blocks when there are many; a long array of temporaries costs page faults, up to ten times the work."""

    def run(*operands: Array) -> Any:
        for x in operands:
            if x.size > BLOCK and x.ndim == 1:
                return _by_blocks(fn, operands, x.size)
        return fn(*operands)

    return run


def _by_blocks(fn: Function, operands: tuple[Array, ...], size: int) -> Any:
    outputs: tuple[Array, ...] = ()
    single = True
    for start in range(0, size, BLOCK):
        part = slice(start, start + BLOCK)
        results = fn(*(x[part] if x.size > 1 else x for x in operands))
        single = not isinstance(results, tuple)
        results = (results,) if single else results
        outputs = outputs or tuple(np.empty(size, x.dtype) for x in results)
        for out, values in zip(outputs, results, strict=True):
            out[part] = values
    return outputs[0] if single else outputs


def any_true(mask: Array) -> bool:
    """Whether any element is true; count_nonzero costs a quarter of ndarray.any on short arrays."""
    return bool(np.count_nonzero(mask))


def bits(values: Array) -> Array:
    """Raw unsigned view of floats; also takes NumPy scalars, which a function of 0-d arrays yields."""
    return np.asarray(values).view(f"uint{8 * values.dtype.itemsize}")


def canonicalize(values: Array, word: str) -> Array:
    """Write the canonical NaN over every NaN of a fresh result (in place) and return it."""
    values = np.asarray(values)
    nan = np.isnan(values)
    if any_true(nan):
        values.view(f"uint{8 * values.dtype.itemsize}")[nan] = CANONICAL_NAN[word]
    return values
