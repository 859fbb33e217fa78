"""ld, st and their vector forms; parameters; cvta, isspacep, alloca (PTX ISA, "Data Movement and Conversion Instructions").

Every load and store of this machine is strong, because a step is one array operation: orderings and scopes need no work.
These functions say which bytes an access covers, and the order of lanes whose stores collide in one step.

This machine is the only device of a multimem address, which is that of the memory itself: `multimem.ld_reduce` is a load, and
`multimem.st` a store (8.2.3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.address import GenericLocator, GlobalLocator, Locator, window_locator
from consan.backends.cpu.decode.operands import DecodeContext, DecodedAddress, Steps, Target
from consan.backends.cpu.decode.steps import Step, effect, nothing, selective
from consan.backends.cpu.state.faults import LaneError
from consan.backends.cpu.state.memory import LOCAL_WINDOW, RANK_SHIFT, SHARED_WINDOW, WINDOW_SIZE
from consan.backends.cpu.state.registers import RAW_DTYPES, WORD_DTYPES
from consan.instrument.ptx import Operand, Underscore
from consan.instrument.ptx.operands import flatten

from .lanes import Pairs, copy_step, function_step, halves, ufunc_step

Array = npt.NDArray[Any]

SPACES = {
    "global": "global", "const": "global", "param": "param", "param::entry": "param", "param::func": "param",
    "shared": "shared", "shared::cta": "shared", "shared::cluster": "shared", "local": "local",
}  # fmt: skip

_OF_CLUSTER = frozenset(("shared::cluster", "cta_group::2"))  # where an address without a rank means rank 0: a pair's mbarrier may be there


def form(context: DecodeContext) -> tuple[str, str, int]:
    """State space ("generic" without one), type word and vector length of a load or store."""
    modifiers = context.modifiers
    return space_of(context), modifiers["type"], int(modifiers.get("vec", "v1")[1:])


def space_of(context: DecodeContext) -> str:
    """State space of the instruction's operands in memory; "generic" without one."""
    return SPACES.get(context.modifiers.get("ss", ""), "generic")


def locator(context: DecodeContext, space: str, operand: Operand, nbytes: int, access: str) -> Locator:
    """The locator for the bytes of an address operand."""
    place = context.place(operand)
    if place.param is not None and not place.param.of_entry:
        raise context.unsupported(f"{operand.text} in .{space}")
    if space in ("generic", "global", "param") and place.space in ("shared", "local") and space != "generic":
        raise context.unsupported(f"a {place.space} variable in .{space}")
    return place_locator(context, space, place, nbytes, access)


def place_locator(context: DecodeContext, space: str, place: DecodedAddress, nbytes: int, access: str) -> Locator:
    """The locator of an address that has already been read."""
    wave, site, base = context.wave, context.site, place.base
    if space in ("shared", "local"):
        return window_locator(wave, base, place.offset, nbytes, site, access, space, not _OF_CLUSTER.isdisjoint(context.words))
    if base is not None and base.dtype.itemsize == 4:
        raise context.unsupported("32-bit addresses outside shared and local memory")
    kind = GenericLocator if space == "generic" else GlobalLocator
    found = kind(wave, base, place.offset, nbytes, site, access)
    context.function.plan.locators.append(found)
    return found


def decode_ld(context: DecodeContext) -> Step:
    """ld."""
    space, word, count = form(context)
    destination, address = context.instruction.operands[:2]
    place = context.place(address)
    if place.param is not None and space == "param":
        return _load_param(context, place, word, flatten(destination))
    if word == "b128":
        return _load_wide(context, space, address, destination)
    targets = [context.target(t, word) for t in flatten(destination)]
    if len(targets) != count:
        raise context.unsupported(f"{len(targets)} destinations")
    size = WORD_DTYPES[word].itemsize
    found = locator(context, space, address, size * count, "read")
    if count == 1:
        return _load_scalar(found, targets[0])
    return _load_vector(found, targets, size)


def _load_scalar(found: Locator, target: Target) -> Step:
    out = target.array
    if out is None:
        return effect(found.full, found.part)
    if not target.exact:
        return _load_extended(found, target)
    raw = out.view(RAW_DTYPES[target.dtype.itemsize]) if out.flags.c_contiguous else None
    if raw is None:
        return _load_extended(found, target)

    def full() -> None:
        view, index = found.full()
        view.take(index, None, raw, "wrap")

    def part(sel: Any) -> None:
        view, index = found.part(sel)
        raw[sel] = view[index]

    return effect(full, part)


def _load_extended(found: Locator, target: Target) -> Step:
    """A load into a wider register, or into every second item of an array."""

    def full() -> None:
        view, index = found.full()
        target.write(slice(None), view[index].view(target.dtype))

    def part(sel: Any) -> None:
        view, index = found.part(sel)
        target.write(sel, view[index].view(target.dtype))

    return effect(full, part)


def gather(view: Array, index: Array, nbytes: int) -> Array:
    """The units of each access, one access after the other."""
    if nbytes <= 16:
        return view[index]
    return np.stack([view[index + k] for k in range(nbytes // 16)], axis=1).reshape(-1)


def _load_vector(found: Locator, targets: list[Target], size: int) -> Step:
    nbytes = found.nbytes
    everything = slice(None)

    def store(sel: Any, view: Array, index: Array) -> None:
        rows = gather(view, index, nbytes).view(RAW_DTYPES[size]).reshape(len(index), -1)
        for column, target in enumerate(targets):
            target.write(sel, rows[:, column].view(target.dtype))

    def full() -> None:
        store(everything, *found.full())

    def part(sel: Any) -> None:
        store(sel, *found.part(sel))

    return effect(full, part)


def decode_st(context: DecodeContext) -> Step:
    """st."""
    space, word, count = form(context)
    address, source = context.instruction.operands[:2]
    place = context.place(address)
    if place.param is not None and space == "param":
        return _store_param(context, place, word, flatten(source))
    if word == "b128":
        return _store_wide(context, space, address, source)
    raw = f"b{8 * WORD_DTYPES[word].itemsize}"
    sources = [_store_source(context, s, word, raw) for s in flatten(source)]
    if len(sources) != count:
        raise context.unsupported(f"{len(sources)} sources")
    size = WORD_DTYPES[word].itemsize
    found = locator(context, space, address, size * count, "write")
    return _store_scalar(found, sources[0]) if count == 1 else _store_vector(found, sources, size)


def _store_source(context: DecodeContext, operand: Operand, word: str, raw: str) -> Array:
    value = context.source(operand, word)
    return value.view(WORD_DTYPES[raw]) if value.ndim == 0 else context.source(operand, raw)


def _store_scalar(found: Locator, source: Array) -> Step:
    many = source.ndim > 0

    def full() -> None:
        view, index = found.full()
        view[index] = source

    def part(sel: Any) -> None:
        view, index = found.part(sel)
        view[index] = source[sel] if many else source

    return effect(full, part)


def scatter(view: Array, index: Array, rows: Array, nbytes: int) -> None:
    """Store one row of bytes per access."""
    units = rows.reshape(-1).view(view.dtype)
    if nbytes <= 16:
        view[index] = units
        return
    wide = units.reshape(len(index), -1)
    for k in range(nbytes // 16):
        view[index + k] = wide[:, k]


def _store_vector(found: Locator, sources: list[Array], size: int) -> Step:
    dtype, nbytes = RAW_DTYPES[size], found.nbytes

    def part(sel: Any) -> None:
        view, index = found.part(sel)
        rows = np.empty((len(index), len(sources)), dtype)
        for column, source in enumerate(sources):
            rows[:, column] = source[sel] if source.ndim else source
        scatter(view, index, rows, nbytes)

    buffer = np.empty((found.wave.lanes, len(sources)), dtype)

    def full() -> None:
        view, index = found.full()
        for column, source in enumerate(sources):
            buffer[:, column] = source
        scatter(view, index, buffer, nbytes)

    return effect(full, part)


def _load_wide(context: DecodeContext, space: str, address: Operand, destination: Operand) -> Step:
    low, high = (None, None) if isinstance(destination, Underscore) else halves(context, destination)
    found = locator(context, space, address, 16, "read")
    targets = [Target(half, np.dtype(np.uint64), True) for half in (low, high)]
    return _load_vector(found, targets, 8)


def _store_wide(context: DecodeContext, space: str, address: Operand, source: Operand) -> Step:
    return _store_vector(locator(context, space, address, 16, "write"), halves(context, source), 8)


def _load_param(context: DecodeContext, place: DecodedAddress, word: str, destinations: tuple[Operand, ...]) -> Step:
    assert place.param is not None
    size = WORD_DTYPES[word].itemsize
    pairs: Pairs = []
    for k, operand in enumerate(destinations):
        target = context.target(operand, word)
        if target.array is None:
            continue
        dtype = target.dtype if target.exact or target.dtype.kind != "f" else RAW_DTYPES[size]
        offset = place.offset + k * size
        if place.param.of_entry:
            pairs.append((target.array, context.function.plan.param_field(offset, dtype)))
        else:
            pairs.append((target.array, context.function.param_field(context, place.param, offset, dtype)))
    return copy_step(pairs)


def _store_param(context: DecodeContext, place: DecodedAddress, word: str, sources: tuple[Operand, ...]) -> Step:
    assert place.param is not None
    raw = f"b{8 * WORD_DTYPES[word].itemsize}"
    size = WORD_DTYPES[word].itemsize
    pairs: Pairs = []
    for k, operand in enumerate(sources):
        field = context.function.param_field(context, place.param, place.offset + k * size, WORD_DTYPES[raw])
        pairs.append((field, _store_source(context, operand, word, raw)))
    return copy_step(pairs)


WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "global": 0, "const": 0, "param": 0}


def _window(context: DecodeContext) -> str:
    return context.modifiers["space"].partition("::")[0]


def decode_cvta(context: DecodeContext) -> Step:
    """cvta and cvta.to: add or subtract the start of the window."""
    word = context.modifiers["type"]
    start = WINDOWS[_window(context)]
    if "to" in context.modifiers:
        start = -start
    destination, source = context.instruction.operands[:2]
    target = context.target(destination, word).array
    value = context.source(source, word)
    if target is None or word != "u64":
        raise context.unsupported()
    if _window(context) == "param" and "to" not in context.modifiers:
        return _generic_parameter(context, target, value)
    if start == 0:
        return copy_step([(target, value)])
    return ufunc_step(context.wave, np.add, [value, np.array(start & ((1 << 64) - 1), np.uint64)], target)


def _generic_parameter(context: DecodeContext, target: Array, value: Array) -> Step:
    """cvta.param: code with 32-bit parameter addresses (LLVM's short pointers) holds only the low half of the address."""
    base, low = np.uint64(context.function.plan.param_address), np.uint64((1 << 32) - 1)
    return function_step(lambda held: base + ((held - base) & low), [value], [Target(target, target.dtype, True)])


def decode_isspacep(context: DecodeContext) -> Step:
    """isspacep: which window an address lies in."""
    space = _window(context)
    destination, address = context.instruction.operands[:2]
    bound = context.target(destination, "pred")
    target, value = bound.array, context.source(address, "u64")
    if target is None:
        return nothing()
    if space == "shared" and context.wave.cluster_size > 1:
        return function_step(_rank_test(context), [value, context.wave.rank.astype(np.uint64)], [bound])
    within = IN_SPACE[space]
    return Step(
        lambda: np.copyto(target, within(value)),
        lambda sel: target.__setitem__(sel, within(value[sel] if value.ndim else value)),
        lambda mask: np.copyto(target, within(value), where=mask),
        True,
    )


def _rank_test(context: DecodeContext) -> Callable[[Array, Array], Any]:
    """isspacep.shared::cluster and ::cta, where the two differ."""
    base, shift, size = np.uint64(SHARED_WINDOW), np.uint64(RANK_SHIFT), np.uint64(context.wave.cluster_size)
    if "shared::cluster" in context.words:
        return lambda addresses, own: ((addresses - base) >> shift) < size
    return lambda addresses, own: ((addresses - base) >> shift) == own


def _in_window(start: int) -> Callable[[Array], Any]:
    base, size = np.uint64(start), np.uint64(WINDOW_SIZE)
    return lambda addresses: (addresses - base) < size


_shared, _local = _in_window(SHARED_WINDOW), _in_window(LOCAL_WINDOW)
IN_SPACE: dict[str, Callable[[Array], Any]] = {
    "shared": _shared,
    "local": _local,
    "global": lambda addresses: ~(_shared(addresses) | _local(addresses)),
    "const": lambda addresses: np.zeros(addresses.shape, np.bool_),
    "param": lambda addresses: np.zeros(addresses.shape, np.bool_),
}


def decode_alloca(context: DecodeContext) -> Step:
    """alloca: grow the thread's stack, until the function returns."""
    destination, size = context.instruction.operands[:2]
    align = int(getattr(context.instruction.operands[2], "value", 16)) if len(context.instruction.operands) > 2 else 16
    word = context.modifiers["type"]
    target, nbytes, wave = context.target(destination, word), context.source(size, word), context.wave
    limit = wave.shape.local_bytes

    def part(sel: Any) -> None:
        wanted = nbytes[sel] if nbytes.ndim else nbytes
        start = (wave.sp[sel].astype(np.uint64) + np.uint64(align - 1)) & np.uint64(-align & ((1 << 64) - 1))
        end = start + wanted.astype(np.uint64)
        over = (end > np.uint64(limit)).nonzero()[0]
        if len(over):
            lane = int(wave.ids[sel][over[0]])
            raise LaneError(
                "out-of-bounds",
                lane,
                context.site,
                address=int(start[over[0]]),
                space="local",
                access="alloca",
                message="the stack is full",
            )
        wave.sp[sel] = end
        target.write(sel, start.astype(target.dtype))

    return selective(part)


def decode_stacksave(context: DecodeContext) -> Step:
    """stacksave."""
    target = context.target(context.instruction.operands[0], context.modifiers["type"])
    return selective(lambda sel: target.write(sel, context.wave.sp[sel].astype(target.dtype)))


def decode_stackrestore(context: DecodeContext) -> Step:
    """stackrestore."""
    source = context.source(context.instruction.operands[0], context.modifiers["type"])
    return selective(lambda sel: context.wave.sp.__setitem__(sel, source[sel] if source.ndim else source))


STEPS: Steps = {
    "ld": decode_ld,
    "ldu": decode_ld,
    "st": decode_st,
    "multimem.ld_reduce": decode_ld,
    "multimem.st": decode_st,
    "cvta": decode_cvta,
    "isspacep": decode_isspacep,
    "alloca": decode_alloca,
    "stacksave": decode_stacksave,
    "stackrestore": decode_stackrestore,
}
