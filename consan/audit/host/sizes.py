"""Smaller sizes for a run on the CPU. The batch goes first; inner sizes never go below what the constants of the code imply (constants.py).

In functions of the host of a `.cu` file, and among the constants of a file or a module, whole numbers are known by their names. A size is
halved while it is even and above its limit: what divided it still does.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from consan.audit.host import constants, text as cuda

_BATCH: Final = re.compile(r"^(?:B|batch(?:_?size)?|BATCH(?:_SIZE)?|n_?batch|bs|num_(?:samples|batches))$")
_INNER: Final = re.compile(
    r"^(?:[TNMKLSVCHW]|OC|D|seq(?:_?len(?:gth)?)?|n|m|k|n[xyz]|n_?elem\w*|dim\w*|\w*(?:size|len|length|features|height|width|dim|elements?|rows|cols|numel))$",
    re.IGNORECASE,
)
_REPEATS: Final = re.compile(
    r"^(?:repeat\w*|n?iter\w*|n?reps?|num_(?:iter\w*|runs|repeats|trials)|\w*steps?|\w*iterations?|loops?|warmup\w*|trials|runs)$",
    re.IGNORECASE,
)
_NUMBER: Final = r"\d+(?:\s*(?:\*|<<)\s*\d+)*"
_ASSIGNED: Final = re.compile(
    r"\b((?:const\s+|constexpr\s+|static\s+|unsigned\s+|long\s+)*(?:int|size_t|u?int\d+_t|long|unsigned)\s+|,\s*)([A-Za-z_]\w*)(\s*=\s*)"
    rf"({_NUMBER})\b(?=\s*[,;])"
)
_MACRO: Final = re.compile(rf"^([ \t]*#[ \t]*define[ \t]+)([A-Za-z_]\w*)([ \t]+\(?)({_NUMBER})(?=\)?[ \t]*(?://.*|/\*.*)?$)", re.MULTILINE)
_LISTED: Final = re.compile(r"\b((?:std::)?vector\s*<\s*\w+\s*>\s+|int\s+)(\w+)((?:\s*\[\s*\])?\s*=?\s*\{)([\d\s,]+)(?=\})")
_OF_CODE: Final = re.compile(  # tiles, not sizes
    r"block|tile|thread|warp|chunk|buf|shared|bin|radix|lds|table|group|bm|bn|bk|unroll|vec|code|pad|max", re.IGNORECASE
)
_OF_BLOCK: Final = re.compile(r"block|tile|thread|warp", re.IGNORECASE)  # in functions of the host, where other sizes have names of code
_OF_DIMENSION: Final = r"\bdim3\b[^;]*\b\w*(?:block|thread)\w*\s*[({{]\s*{0}\b|<<<[^,;]*,\s*{0}\s*[,>]"  # a name that a launch takes
_POWER: Final = re.compile(r"shift|log2?|exponent|power", re.IGNORECASE)
_SEQUENCE: Final = re.compile(r"^(?:T|L|seq(?:_?len(?:gth)?)?|sequence_length)$", re.IGNORECASE)
_OTHER: Final = re.compile(r"^(?:n\w{1,3}|num\w*|\w*count|total\w*|\w*stride\w*|ld[abc]?|[nmk]_?\w{0,2}|[BTCHWNOVKM]+)$", re.IGNORECASE)
TIMES: Final = (1, 16)
"""By which the limits of sizes are larger, one after the other, until a program launches something."""
FEWEST_BATCHES: Final = 2
SHORTEST_SEQUENCE: Final = 64
_LEASTS: Final = (256, 128, 32, 16)  # of one size, of each of two, ...
_SMALL: Final = 64
_MOST_OF_BLOCKS: Final = 2  # sizes that have a block each: of more the product would be too large, and each has a tile
_FEW: Final = 8
_SHRUNK: Final = (cuda.HOST, cuda.CONSTANT, cuda.GLOBAL)
LEAST: Final = 256  # of an inner size, where the code has no larger constant


def halved(value: int, least: int) -> int:
    """The size, halved while it is even and stays at `least` or above."""
    while value % 2 == 0 and value // 2 >= least:
        value //= 2
    return value


def smaller(name: str, value: int, least: int = LEAST, tile: int = 0) -> int:
    """The size that a variable of this name is to have. `tile`: what no size goes below, but a batch."""
    if _REPEATS.match(name):
        return min(value, 1)
    if _BATCH.match(name):
        return min(value, FEWEST_BATCHES)
    if _SEQUENCE.match(name):
        return halved(value, max(SHORTEST_SEQUENCE, tile))
    return halved(value, max(least, tile)) if _INNER.match(name) else value


def smaller_constants(values: Mapping[str, int], text: str, *, inner: bool = True) -> dict[str, int]:
    """The constants of a module with smaller values. `text`: its code. Without `inner` the batch alone becomes smaller."""
    if not inner:
        return {name: smaller(name, value, value, value) for name, value in values.items()}
    tile, block = constants.tile(text), constants.block(text) or LEAST
    several = sum(smaller(name, value, 1) < value for name, value in values.items() if value > _SMALL) > 1
    least = min(block, _SMALL) if several else block
    return {name: smaller(name, value, least, tile) for name, value in values.items()}


def is_size(name: str) -> bool:
    """Whether a variable of this name is a size, or a distance of that length."""
    return any(each.match(name) is not None for each in (_BATCH, _INNER, _SEQUENCE, _OTHER))


def is_measure(name: str) -> bool:
    """Whether a variable of this name measures something: data (or its logarithm), code (a block, a tile), repetitions."""
    return any(each.search(name) is not None for each in (_BATCH, _INNER, _REPEATS, _OF_CODE, _POWER))


def smaller_arguments(named: Sequence[tuple[str, str]], text: str = "") -> tuple[str, ...]:
    """The arguments of a program, each with the name of the variable that takes it; empty: not known. Large numbers become smaller.

    `text`: the program, whose constants limit that.
    """
    sizes, tile = sum(_is_size(name, given) for name, given in named), constants.tile(text)
    least = max(_least(sizes), constants.block(text) if sizes <= _MOST_OF_BLOCKS else tile)
    return tuple(str(_smaller_argument(name, int(given), least, tile)) if given.isdigit() else given for name, given in named)


def _is_size(name: str, given: str) -> bool:
    return given.isdigit() and int(given) > _SMALL and not _REPEATS.match(name) and not _BATCH.match(name)


def _least(sizes: int) -> int:
    """The least of each of several sizes, which multiply."""
    return _LEASTS[min(max(sizes, 1), len(_LEASTS)) - 1]


def _smaller_argument(name: str, value: int, least: int, tile: int) -> int:
    found = smaller(name, value, least, tile)
    return found if _REPEATS.match(name) else min(halved(found, least), _FEW * least)


def shrunk_text(text: str, times: int = 1) -> str:
    """A `.cu` file with smaller sizes in its functions of the host, in its constants and macros. `times`: by which limits are larger."""
    limits = _Limits(constants.tile(text), constants.block(text), times)
    for item in reversed(cuda.items(text)):
        if item.kind in _SHRUNK and not (item.kind == cuda.HOST and item.body is None):
            part = text[item.begin : item.end]
            part = _with_smaller(_ASSIGNED, part, limits, local=item.kind == cuda.HOST)
            text = text[: item.begin] + _LISTED.sub(functools.partial(_with_smaller_list, limits), part) + text[item.end :]
    return _with_smaller(_MACRO, text, limits, local=False)


class _Limits(NamedTuple):
    """The limits that the constants of a file imply (constants.py), and the factor by which limits are larger than usual."""

    tile: int
    block: int
    times: int


def _with_smaller(pattern: re.Pattern[str], text: str, limits: _Limits, *, local: bool) -> str:
    """`local`: the names are those of a function of the host, which knows no tiles."""
    sizes = [found for found in pattern.finditer(text) if _product(found[4]) > LEAST and _INNER.match(found[2])]
    implied = limits.block if len(sizes) <= _MOST_OF_BLOCKS else limits.tile
    least = limits.times * max(LEAST if local else max(_least(len(sizes)), _LEASTS[1]), implied)

    def replaced(found: re.Match[str]) -> str:
        value = _product(found[4])
        launched = re.search(_OF_DIMENSION.format(found[2]), text)
        kept = launched or _OF_BLOCK.search(found[2]) if local else (_OF_CODE.search(found[2]) or value <= LEAST)
        made = value if kept else smaller(found[2], value, least, limits.tile)
        return "".join(found.group(1, 2, 3)) + (found[4] if made == value else str(made))

    return pattern.sub(replaced, text)


def _with_smaller_list(limits: _Limits, found: re.Match[str]) -> str:
    """Sizes that a program tries one after the other."""
    least = max(LEAST, limits.block)
    smaller_each = re.sub(r"\d+", lambda number: str(smaller(found[2], int(number[0]), least, limits.tile)), found[4])
    return "".join(found.group(1, 2, 3)) + (smaller_each if _INNER.match(found[2]) else found[4])


def _product(expression: str) -> int:
    """The value of numbers with `*` and `<<` between them."""
    parts = re.split(r"\s*(\*|<<)\s*", expression)
    value = int(parts[0])
    for operator, number in zip(parts[1::2], parts[2::2], strict=True):
        value = value * int(number) if operator == "*" else value << min(int(number), 64)
    return value
