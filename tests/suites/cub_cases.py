"""CUB's collectives, each used twice on the same temporary storage, with the barrier that CUB's documentation asks for and without it.

CUB documents of every collective that a `__syncthreads()` (of warp-wide ones: a `__syncwarp()`) is to come before its storage is used
again: without it the kernel is labelled racy. Some collectives begin, or end, with a barrier of their own, or use no memory at the size
at hand, so that nothing races though the documentation is not followed: `SAFE` names them and says why, and the oracle confirms it.
"""

from __future__ import annotations

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
