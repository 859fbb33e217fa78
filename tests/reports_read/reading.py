"""Reports as a stranger gets them: racy kernels under names and without comments that would give the answer away.

Decides which kernels are read (`KERNELS`: five of each kind), and how their source is made neutral: only the racy branch
stands, comments go, telling names become neutral ones, and the file is called k01.cu, k02.cu, ... Reports are those of the virtual
machine, seed 0.

    python tests/reports_read/reading.py FOLDER      write the reports there
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import consan
from consan.reports import render

HERE = Path(__file__).parent
TWINS = HERE.parent / "kernels" / "twins"
sys.path.append(str(TWINS.parent))

import twin_file  # noqa: E402

KERNELS = (
    ("data-race", ("block_2d_transpose", "double_buffer", "reduction_last_levels", "histogram_no_atomics", "tiled_matmul_second_barrier")),
    ("missing-wait", ("cp_async_off_by_one", "cp_async_wait_by_other_thread", "bulk_store_source_overwritten", "mbarrier_wrong_parity",
                      "wgmma_operand_overwritten")),
    ("missing-proxy-fence", ("cp_async_then_bulk_store", "tma_epilogue_mbarrier_no_fence", "wgmma_no_proxy_fence", "bulk_load_over_zeros",
                             "tma_fence_by_all_but_issuer")),
    ("uninitialized-read", ("uninitialized_tail", "uninitialized_halo", "bulk_store_never_written", "bulk_store_uninitialised",
                            "vector_padding")),
    ("barrier-misuse", ("divergent_syncthreads", "mbarrier_32_arrivals", "mbarrier_phase_lap", "named_barrier_counts_disagree",
                        "mbarrier_init_not_published")),
    ("scope", ("cluster_arrive_cta_scope", "cluster_wait_cta_scope")),
    ("deadlock", ("deadlock_wrong_count", "bulk_bytes_never_come", "deadlock_trip_counts", "deadlock_flag_set_too_late",
                  "named_barrier_deadlock")),
    ("lifetime", ("bulk_store_at_exit", "bulk_load_at_exit", "cluster_before_start", "cluster_peer_exits", "cp_async_at_exit")),
    ("register-hazard", ("wgmma_fence_missing", "wgmma_flush_flag", "wgmma_written_below_fence")),
    ("out-of-bounds", ("out_of_bounds", "halo_index", "left_neighbour", "output_too_small", "tail_of_input")),
    ("scope", ("cluster_stage_released_cta", "cluster_halo_fence_block", "cluster_partial_sum_flag")),
    ("register-hazard", ("wgmma_promoted_before_wait", "wgmma_fragment_reused")),
    ("global-race", ("histogram_plain_add", "overlapping_tiles", "halo_of_neighbour", "last_block_no_fence", "relaxed_poll_no_fence")),
)  # fmt: skip
# Names of constants and macros that would give the answer away.
NEUTRAL = {
    **dict.fromkeys(("FIRST_PARITY", "LAST", "PENDING", "SHIFT", "SIGNALLED", "TILES_READ", "WAITER"), "N"),
    "ARRIVES": "CONDITION",
    "ARRIVE_THERE": "ARRIVE_1",
    "ARRIVE_THERE_CTA": "ARRIVE_2",
    "ARRIVE_THERE_RELAXED": "ARRIVE_3",
    "CLUSTER_SYNC_RELAXED": "SYNC_1",
    "CLUSTER_SYNC": "SYNC_2",
    "WAIT_CLUSTER": "WAIT_1",
    "WAIT_EXPANDED": "WAIT_2",
}
_NAMES = re.compile(rf"\b({'|'.join(NEUTRAL)})\b")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")  # of buffers: another one in each process
# An access and its place. Bytes and threads behind the operation, and the line of the source, are alike in all reports.
_ACCESS = re.compile(
    r"^(  (?:\(\d\) )?\S[^\n]*?  \S+)(?:  [^\n]*)?(?:\n      (?!-->)[^\n]*)*\n      --> (PTX line \d+|\S+)[^\n]*", re.MULTILINE
)
_SOURCE = re.compile(r"\s*\| ")


def cases() -> Iterator[tuple[str, str, Path]]:
    """Name of the report, kind, file of the kernel."""
    files = [(kind, name) for kind, names in KERNELS for name in names]
    for number, (kind, name) in enumerate(files, 1):
        folders = (HERE / "kernels", TWINS.parent / "global", TWINS)
        yield f"k{number:02}", kind, next(path for folder in folders if (path := folder / f"{name}.cu").exists())


def neutral(text: str) -> str:
    """The racy source without comments and without the repaired branches; the first lines of a file are its header."""
    kept, stack = [], []
    for line in text.splitlines():
        word = line.split("//")[0].split()
        head = word[0] if word else ""
        if head in ("#ifdef", "#ifndef", "#if"):
            ours = len(word) > 1 and word[1] == "RACY"
            stack.append(None if not ours else head == "#ifdef")
            if ours:
                continue
        elif head in ("#else", "#endif") and stack and stack[-1] is not None:
            stack[-1] = not stack[-1]
            if head == "#endif":
                stack.pop()
            continue
        elif head == "#endif" and stack:
            stack.pop()
        if all(state is not False for state in stack):
            kept.append(re.sub(r"\s*/\*.*?\*/|\s*//.*$", "", line))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept).strip()) + "\n"


def renamed(text: str) -> str:
    """The text with neutral names."""
    return _NAMES.sub(lambda match: NEUTRAL[match[1]], text)


def report(name: str, path: Path) -> str:
    """The text of the report on a kernel."""
    spec = twin_file.read(path)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "kernels")
        (place / "read").mkdir(parents=True)
        for header in TWINS.parent.glob("*.cuh"):
            (place / header.name).write_text(renamed(header.read_text()))
        file = place / "read" / f"{name}.cu"
        file.write_text(renamed(neutral(path.read_text())))
        here = os.getcwd()
        os.chdir(file.parent)
        try:
            kernel: Any = consan.Kernel(file.name, entry="kernel", arch=spec.arch)
            values = spec.parameters(spec.fresh_args())
            found = consan.launch(kernel, spec.grid, spec.block, values, smem=spec.smem, device="cpu", policy=spec.policy)
            return _ADDRESS.sub("0x...", render(found, notes=True).replace(f"{folder}/kernels/", "../"))
        finally:
            os.chdir(here)


def words(text: str) -> str:
    """What a report says of its findings: titles, sentences, accesses with their lines. The frame around is that of any report."""
    said, _, _ = text.partition("== verdict")
    joined = _ACCESS.sub(r"\1 at \2", said)
    return "".join(re.sub(r" =+ \d+/\d+ ==$", "", line) + "\n" for line in joined.splitlines() if line and not _SOURCE.match(line))


def main() -> None:
    """Write all reports into a folder."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, _, path in cases():
        (folder / f"{name}.txt").write_text(report(name, path))


if __name__ == "__main__":
    main()
