"""Smaller sizes for a run on the CPU. The batch goes first; inner sizes stay above what the constants of the code imply.

In the `main` of a `.cu` file, and among the constants of a Python module, whole numbers are known by their names. A size is halved while
it is even and above its limit: what divided it still does.
"""

from __future__ import annotations

import re
from typing import Final

_BATCH: Final = re.compile(r"^(?:B|batch(?:_?size)?|BATCH(?:_SIZE)?|n_?batch|bs|num_(?:samples|batches))$")
_INNER: Final = re.compile(
    r"^(?:[TNMKLSVCHW]|OC|D|seq(?:_?len(?:gth)?)?|n|m|k|dim\w*|\w*(?:size|len|length|features|height|width|dim|elements?|rows|cols|numel))$",
    re.IGNORECASE,
)
_REPEATS: Final = re.compile(r"^(?:repeat\w*|n?iter\w*|n?reps?|num_(?:iter\w*|runs|repeats|trials)|warmup\w*|trials|runs)$", re.IGNORECASE)
_ASSIGNED: Final = re.compile(
    r"\b((?:const\s+|constexpr\s+|static\s+|unsigned\s+|long\s+)*(?:int|size_t|int64_t|long)\s+|,\s*)([A-Za-z_]\w*)(\s*=\s*)(\d+)\b(?=\s*[,;])"
)
_SEQUENCE: Final = re.compile(r"^(?:T|L|seq(?:_?len(?:gth)?)?|sequence_length)$", re.IGNORECASE)
_OTHER: Final = re.compile(r"^(?:n\w{1,3}|num\w*|\w*count|total\w*|\w*stride\w*|ld[abc]?|[nmk]_?\w{0,2}|[BTCHWNOVKM]+)$", re.IGNORECASE)
FEWEST_BATCHES: Final = 2
SHORTEST_SEQUENCE: Final = 64
LEAST: Final = 256  # of an inner size, where the code has no larger constant


def halved(value: int, least: int) -> int:
    """The size, halved while it is even and stays at `least` or above."""
    while value % 2 == 0 and value // 2 >= least:
        value //= 2
    return value


def smaller(name: str, value: int, least: int = LEAST) -> int:
    """The size that a variable of this name is to have."""
    if _REPEATS.match(name):
        return min(value, 1)
    if _BATCH.match(name):
        return min(value, FEWEST_BATCHES)
    if _SEQUENCE.match(name):
        return halved(value, SHORTEST_SEQUENCE)
    return halved(value, least) if _INNER.match(name) else value


def is_size(name: str) -> bool:
    """Whether a variable of this name is a size, or a distance of that length."""
    return any(each.match(name) is not None for each in (_BATCH, _INNER, _SEQUENCE, _OTHER))


def shrunk_text(text: str) -> str:
    """A `.cu` file with smaller sizes in its `main`."""
    begin = re.search(r"\bint\s+main\s*\(", text)
    if begin is None:
        return text
    body = text[begin.start() :]
    return text[: begin.start()] + _ASSIGNED.sub(lambda found: f"{found[1]}{found[2]}{found[3]}{smaller(found[2], int(found[4]))}", body)
