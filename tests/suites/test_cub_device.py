"""CUB's device-wide algorithms, kernel by kernel: no finding, the right result; and a fault in each is found in global memory."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import consan

SOURCE = Path(__file__).parent / "cub_device.cu"
TILES, THREADS, TILE = 4, 64, 256
COUNT = TILES * TILE - 37
PADDING, INVALID = 32, 99  # of CUB's descriptors of tiles
BINS, SORTED, TOP, K = 16, 32, 64, 100  # bins, and values of a digit that is sorted by, and of one for top-k
TOP_SHIFT = 26
RANDOM = np.random.default_rng(1)
KEYS = RANDOM.integers(0, 1 << 32, COUNT, dtype=np.uint32)
BYTES = RANDOM.integers(0, BINS, COUNT).astype(np.uint8)
RUNS = np.repeat(RANDOM.integers(0, 9, COUNT), RANDOM.integers(1, 9, COUNT))[:COUNT].astype(np.int32)
FIRSTS = np.flatnonzero(np.concatenate([[True], RUNS[1:] != RUNS[:-1]]))
COUNTER_WORDS, LAST_LENGTH = 160, 2  # CUB's Counter: k, len, previous_len, the bits of the k-th key, ...
N = np.int32(COUNT)


def zeros(count: int, kind: Any = np.int32) -> Any:
    return np.zeros(count, kind)


def tiles(words: int) -> Any:
    """Descriptors of tiles, of so many words of 64 bits; the last one has the status."""
    made = zeros((PADDING + TILES) * words, np.uint64)
    made[PADDING * words + words - 1 :: words] = INVALID
    return made


def digits() -> Any:
    return np.bincount(KEYS % SORTED, minlength=SORTED).astype(np.int32)


def bucket() -> list[int]:
    """What the last CTA of top-k leaves: how many are still wanted, and in the bucket; the length before; the bits of the key."""
    sums = np.cumsum(np.bincount(KEYS >> TOP_SHIFT, minlength=TOP))
    found = int(np.searchsorted(sums, K))
    before = int(sums[found - 1]) if found else 0
    return [K - before, int(sums[found]) - before, COUNT, found << TOP_SHIFT]


def reduce_args() -> list[Any]:
    return [RUNS.copy(), zeros(TILES), N]


def count_args() -> list[Any]:
    return [zeros(SORTED), KEYS.copy(), N]


def sweep_args() -> list[Any]:
    starts = (np.cumsum(digits()) - digits()).astype(np.int32)
    return [zeros(TILES * SORTED), zeros(1), zeros(SORTED), starts, KEYS.copy(), zeros(COUNT, np.uint32), N]


def histogram_args() -> list[Any]:
    return [BYTES.copy(), zeros(BINS), N]


def topk_args() -> list[Any]:
    return [KEYS.copy(), zeros(COUNTER_WORDS, np.uint32), zeros(TOP, np.uint32), N, np.int32(K)]


def unique_args() -> list[Any]:
    return [RUNS.copy(), np.arange(COUNT, dtype=np.int32), zeros(COUNT), zeros(COUNT), zeros(1), tiles(1), N]


def runs_args() -> list[Any]:
    return [RUNS.copy(), np.ones(COUNT, np.int32), zeros(COUNT), zeros(COUNT), zeros(1), tiles(2), N]


def sums() -> list[int]:
    return [int(RUNS[at : at + TILE].sum()) for at in range(0, COUNT, TILE)]


# Each kernel: its arguments, the place of a result among them, and what it begins with.
KERNELS: dict[str, tuple[Callable[[], list[Any]], int, Any]] = {
    "reduce": (reduce_args, 1, sums()),
    "count_digits": (count_args, 0, digits()[:-1]),  # the last one counts what fills the last tile too
    "sweep": (sweep_args, 5, KEYS[np.argsort(KEYS % SORTED, kind="stable")]),
    "histogram": (histogram_args, 1, np.bincount(BYTES, minlength=BINS)),
    "topk": (topk_args, 1, bucket()),
    "unique": (unique_args, 2, RUNS[FIRSTS]),
    "runs": (runs_args, 3, np.diff([*FIRSTS, COUNT])),
}


@functools.cache
def module() -> str:
    return consan.Kernel(SOURCE, entry="reduce", arch="sm_80").ptx


@functools.cache
def kernel(entry: str, change: Callable[[str], str] = str) -> Any:
    """A kernel alone, so that only its text decides how global memory is checked. `change`: makes a mutant of it."""
    head, *entries, files = re.split(r"^(?=\.visible \.entry |\t\.file\t1 )", module(), flags=re.MULTILINE)
    (body,) = [each for each in entries if each.startswith(f".visible .entry {entry}(")]
    changed = change(body)
    assert (changed != body) == (change is not str)
    return consan.Kernel(head + changed + files, entry=entry)


def launch(entry: str, args: list[Any], seed: int = 0, change: Callable[[str], str] = str) -> Any:
    return consan.launch(kernel(entry, change), TILES, THREADS, args, device="cpu", seed=seed, engine="record", global_memory="on")


SEEDS = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("entry", KERNELS)
def test_a_kernel_is_clean(entry: str, seed: int) -> None:
    make, place, wanted = KERNELS[entry]
    args = make()
    report = launch(entry, args, seed)
    assert (report.verdict, report.findings, "global-memory" in report.checked) == ("clean", (), True), report
    assert np.array_equal(args[place][: len(wanted)], wanted)


def of_a_cta(text: str) -> str:
    """Atomics in global memory whose scope excludes other CTAs."""
    return text.replace("atom.global.add", "atom.cta.global.add")


def weakly(text: str) -> str:
    """The last CTA reads the sums of all with weak loads: nothing acquires them (cccl 10627 is of this kind)."""
    return text.replace("ld.volatile.global", "ld.global")


def in_place(make: Callable[[], list[Any]], source: int, target: int) -> list[Any]:
    """Arguments; one is input and output."""
    args = make()
    args[target] = args[source]
    return args


# The arguments, the change of the text, and what is found. Top-k: a CTA has no key of another one's digits, so it has not observed them.
FAULTS: dict[str, tuple[list[Any], Callable[[str], str], set[str]]] = {
    "reduce": (in_place(reduce_args, 0, 1), str, {"global-race"}),
    "count_digits": (count_args(), of_a_cta, {"scope"}),
    "sweep": (in_place(sweep_args, 4, 5), str, {"global-race"}),
    "histogram": (histogram_args(), of_a_cta, {"scope"}),
    "topk": ([np.sort(KEYS), *topk_args()[1:]], weakly, {"global-race"}),
    "unique": (in_place(unique_args, 0, 2), str, {"global-race"}),
    "runs": (in_place(runs_args, 0, 2), str, {"global-race"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("entry", FAULTS)
def test_a_fault_is_found(entry: str, seed: int) -> None:
    args, change, kinds = FAULTS[entry]
    report = launch(entry, copy.deepcopy(args), seed, change)  # an array that is there twice stays one
    assert kinds <= {finding.kind for finding in report.findings if finding.severity == "error"}, report  # `scope` may come with it
