"""CUB's collectives, each used twice on the same temporary storage, with the barrier that CUB's documentation asks for and without it.

CUB documents of every collective that a `__syncthreads()` (of warp-wide ones: a `__syncwarp()`) is to come before its storage is used
again: without it the kernel is labelled racy. Some collectives begin, or end, with a barrier of their own, or use no memory at the size
at hand, so that nothing races though the documentation is not followed: `SAFE` names them and says why, and the oracle confirms it. `PAST`
names what reads one element behind those that were written, in both forms.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from pathlib import Path

from suite_model import CLEAN, RACY, Case

HERE = Path(__file__).resolve().parent
SIZES = ((64, 1), (128, 4), (96, 3))  # threads, items of each; as in cub_reuse.cu
UNION_SIZE = SIZES[1]

_REDUCE = ("RAKING", "RAKING_COMMUTATIVE_ONLY", "WARP_REDUCTIONS")
_SCAN = ("RAKING", "RAKING_MEMOIZE", "WARP_SCANS")
_TRANSPOSED = ("TRANSPOSE", "WARP_TRANSPOSE", "WARP_TRANSPOSE_TIMESLICED")
_EXCHANGES = (
    "BlockedToStriped",
    "StripedToBlocked",
    "BlockedToWarpStriped",
    "WarpStripedToBlocked",
    "ScatterToBlocked",
    "ScatterToStriped",
)

BLOCK_WIDE: dict[str, tuple[str, ...]] = {
    "BlockReduce": (
        *(f"{kind}<cub::BLOCK_REDUCE_{how}>" for how in _REDUCE for kind in ("Reduce", "ReduceMaxOfSome")),
        "Reduce<cub::BLOCK_REDUCE_WARP_REDUCTIONS_NONDETERMINISTIC>",  # sums only
    ),
    "BlockScan": tuple(f"{kind}<cub::BLOCK_SCAN_{how}>" for how in _SCAN for kind in ("Scan", "ScanMax")),
    "BlockRadixSort": (
        *("RadixSort<true,cub::BLOCK_SCAN_WARP_SCANS>", "RadixSort<false,cub::BLOCK_SCAN_RAKING>"),
        *("RadixSortPairsToStriped", "RadixRank", "RadixRankMatch"),
    ),
    "BlockMergeSort": ("MergeSort", "MergeSortSome"),
    "BlockExchange": tuple(f"{name}<{timeslice}>" for name in _EXCHANGES for timeslice in ("false", "true")),
    "BlockLoad": tuple(f"Load<cub::BLOCK_LOAD_{how}>" for how in _TRANSPOSED),
    "BlockStore": tuple(f"Store<cub::BLOCK_STORE_{how}>" for how in _TRANSPOSED),
    "BlockHistogram": ("Histogram<cub::BLOCK_HISTO_SORT>", "Histogram<cub::BLOCK_HISTO_ATOMIC>"),
    "BlockDiscontinuity": ("FlagHeads", "FlagTails", "FlagHeadsAndTails"),
    "BlockAdjacentDifference": ("SubtractLeft", "SubtractRight"),
    "BlockShuffle": ("ShuffleOffset", "ShuffleRotate", "ShuffleUp", "ShuffleDown"),
    "BlockRunLengthDecode": ("RunLengthDecode",),
}
WARP_WIDE = ("WarpReduce<32>", "WarpScan<32>", "WarpBlockedToStriped", "WarpStriped", "WarpMergeSort", "WarpLoad", "WarpStore")
IN_UNION = ("Scan<cub::BLOCK_SCAN_WARP_SCANS>", "RadixSort<true,cub::BLOCK_SCAN_WARP_SCANS>", "MergeSort", "SubtractLeft")
POWERS_OF_TWO = ("MergeSort", "MergeSortSome")  # numbers of threads


OWN = "what a thread writes first in the second use, nobody else has read in the first"
FIRST = "it begins with a barrier of its own"
NONE = "it exchanges registers and uses no shared memory"
UNUSED = "a load races whose value nobody uses: a note, and a race by the letter of the ISA"

# Names of cases that are labelled racy -> why they are not.
SAFE: dict[str, str] = {
    "Reduce<*NONDETERMINISTIC> without_barrier_64x1": UNUSED,
    "Reduce<*NONDETERMINISTIC> without_barrier_128x4": OWN,
    "Reduce<*NONDETERMINISTIC> without_barrier_96x3": OWN,
    "Scan*<*RAKING*> without_barrier_*": OWN,
    "RadixSort<*> without_barrier_64x1": OWN,
    "RadixSort<*> only_after_load": OWN,
    "RadixSortPairsToStriped without_barrier_*": OWN,
    "RadixRank without_barrier_*": OWN,
    "*MergeSort* without_barrier_*": FIRST,
    "MergeSort only_after_work": FIRST,
    "BlockedToStriped<true> *": FIRST,
    "StripedToBlocked<true> *": FIRST,
    "WarpStripedToBlocked<true> *": FIRST,
    "ScatterTo*<true> *": FIRST,
    "BlockedTo*<false> without_barrier_64x1": OWN,
    "StripedTo*<false> without_barrier_64x1": OWN,
    "WarpStripedTo*<false> without_barrier_64x1": OWN,
    "Load<*TRANSPOSE> without_barrier_64x1": OWN,
    "Load<*TIMESLICED> without_barrier_*": FIRST,
    "Store<*TRANSPOSE> without_barrier_64x1": OWN,
    "Histogram<*SORT> without_barrier_*": OWN,
    "WarpReduce<32> without_barrier_*": NONE,
    "WarpScan<32> without_barrier_*": NONE,
    "Warp*Striped without_barrier_64x1": OWN,
    "WarpLoad without_barrier_64x1": OWN,
    "WarpStore without_barrier_64x1": OWN,
}

# Merging reads a key ahead, also the one behind the last: there is a place for it, which nobody writes, and the value is thrown away.
PAST = ("MergeSort with_barrier_128x4", "MergeSort with_barrier", "WarpMergeSort with_barrier_128x4", "WarpMergeSort with_barrier_96x3")


def safe(case: Case) -> str | None:
    """Why a case that is labelled racy is not."""
    return next((why for name, why in SAFE.items() if case.label == RACY and fnmatch.fnmatchcase(case.name, name)), None)


def cases() -> Iterator[Case]:
    """All launches, those of one module next to each other."""
    for group, collectives in BLOCK_WIDE.items():
        for collective in collectives:
            yield from _reuse(group, collective)
    for collective in WARP_WIDE:
        yield from _reuse("warp-wide collectives", collective)
    for collective in IN_UNION:
        for entry in ("with_barrier", "only_after_load", "only_after_work", "without_barrier"):
            yield _case("load, work, store in a union", collective, UNION_SIZE, "cub_union.cu", entry, {})


def _reuse(group: str, collective: str) -> Iterator[Case]:
    odd = collective not in POWERS_OF_TWO
    defines = {"WARP_WIDE": str(int(collective in WARP_WIDE)), "ODD_SIZE": str(int(odd))}
    for threads, items in SIZES if odd else SIZES[:2]:
        for entry in ("with_barrier", "without_barrier"):
            yield _case(group, collective, (threads, items), "cub_reuse.cu", f"{entry}_{threads}x{items}", defines)


def _case(group: str, collective: str, size: tuple[int, int], file: str, entry: str, defines: dict[str, str]) -> Case:
    threads, items = size
    return Case(
        group=group,
        name=f"{collective} {entry}",
        file=str(HERE / file),
        entry=entry,
        grid=1,
        block=threads,
        args=(f"u32[{3 * threads * items}]=random",),
        label=CLEAN if entry.startswith("with_") else RACY,
        defines=(("COLLECTIVE", collective), *defines.items()),
    )
