"""Verified fixes hold: with each applied, the racy kernel is clean and computes the same in every schedule."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import twin_file
from sampled import one_in

import consan
from consan.__main__ import main
from consan.reports.formats.json_format import from_json
from consan.reports.model import Report
from consan.reports.source.patches import fixed
from consan.reports.words.verified import names, order_of, sentence_of
from consan.session.asking.reruns import Ran, Reruns

TWINS = Path(__file__).parents[1] / "kernels" / "twins"
QUICK = (
    "raw", "cp_async_no_wait", "bulk_store_no_proxy_fence", "mbarrier_wrong_parity", "reduction_last_levels", "cluster_wait_cta_scope",
    "divergent_syncthreads", "histogram_no_atomics", "same_value_two_stores", "wgmma_fence_missing",
    "cluster_histogram_no_atomics", "cluster_wait_cta_scope_no_fence",
)  # fmt: skip
STILL = lambda: 0.0  # noqa: E731 - the time of a search in which no time passes
EVERY = [path.stem for path in sorted(TWINS.glob("*.cu"))]


def _launched(kernel: consan.Kernel, spec: twin_file.KernelFile, seed: int) -> Ran:
    """The report, and what the launch leaves in its buffers."""
    args = spec.fresh_args()
    report = consan.launch(
        kernel, spec.grid, spec.block, spec.parameters(args), smem=spec.smem, device="cpu", seed=seed, policy=spec.policy
    )
    return Ran(report, b"".join(np.asarray(args[name]).tobytes() for name in sorted(args)))


def _path_of(name: str) -> Path:
    return next(folder / f"{name}.cu" for folder in (TWINS, TWINS.parent / "blackwell") if (folder / f"{name}.cu").exists())


def _fixed(name: str) -> tuple[twin_file.KernelFile, consan.Kernel, Report]:
    """A racy twin with its verified fixes, in the replay or else in runs; no time passes."""
    spec = twin_file.read(_path_of(name))
    kernel = twin_file.kernel(spec.path, True)
    report = _launched(kernel, spec, 0).report
    if all(each.verified or each.severity == "note" for each in report.findings):
        return spec, kernel, report
    run = lambda ptx, seed: _launched(consan.Kernel(ptx, entry=kernel.entry), spec, seed)  # noqa: E731
    return spec, kernel, Reruns(kernel.module, run, spec.block, (1, 1, 1), clock=STILL, works=STILL).confirmed(report)


def _check(name: str, seeds: range) -> bool:
    """Whether a twin has verified fixes; they are tried, and what the report says of them is read."""
    if "cpu" not in twin_file.read(_path_of(name)).backends:
        return False
    spec, plain, report = _fixed(name)
    counting = [each for each in report.findings if each.severity != "note"]
    fixes = [each.verified for each in counting if each.verified]
    assert len(fixes) in (0, len(counting)), "with a verified fix nothing is found"
    for finding in counting if fixes else ():
        assert finding.verified
        assert names(finding.fix, finding.verified) or finding.fix == order_of(finding.verified)
    edited = [fix for fix in fixes if fix.edits]
    if not fixes or len(edited) != len(fixes):
        return False
    kernel, results = consan.Kernel(fixed(plain.ptx, fixes), entry=plain.entry), set()
    for seed in seeds:
        ran = _launched(kernel, spec, seed)
        assert not ran.report.incomplete
        assert all(each.severity == "note" for each in ran.report.findings), str(ran.report)
        results.add(ran.results)
    assert len(results) == 1 or any(fix.rerun and not fix.schedules for fix in fixes), "what the report does not say"
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


@pytest.mark.parametrize("body", one_in(3, PARTLY.values(), dict(zip(PARTLY.values(), PARTLY, strict=True)).__getitem__))
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
    run = lambda ptx, seed: Ran(consan.launch(consan.Kernel(ptx, entry="k"), 1, 128, values, device="cpu", seed=seed))  # noqa: E731
    fixed = Reruns(kernel.module, run, (128, 1, 1), (1, 1, 1), clock=STILL, works=STILL).confirmed(report)
    fixes = [finding.verified for finding in fixed.findings if finding.verified]
    assert bool(fixes) == (body == PARTLY["in a branch of whole warps"])
    assert all(step.action == "move" and step.line == 8 for fix in fixes for step in fix.steps), str(fixed)  # out of the branch


def test_an_element_added_to_itself_is_no_atomic_update(tmp_path: Path) -> None:
    """No operand of `x + x` is what a reduction could add."""
    (tmp_path / "k.cu").write_text('extern "C" __global__ void k(float* x) { x[threadIdx.x] += x[threadIdx.x]; }')
    words = ("--grid", "2", "--block", "32", "--arg", "f32[32]=arange", "--device", "cpu", "--patch", str(tmp_path / "fix.diff"))
    assert main(["check", str(tmp_path / "k.cu"), *words]) == 66
    assert not (tmp_path / "fix.diff").exists()


LEVELS = """extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncwarp();
    if (t < 16) s[t] += s[t + 16];
    if (t < 8) s[t] += s[t + 8];
    if (t < 4) s[t] += s[t + 4];
    if (t < 1) out[0] = s[0] + s[1] + s[2] + s[3];
}"""


def test_lanes_meet_before_the_branches_of_a_reduction() -> None:
    """Lanes that have gone on make up for a barrier of the warp in a branch of some, in a replay and in plain runs."""
    kernel, values = consan.Kernel(LEVELS, entry="k"), [np.arange(32, dtype=np.float32), np.zeros(1, np.float32)]
    report = consan.launch(kernel, 1, 32, values, device="cpu")
    assert report.findings
    assert all(finding.verified is None for finding in report.findings), str(report)
    run = lambda ptx, seed: Ran(consan.launch(consan.Kernel(ptx, entry="k"), 1, 32, values, device="cpu", seed=seed))  # noqa: E731
    fixed = Reruns(kernel.module, run, (32, 1, 1), (1, 1, 1), clock=STILL, works=STILL).confirmed(report)
    steps = {(step.instruction, step.where, step.line) for finding in fixed.findings if finding.verified for step in finding.verified.steps}
    assert steps == {("bar.warp.sync 0xffffffff", "before", line) for line in (7, 8, 9)}


TILES = """#include <cuda_pipeline.h>
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ __align__(16) float s[2][2][32];
    int t = threadIdx.x, w = t / 32, lane = t % 32;
    __pipeline_memcpy_async(&s[w][0][lane], x + t * 8, 4);
    __pipeline_commit();
    for (int k = 0; k < 8; k++) {
        if (k < 7) __pipeline_memcpy_async(&s[w][(k + 1) & 1][lane], x + t * 8 + k + 1, 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        out[k * 64 + t] = s[w][k & 1][31 - lane];
        __syncwarp();
    }
}"""


def test_lanes_that_wait_for_their_copies_meet_as_a_warp(tmp_path: Path) -> None:
    """The words for a wait that lacks a barrier name one of the CTA; each warp has a tile of its own, so that of the warp is enough."""
    (tmp_path / "k.cu").write_text(TILES)
    words = ("--grid", "1", "--block", "64", "--arg", "f32[512]=arange", "--arg", "f32[512]=zeros", "--device", "cpu", "--format", "json")
    assert main(["check", str(tmp_path / "k.cu"), *words, "-o", str(tmp_path / "k.json")]) == 66
    findings = json.loads((tmp_path / "k.json").read_text())["findings"]
    assert findings
    for finding in findings:
        steps = [(step["instruction"], step["where"], step["line"]) for step in finding["verified"]["steps"]]
        assert steps == [("bar.warp.sync 0xffffffff", "before", 11)]
        assert "__syncwarp()" in finding["fix"]
        assert "__syncthreads()" not in finding["fix"]


LINES = {
    "cluster_receiver_does_not_wait": "    WAIT(&full, 0);",  # moved
    "bulk_bytes_last_tile": "expect(full, 512);",
    "bulk_result_read_wait": 'asm volatile("cp.async.bulk.wait_group 0;"',
    "cluster_atomics_cta_scope": 'ADD_AS("cluster", peer(&sum, 0), 1);',
    "bulk_store_uninitialised": "__syncthreads();",  # behind zeros
    "bulk_load_producer_phase": "WAIT(&empty[k & 1], (k >> 1 & 1) ^ 1);",
    "mbarrier_empty_not_waited": "WAIT(&empty, (k & 1) ^ 1);",
    "acknowledged_before_read": "if (lane == 0) set(&read, k);",  # moved
    "deadlock_flag_set_too_late": "if (t == 0) atomicExch(&ready, 1);",
    "wgmma_flush_flag": "wgmma_wait<0>();",
    "exclusive_branches": "    if (!(thread < 32)) {",
    "mbarrier_leader_releases_early": "            __syncwarp();",
    "cluster_arrival_overtaken": 'asm volatile("fence.proxy.async;"',
    "cluster_st_async_bytes_short": "ARRIVE_EXPECT(&bar, 128);",
}


@pytest.mark.parametrize("name", one_in(2, LINES, str))
def test_a_repair_of_a_macro_or_an_expression_is_a_line_of_the_source(name: str, tmp_path: Path) -> None:
    """Written as a diff of the `.cu` file; the check that follows says that it is clean."""
    spec, patch, report = twin_file.read(TWINS / f"{name}.cu"), tmp_path / "fix.diff", tmp_path / "k.json"
    header = [text.removeprefix("// arg: ") for text in spec.path.read_text().splitlines() if text.startswith("// arg: ")]
    args = [word for text in header for word in ("--arg", text.split()[1])]
    sizes = ("--grid", ",".join(map(str, spec.grid)), "--block", ",".join(map(str, spec.block)), "--arch", spec.arch)
    words = ("--entry", "kernel", "--define", "RACY=1", *sizes, *args, "--device", "cpu", "--format", "json", "-o", str(report))
    main(["check", str(spec.path), *words, "--patch", str(patch)])
    new = [text for text in patch.read_text().splitlines() if text.startswith("+")]
    assert new[0].endswith(f"{name}.cu")
    assert any(LINES[name] in text for text in new[1:])
    assert "shared address" not in report.read_text()
    assert any("a patch of" in note and "clean" in note for note in json.loads(report.read_text())["notes"])


def test_no_read_waits_for_the_write_that_is_to_come_behind_it() -> None:
    """It would read the next message."""
    _, _, report = _fixed("mbarrier_mailbox")
    steps = [step for finding in report.findings if finding.verified for step in finding.verified.steps]
    assert not any(step.instruction.startswith("mbarrier.try_wait") and step.where == "before" and step.line == 33 for step in steps)


def test_zeros_are_no_fix_of_what_nobody_writes() -> None:
    _, _, report = _fixed("bulk_store_never_written")
    assert report.findings
    assert not any(finding.verified for finding in report.findings)


def test_no_barrier_of_the_cluster_is_verified_in_one_of_its_ctas() -> None:
    """The one CTA waits in it for the exit of the other."""
    _, _, report = _fixed("cluster_flag_generic_address")
    steps = [step.instruction for finding in report.findings if finding.verified for step in finding.verified.steps]
    assert steps == ["st.release.cluster.u32"]


@pytest.mark.parametrize(("threads", "barrier"), [(32, "bar.warp.sync 0xffffffff"), (128, "bar.sync 0")])
def test_two_barriers_of_a_loop_are_found_around_its_write(threads: int, barrier: str) -> None:
    """A write that races with the reads of its turn and of the next one needs both; a third one belongs before the loop."""
    source = f"""extern "C" __global__ void k(const int* x, int* out) {{
    __shared__ int s[{threads}];
    int t = threadIdx.x;
    s[t] = x[t] & 255;
    #pragma unroll 1
    for (int d = 1; d < {threads}; d *= 2) {{
        int v = t >= d ? s[t - d] : 0;
        s[t] += v;
    }}
    out[t] = s[t];
}}"""
    values = [np.arange(threads, dtype=np.int32), np.zeros(threads, np.int32)]
    report = consan.launch(consan.Kernel(source, entry="k"), 1, threads, values, device="cpu")
    assert report.findings
    for finding in report.findings:
        assert finding.verified is not None, str(report)
        assert sorted({(step.where, step.line) for step in finding.verified.steps}) == [("after", 4), ("after", 8), ("before", 8)]
        assert {step.instruction for step in finding.verified.steps} == {barrier}


STAGED = """extern "C" __global__ void k(const float* x, float* out) {
    __shared__ __align__(128) float s[2][32];
    int t = threadIdx.x, w = t / 32, lane = t % 32;
    unsigned from = (unsigned)__cvta_generic_to_shared(s[w]);
    for (int i = 0; i < 2; i++) {
        s[w][lane] = x[i * 64 + t];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (lane == 0) {
            float* to = out + i * 64 + w * 32;
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" :: "l"(to), "r"(from) : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}"""


def test_a_wait_for_the_copy_of_a_warp_needs_a_barrier_of_the_warp() -> None:
    """The words name one of the CTA behind the wait; only lanes of one warp use the tile."""
    values = [np.arange(128, dtype=np.float32), np.zeros(128, np.float32)]
    report = consan.launch(consan.Kernel(STAGED, entry="k", arch="sm_90"), 1, 64, values, device="cpu")
    (finding,) = report.findings
    assert finding.kind == "missing-wait"
    assert finding.verified is not None
    steps = [(step.instruction, step.where, step.line) for step in finding.verified.steps]
    assert steps == [("cp.async.bulk.wait_group.read 0", "before", 6), ("bar.warp.sync 0xffffffff", "before", 6)]


@pytest.mark.parametrize(("name", "what"), [("load_pending", "ld"), ("store_pending", "st")])
def test_a_wait_of_the_warp_is_verified_for_tensor_memory(name: str, what: str) -> None:
    assert _check(name, range(1, 3))
    _, _, report = _fixed(name)
    added = [step.instruction for each in report.findings if each.verified for step in each.verified.steps]
    assert added
    assert set(added) == {f"tcgen05.wait::{what}.sync.aligned"}


QUEUE = """extern "C" __global__ void k(unsigned* size, unsigned* out) {
    __shared__ unsigned first[2];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) first[warp] = atomicAdd(size, 32);
    out[first[warp] + lane] = threadIdx.x;
}
"""


@pytest.mark.parametrize("order", ["", "    __threadfence_block();\n"])
def test_results_that_depend_on_the_schedule_do_not_refute_the_barrier_that_the_fix_names(order: str, tmp_path: Path) -> None:
    """The warps take places in a queue: which one comes first is right either way. A fence is no barrier."""
    (tmp_path / "k.cu").write_text(QUEUE.replace("    out[", f"{order}    out["))
    values = ["--arg", "u32[1]=zeros", "--arg", "u32[64]=zeros"]
    words = ["check", str(tmp_path / "k.cu"), "--grid", "1", "--block", "64", *values, "--device", "cpu", "-o", str(tmp_path / "r.json")]
    assert main(words) == 66
    found = [each for each in from_json(json.loads((tmp_path / "r.json").read_text())).findings if each.severity == "error"]
    assert {each.kind for each in found} >= {"data-race"}
    for each in found:
        assert each.verified is not None
        assert ([step.instruction for step in each.verified.steps], each.verified.schedules) == (["bar.warp.sync 0xffffffff"], 0)
        assert sentence_of(each.verified).endswith("nothing is found, and its results depend on the schedule")
