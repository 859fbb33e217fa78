"""Pairs of CTAs and a pipeline with roles (tests/vm/kernels): clean, and their faults are found (SEMANTICS 4.4, R-P*)."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import consan

KERNELS = Path(__file__).parents[1] / "vm" / "kernels"
START = "    cluster_sync();  // the peer runs, and its barrier is ready\n"
END = "    cluster_sync();  // nobody reads any more\n"
FENCE = '        asm volatile("fence.proxy.async.shared::cluster;" ::: "memory");\n'
MASK = '"h"((unsigned short)3)'
WAIT = "        phase ^= 1;\n"
ALLOCATES = "    if (warp == 0) {\n"
# The text that is replaced, what by, and the finding that must be among those reported.
FAULTS = {
    "peer_not_started": (START, "    __syncthreads();\n", ("lifetime", "may not have started")),
    "no_proxy_fence": (FENCE, "", ("missing-proxy-fence", "tcgen05.mma")),
    "stale_parity": (WAIT, "", ("missing-wait", "tcgen05.ld")),
    "mask_outside": (MASK, '"h"((unsigned short)7)', ("tcgen05-misuse", "rank 2")),
    "mask_misses_a_waiter": (MASK, '"h"((unsigned short)1)', ("deadlock", "set bit 1 in the mask")),
    "one_side_allocates": (ALLOCATES, "    if (warp == 0 && rank == 0) {\n", ("deadlock", "the other CTA of the pair")),
}


def _matrix(rows: int, depth: int) -> Any:
    return np.random.default_rng(rows + depth).integers(-3, 4, (rows, depth)).astype(np.float16)


@functools.cache
def _text(name: str) -> str:
    return (KERNELS / f"{name}.cu").read_text()


def _pair(folder: Path, text: str) -> tuple[Any, Any]:
    file, a, b, out = folder / "pair.cu", _matrix(256, 192), _matrix(128, 192), np.zeros((256, 128), np.float32)
    file.write_text(text)
    kernel = consan.Kernel(file, entry="pair", arch="sm_100a")
    report = consan.launch(kernel, 2, 128, [a, b, out, np.int32(192)], device="cpu", engine="record")
    assert {each.engine for each in report.kernels} == {"record"}
    return report, (out, a.astype(np.float32) @ b.astype(np.float32).T)


def test_a_product_by_a_pair_is_clean(tmp_path: Path) -> None:
    report, (out, wanted) = _pair(tmp_path, _text("tcgen05_pair"))
    assert (report.verdict, [each.message for each in report.findings]) == ("clean", [])
    assert "tensor-memory" in report.checked
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_a_pair(name: str, tmp_path: Path) -> None:
    before, after, (kind, words) = FAULTS[name]
    assert before in _text("tcgen05_pair")
    report, _ = _pair(tmp_path, _text("tcgen05_pair").replace(before, after))
    told = [(each.kind, each.message + each.fix) for each in report.findings]
    assert any(each == kind and words in text for each, text in told), told


def test_the_own_accesses_before_the_own_dealloc(tmp_path: Path) -> None:
    """T6: no cluster barrier is needed by default, but the own warps are."""
    report, _ = _pair(tmp_path, _text("tcgen05_pair").replace(END, "    __syncthreads();\n"))
    assert report.verdict == "clean"
    report, _ = _pair(tmp_path, _text("tcgen05_pair").replace(END, ""))
    assert any(each.kind in ("data-race", "tcgen05-misuse") and "tcgen05.dealloc" in each.message for each in report.findings)


def test_a_persistent_product_with_roles_is_clean(tmp_path: Path) -> None:
    file, a, b, out = tmp_path / "persistent.cu", _matrix(256, 256), _matrix(128, 256), np.zeros((256, 128), np.float32)
    file.write_text(_text("tcgen05_persistent"))
    kernel = consan.Kernel(file, entry="persistent", arch="sm_100a")
    args = [a, b, out, np.int32(128), np.int32(256)]
    report = consan.launch(kernel, 1, 192, args, smem=3 * 192 * 128 + 1024, device="cpu", engine="record")
    assert (report.verdict, [each.message for each in report.findings]) == ("clean", [])
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32).T)
