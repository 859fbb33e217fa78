"""atom and red (PTX ISA, "Parallel Synchronization and Communication Instructions: atom, red").

Operands, widths and the function are decided here; `atomics` serialises. Vector forms are one operation per element, as the
ISA defines them. `.add.f32` flushes subnormals except on .shared. `multimem.red` has one memory to work on (access.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.address import Locator
from consan.backends.cpu.decode.operands import DecodeContext, Steps, Target, is_of_hooks
from consan.backends.cpu.decode.steps import Step, selective
from consan.backends.cpu.state.registers import RAW_DTYPES, WORD_DTYPES
from consan.instrument.ptx import Operand, Vector
from consan.instrument.ptx.operands import flatten

from .access import form, locator
from .atomics import read_modify_write
from .lanes import halves
from .ops import atomic_function

Array = npt.NDArray[Any]

_OPERATIONS = frozenset(["and", "or", "xor", "cas", "exch", "add", "inc", "dec", "min", "max"])
_PACKED = frozenset({"f16", "bf16", "f16x2", "bf16x2"})


def _form(context: DecodeContext) -> tuple[str, str, str, int]:
    operation = next(word for word in context.words if word in _OPERATIONS)
    space, word, count = form(context)
    return space, operation, word, count


def decode(context: DecodeContext) -> Step:
    """atom (with a destination) or red (without)."""
    space, operation, word, count = _form(context)
    operands = list(context.instruction.operands)
    destination = operands.pop(0) if context.row is not None and "dst" in context.row.operands else None
    address, values = operands[0], operands[1:3] if operation == "cas" else operands[1:2]
    if word == "b128":
        return _wide(context, space, operation, address, values, destination)
    size = WORD_DTYPES[word].itemsize
    found = locator(context, space, address, size * count, "rmw")
    targets = [context.target(t, word) for t in flatten(destination)] if destination is not None else [None] * count
    sources = [[context.source(s, word) for s in (flatten(v) if isinstance(v, Vector) else (v,))] for v in values]
    function = _function(context, space, operation, word)
    operation = "" if word in _PACKED else operation  # no closed form: sums of halves are not sums of the words that hold them
    if count == 1:
        extra = sources[1][0] if len(sources) > 1 else None
        own = context.function.own and not is_of_hooks(context.instruction)
        part = _scalar(found, operation, function, sources[0][0], extra, targets[0], own=own)
        return selective(part)
    return selective(_vector(found, operation, function, sources[0], targets, size))


def _function(context: DecodeContext, space: str, operation: str, word: str) -> Callable[..., Any]:
    flushing = (operation, word) == ("add", "f32") and space != "shared" and "noftz" not in context.words
    function = atomic_function(f"{operation}.ftz" if flushing else operation, word)
    if function is None:
        raise context.unsupported()
    return function


def _pick(source: Array | None, sel: Any) -> Any:
    return source if source is None or source.ndim == 0 else source[sel]


def _scalar(
    found: Locator,
    operation: str,
    function: Callable[..., Any],
    value: Array,
    extra: Array | None,
    target: Target | None,
    *,
    own: bool,
) -> Callable[[Any], None]:
    dtype, wave = value.dtype, found.wave

    def part(sel: Any) -> None:
        view, index = found.part(sel)
        old = read_modify_write(view.view(dtype), index, operation, function, _pick(value, sel), _pick(extra, sel))
        if own and wave.changed is False:  # someone asks
            wave.changed = bool((view.view(dtype)[index] != old).any())
        if target is not None:
            target.write(sel, old)

    return part


def _vector(
    found: Locator, operation: str, function: Callable[..., Any], values: list[Array], targets: Any, size: int
) -> Callable[[Any], None]:
    def part(sel: Any) -> None:
        view, index = found.part(sel)
        elements = view.view(RAW_DTYPES[size])
        scale = view.dtype.itemsize // size
        for k, (value, target) in enumerate(zip(values, targets, strict=True)):
            at = index * scale + k
            old = read_modify_write(elements.view(value.dtype), at, operation, function, _pick(value, sel), None)
            if target is not None:
                target.write(sel, old)

    return part


def _wide(context: DecodeContext, space: str, operation: str, address: Operand, values: list[Operand], destination: Operand | None) -> Step:
    """16-byte exch and cas: rare, so lane by lane."""
    found = locator(context, space, address, 16, "rmw")
    sources = [halves(context, value) for value in values]
    targets = halves(context, destination) if destination is not None and destination.text != "_" else None
    ids = context.wave.ids

    def part(sel: Any) -> None:
        view, index = found.part(sel)
        words = view.view(np.uint64).reshape(-1, 2)
        for lane, at in zip(ids[sel].tolist(), index.tolist(), strict=True):
            old = words[at].copy()
            given = [np.array([half[lane] for half in pair]) for pair in sources]
            if operation == "exch" or (given[0] == old).all():
                words[at] = given[-1]
            if targets is not None:
                targets[0][lane], targets[1][lane] = old

    return selective(part)


STEPS: Steps = {"atom": decode, "red": decode, "multimem.red": decode}
