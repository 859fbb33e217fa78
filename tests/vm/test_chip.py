"""The same instructions on the virtual machine and on a GPU, bit for bit; without a GPU, the machine against the semantics it is built of.

A NaN equals a NaN: the ISA leaves payloads open. Approximate functions may differ by the ISA's own bounds (`_BOUNDS`, `_LOOSE`). Where the
chip does not do what the ISA says, the machine follows the ISA (`_KNOWN`).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from chip_kernels import (
    FAMILIES,
    THREADS,
    Case,
    families,
    immediate,
    kernel,
    opcodes,
    operand_buffer,
    pool,
    result_bytes,
    result_of,
    wanted,
)

from consan._errors import UsageError
from consan.backends.driver import why_unavailable
from consan.session.modules.device import open_backend
from consan.toolchain.assemble import assemble

Array = npt.NDArray[Any]
GROUP = 40
NAMES = families()
_LOOSE = {"f16": 2.0**-9, "bf16": 2.0**-6, "f16x2": 2.0**-9, "bf16x2": 2.0**-6, "f32": 2.0**-20, "f64": 2.0**-19}
_SMALLEST = {"f16": 2.0**-24, "f16x2": 2.0**-24}  # half a unit either way, where the result is subnormal
_HALVES = ("f16", "bf16", "f16x2", "bf16x2")
# Where the chip does not do what the ISA says, by the operands.
_KNOWN: dict[str, Callable[..., Array]] = {
    # A NaN whose payload is in the lower 13 bits becomes infinity, or with .satfinite the largest number. ISA, cvt: it stays a NaN.
    "cvt.rna.tf32.f32": lambda a: np.isnan(a) & np.isinf(_as_floats(a, "tf32")),
    "cvt.rna.satfinite.tf32.f32": lambda a: np.isnan(a) & np.isinf(_as_floats(a, "tf32")),
    # A negative subnormal is rounded downwards. ISA, cvt .ftz: it is flushed first.
    "cvt.rm.ftz.f16.f32": lambda a: (a < 0) & (np.abs(a) < 2.0**-126),
    # 2^31 bits to the left there is none, so -1; the chip gives 0.
    "fns.b32": lambda mask, base, offset: _words(offset) == 1 << 31,
}
REASON = why_unavailable()


@functools.cache
def _cases(family: str) -> tuple[Case, ...]:
    return tuple(case for case in opcodes() if case.family == family)


def _run(backend: Any, text: str, cases: Sequence[Case], values: Any) -> Array:
    operands, size = operand_buffer(values), result_bytes(cases)
    given, out = backend.alloc(operands.nbytes), backend.alloc(size)
    try:
        backend.write(given, operands)
        backend.write(out, np.zeros(size, np.uint8))
        handle = backend.load(text, name="chip.ptx")
        backend.launch(handle, "k", (1, 1, 1), (THREADS, 1, 1), [int(a).to_bytes(8, "little") for a in (given, out)])
        backend.synchronize()
        return np.frombuffer(backend.read(out, size), np.uint8)
    finally:
        backend.free(given)
        backend.free(out)


def _words(array: Array) -> Array:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def _format(case: Case, word: str) -> str:
    """How a result is to be read: `neg` and `abs` of halves and .tf32 are words of bits to the machine."""
    last = case.opcode.rsplit(".", 1)[-1]
    if case.opcode.startswith(("neg.", "abs.")) and last in _HALVES:
        return last
    return "tf32" if ".tf32." in case.opcode else word


def _as_floats(array: Array, word: str) -> Array:
    if word == "bf16":
        return (_words(array).astype(np.uint32) << 16).view(np.float32)
    if word == "tf32":  # the lower 13 bits mean nothing
        return (_words(array) & np.uint32(0xFFFFE000)).view(np.float32)
    if word in ("f16", "f16x2", "f32x2"):
        return _words(array).view(np.float32 if word == "f32x2" else np.float16)
    if word == "bf16x2":
        return (_words(array).view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array


def _waves(angle: Array, _result: Array) -> Array:
    """ISA, sin and cos: absolute, and nothing outside of 100 pi."""
    size = np.abs(angle)
    return np.select([size <= 2 * np.pi, size <= 100 * np.pi], [2.0**-20.5, 2.0**-14.7], np.inf)


_BOUNDS: dict[str, Callable[[Array, Array], Array]] = {
    "sin.approx": _waves,
    "cos.approx": _waves,
    "lg2.approx": lambda _, result: np.maximum(2.0**-22, np.abs(result) * 2.0**-22),
    "tanh.approx.f32": lambda _, result: np.abs(result) * 2.0**-11,
}


def _bound(case: Case, word: str, given: Array, result: Array) -> Array:
    """By how much two results of an approximate instruction may differ: each of them by the ISA's bound."""
    own = next((bound for name, bound in _BOUNDS.items() if case.opcode.startswith(name)), None)
    if own is not None:
        return 2 * own(given, result)
    return np.maximum(np.abs(result) * _LOOSE.get(word, 2.0**-20), _SMALLEST.get(word, 2.0**-126))


def _differ(one: Array, other: Array, word: str, case: Case, given: Array) -> Array:
    """Where two results are not the same, as far as the ISA fixes them; `given` is the first operand."""
    word = _format(case, word)
    if word not in _LOOSE and word not in ("f32x2", "tf32"):
        return _words(one) != _words(other)
    with np.errstate(all="ignore"):  # NaNs, signalling ones too
        left, right = _as_floats(one, word).astype(np.float64), _as_floats(other, word).astype(np.float64)
        same = (left == right) & (np.signbit(left) == np.signbit(right)) | (np.isnan(left) & np.isnan(right))
        if case.approximate:
            same |= np.abs(left - right) <= _bound(case, word, given.astype(np.float64), right)
    return np.logical_not(same)


def _operands(case: Case, values: dict[tuple[str, int], Array], thread: int) -> str:
    words = [_words(values[word, position])[thread] for position, word in enumerate(case.op.sources) if immediate(case, position) is None]
    return ", ".join(f"{int(word):#x}" for word in words)


def _compare(cases: Sequence[Case], values: dict[tuple[str, int], Array], left: Array, right: Array) -> list[str]:
    """One line for each result that differs somewhere: the operands of the first thread, and both results."""
    wrong = []
    for number, case in enumerate(cases):
        for place, word in enumerate(case.op.dests):
            one, other = result_of(left, number, place, word), result_of(right, number, place, word)
            given = values[case.op.sources[0], 0]
            differ = _differ(one, other, word, case, given).reshape(THREADS, -1).any(1)
            if case.opcode in _KNOWN:
                differ &= ~_KNOWN[case.opcode](*(values[word, position] for position, word in enumerate(case.op.sources)))
            bad = np.flatnonzero(differ)
            if bad.size:
                first = int(bad[0])
                results = f"machine {int(_words(one)[first]):#x}, chip {int(_words(other)[first]):#x}"
                wrong.append(f"{case.opcode} ({bad.size} threads): {_operands(case, values, first)}: {results}")
    return wrong


def _groups(cases: Sequence[Case]) -> list[Sequence[Case]]:
    return [cases[first : first + GROUP] for first in range(0, len(cases), GROUP)]


@pytest.mark.parametrize("family", NAMES)
def test_the_machine_executes_what_the_semantics_say(family: str) -> None:
    backend, values = open_backend("cpu"), pool()
    for cases in _groups(_cases(family)):
        found = _run(backend, kernel(cases), cases, values)
        for number, case in enumerate(cases):
            for place, (word, expected) in enumerate(zip(case.op.dests, wanted(case, values), strict=True)):
                got = result_of(found, number, place, word)
                assert _words(got).tolist() == _words(expected.astype(got.dtype)).tolist(), case.opcode


def _assembles(cases: Sequence[Case], target: str) -> bool:
    try:
        assemble(kernel(cases, target=target), target)
    except UsageError:
        return False
    return True


def supported(cases: Sequence[Case], target: str) -> list[Case]:
    """Those that the chip's assembler knows, found by halves."""
    if not cases or _assembles(cases, target):
        return list(cases)
    middle = len(cases) // 2
    return [] if not middle else supported(cases[:middle], target) + supported(cases[middle:], target)


@pytest.mark.slow
def test_most_forms_assemble_for_hopper() -> None:
    """What is held against the chip is nearly all that the machine knows."""
    counts = Counter({family: len(_cases(family)) for family in NAMES})
    known = Counter(case.family for family in NAMES for group in _groups(_cases(family)) for case in supported(group, "sm_90a"))
    assert len(NAMES) >= len(FAMILIES) - 4  # warp, matrix, sparse, wmma: no lane computes them alone
    assert known.total() > 0.8 * counts.total(), {family: (known[family], counts[family]) for family in NAMES}


@pytest.mark.gpu
@pytest.mark.skipif(REASON is not None, reason=f"no GPU: {REASON}")
@pytest.mark.parametrize("family", NAMES)
def test_the_machine_and_the_chip_agree(family: str) -> None:
    chip, machine, wrong = open_backend("gpu"), open_backend("cpu"), []
    for seed in (1, 2, 3):
        values = pool(seed)
        for group in _groups(_cases(family)):
            cases = supported(group, chip.arch)
            text = kernel(cases, target=chip.arch)
            wrong += _compare(cases, values, _run(machine, kernel(cases), cases, values), _run(chip, text, cases, values))
    assert not wrong, "\n".join(wrong)
