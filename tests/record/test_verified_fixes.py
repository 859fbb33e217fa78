"""Verified fixes hold: with each applied, the racy kernel is clean and computes the same in every schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twin_file

import consan
from consan.reports.patches import fixed
from consan.session.reruns import Reruns

TWINS = Path(__file__).parents[1] / "kernels" / "twins"
QUICK = ("raw", "cp_async_no_wait", "bulk_store_no_proxy_fence", "mbarrier_wrong_parity", "reduction_last_levels", "cluster_wait_cta_scope")
EVERY = [path.stem for path in sorted(TWINS.glob("*.cu"))]


def _launched(kernel: consan.Kernel, spec: twin_file.KernelFile, seed: int) -> tuple[Any, bytes]:
    """The report, and what the launch leaves in its buffers."""
    args = spec.fresh_args()
    report = consan.launch(
        kernel, spec.grid, spec.block, spec.parameters(args), smem=spec.smem, device="cpu", seed=seed, policy=spec.policy
    )
    return report, b"".join(args[name].tobytes() for name in sorted(spec.results))


def _check(name: str, seeds: range) -> bool:
    """Whether the findings of a twin have verified fixes; they are tried."""
    spec = twin_file.read(TWINS / f"{name}.cu")
    if "cpu" not in spec.backends:
        return False
    plain = twin_file.kernel(spec.path, True)
    found = _launched(plain, spec, 0)[0].findings
    fixes = [finding.verified for finding in found if finding.severity != "note"]
    if not fixes or not all(fix is not None and fix.edits for fix in fixes):
        return False
    kernel = consan.Kernel(fixed(plain.ptx, filter(None, fixes)), entry=plain.entry)
    results = set()
    for seed in seeds:
        report, result = _launched(kernel, spec, seed)
        assert report.verdict == "clean", str(report)
        results.add(result)
    assert len(results) == 1
    return True


@pytest.mark.parametrize("name", QUICK)
def test_a_verified_fix_repairs_the_results(name: str) -> None:
    assert _check(name, range(3))


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_every_verified_fix_repairs_the_results(name: str) -> None:
    if not _check(name, range(20)):
        pytest.skip("no fix of all findings is verified")


PARTLY = {
    "by one lane of each warp, before the others exit": "        if (t % 32 == 0) { b[t] = in[t]; out[t] = b[(t + 32) & 127]; }",
    "in a branch of whole warps": (
        "        if (w < 2) { b[t] = a[127 - t]; __syncthreads(); }\n"
        "        out[t] += a[t ^ 64] + (w < 2 ? b[t ^ 1] : 0);\n"
        "        __syncthreads();"
    ),
    "in both arms of a branch": (
        "        if (t == 0) b[0] = in[r];\n        if (t == 0) out[r] = in[r]; else out[t + 128] = in[t] + b[0];\n        __syncthreads();"
    ),
}


@pytest.mark.parametrize("body", PARTLY.values(), ids=PARTLY)
def test_no_barrier_is_verified_that_some_threads_do_not_pass(body: str) -> None:
    """Threads that wait at other barriers make up the count of an added one, and no finding is left: the results are wrong all the same."""
    source = f"""extern "C" __global__ void k(const float* in, float* out, int n) {{
    __shared__ float a[128], b[128];
    int t = threadIdx.x, w = t >> 5;
    for (int r = 0; r < n; r++) {{
        a[t] = in[r * 128 + t];
        __syncthreads();
{body}
    }}
}}"""
    kernel = consan.Kernel(source, entry="k")
    values = [np.zeros(512, np.float32), np.zeros(512, np.float32), np.int32(3)]
    report = consan.launch(kernel, 1, 128, values, device="cpu")
    assert report.findings
    assert all(finding.verified is None for finding in report.findings), str(report)
    run = lambda ptx, seed: consan.launch(consan.Kernel(ptx, entry="k"), 1, 128, values, device="cpu", seed=seed)  # noqa: E731
    fixed = Reruns(kernel.module, run, (128, 1, 1), (1, 1, 1)).confirmed(report)
    assert all(finding.verified is None for finding in fixed.findings), str(fixed)
