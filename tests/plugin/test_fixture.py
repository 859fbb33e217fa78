"""The fixture `consan`: sanitized launches in tests, with `--consan` and without."""

from __future__ import annotations

import json

import pipeline_kernels as kernels
import pytest

pytest_plugins = ["pytester"]

HEAD = """
import numpy as np
import pytest
import consan as module

def args(): return [np.zeros(64, np.uint32), 5]
def kernel(entry): return module.Kernel("module.ptx", entry=entry)
"""
WITH_AND_WITHOUT = pytest.mark.parametrize("words", [(), ("--consan",)], ids=["without", "with"])


def run(pytester: pytest.Pytester, tests: str, *words: str, **outcomes: int) -> pytest.RunResult:
    (pytester.path / "module.ptx").write_text(kernels.MODULE)
    pytester.makepyfile(test_it=HEAD + tests)
    result = pytester.runpytest_inprocess("-n0", "-p", "no:hypothesispytest", "--consan-device=cpu", *words)
    if outcomes:
        result.assert_outcomes(**outcomes)
    return result


@WITH_AND_WITHOUT
def test_assert_clean(pytester: pytest.Pytester, words: tuple[str, ...]) -> None:
    tests = """
def test_clean(consan):
    given = args()
    report = consan.assert_clean(kernel("clean"), 1, 64, given)
    assert report.verdict == "clean"
    assert given[0].any()
def test_racy(consan): consan.assert_clean(kernel("racy"), (1,), (64,), args())
def test_gap(consan): consan.assert_clean(kernel("unmodelled"), 1, 1)
def test_gap_allowed(consan): consan.assert_clean(kernel("unmodelled"), 1, 1, allow_incomplete=True)
def test_caught(consan):
    with pytest.raises(AssertionError, match="data-race"):
        consan.assert_clean(kernel("racy"), 1, 64, args())
"""
    result = run(pytester, tests, *words, "--consan-report=r.json", passed=3, failed=2)
    result.stdout.fnmatch_lines(
        [
            "test_it.py .RI..*",
            "*NotCleanError: consan: error[[]data-race[]]: RAW in kernel racy, *",
            "*- consan -*",
            "*== error[[]data-race[]]: RAW in kernel racy ==*",
            "=*= consan: violations =*",
        ]
    )
    data = json.loads((pytester.path / "r.json").read_text())
    assert [test["id"][12:] for test in data["tests"]] == ["test_clean", "test_racy", "test_gap", "test_gap_allowed"]
    assert [finding["tests"] for finding in data["findings"]] == [["test_it.py::test_racy"]]


@WITH_AND_WITHOUT
def test_the_test_judges_what_check_and_launch_report(pytester: pytest.Pytester, words: tuple[str, ...]) -> None:
    tests = """
def test_launch(consan):
    assert consan.launch(kernel("racy"), 1, 64, args()).verdict == "violations"
def test_check(consan):
    with consan.check() as report:
        import cupy as cp
        module = cp.RawModule(path="module.ptx")
        out = cp.zeros(64, dtype=cp.uint32)
        module.get_function("racy")((1,), (64,), (out, 5))
    assert [finding.kind for finding in report.findings] == ["data-race"]
def test_cupy_kernel(consan):
    with consan.check():
        import cupy as cp
        out = cp.zeros(64, dtype=cp.uint32)
        racy = cp.RawModule(path="module.ptx").get_function("racy")
    if hasattr(consan, "x"): racy((1,), (64,), (out, 5))
"""
    run(pytester, tests, *words, passed=3)


@WITH_AND_WITHOUT
def test_markers_count_for_the_fixture(pytester: pytest.Pytester, words: tuple[str, ...]) -> None:
    tests = """
@pytest.mark.consan(expect="data-race")
def test_expected(consan): consan.assert_clean(kernel("racy"), 1, 64, args())
@pytest.mark.consan(expect="data-race")
def test_launched(consan): consan.launch(kernel("racy"), 1, 64, args())
@pytest.mark.consan(expect="data-race")
def test_not_found(consan): consan.assert_clean(kernel("clean"), 1, 64, args())
@pytest.mark.consan_allow("data-race", reason="known")
def test_allowed(consan): consan.assert_clean(kernel("racy"), 1, 64, args())
"""
    result = run(pytester, tests, *words, passed=3, failed=1)
    result.stdout.fnmatch_lines(["test_it.py ..F.*", "consan: expected data-race, found nothing"])


def test_a_kernel_of_cupys_can_be_asserted_clean(pytester: pytest.Pytester) -> None:
    tests = """
import cupy as cp
def test_it(consan):
    out = cp.zeros(64, dtype=cp.uint32)
    for entry in ("clean", "racy"):
        consan.assert_clean(cp.RawModule(path="module.ptx").get_function(entry), (1,), (64,), (out, 5))
"""
    run(pytester, tests, "--consan", failed=1).stdout.fnmatch_lines(["test_it.py R*", "*RAW in kernel racy*"])


def test_suppressions_and_strictness_apply(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("[[tool.consan.suppressions]]\nkind = 'data-race'\nreason = 'known'\n")
    run(pytester, "def test_it(consan): consan.assert_clean(kernel('racy'), 1, 64, args())\n", passed=1)
    gap = "def test_it(consan): assert consan.launch(kernel('unmodelled'), 1, 1).verdict == 'incomplete'\n"
    run(pytester, gap, "--consan-strict", passed=1)


def test_options_of_a_launch_win(pytester: pytest.Pytester) -> None:
    tests = """
def test_it(consan):
    assert consan.launch(kernel("clean"), 1, 64, args()).seed == 7
    assert consan.assert_clean(kernel("clean"), 1, 64, args(), seed=9).seed == 9
    with consan.check(seed=8) as report: pass
    assert report.seed == 8
"""
    run(pytester, tests, "--consan-seed=7", passed=1)


def test_the_module_inside_a_sanitized_test_keeps_its_own_reports(pytester: pytest.Pytester) -> None:
    tests = """
import cupy as cp
def racy():
    out = cp.zeros(64, dtype=cp.uint32)
    cp.RawModule(path="module.ptx").get_function("racy")((1,), (64,), (out, 5))
def test_it():
    racy()
    assert module.launch(kernel("clean"), 1, 64, args(), device="cpu").verdict == "clean"
def test_clean():
    assert module.launch(kernel("racy"), 1, 64, args(), device="cpu").verdict == "violations"
"""
    run(pytester, tests, "--consan", passed=1, failed=1).stdout.fnmatch_lines(["test_it.py R.*"])


def test_the_score_names_what_no_test_would_notice(pytester: pytest.Pytester) -> None:
    """The second barrier matters for more than one round only."""
    (pytester.path / "k.cu").write_text("""
extern "C" __global__ void k(float* out, int rounds) {
    __shared__ float a[64];
    int t = threadIdx.x;
    float sum = 0;
    for (int i = 0; i < rounds; i++) {
        a[t] = i + t;
        __syncthreads();
        sum += a[63 - t];
        __syncthreads();
    }
    out[t] = sum;
}
""")
    tests = """
def test_rounds(consan): consan.assert_clean(module.Kernel("k.cu"), 1, 64, [np.zeros(64, np.float32), {rounds}])
"""
    one = run(pytester, tests.replace("{rounds}", "1"), "--consan-mutate", passed=1)
    one.stdout.fnmatch_lines(
        ["*consan: mutation score*", "1 of 2 barriers, waits and fences*", "  no test notices: bar.sync at k.cu:10 in k"]
    )
    run(pytester, tests.replace("{rounds}", "2"), "--consan-mutate", passed=1).stdout.fnmatch_lines(["2 of 2 barriers, waits and fences*"])


def test_a_launch_of_several_ranks(pytester: pytest.Pytester) -> None:
    tests = """
FILL = module.Kernel('extern "C" __global__ void fill(unsigned *out, unsigned value) { out[threadIdx.x] = value; }')
def own(rank): return [np.zeros(32, np.uint32), rank]
def test_apart(consan): consan.assert_clean(FILL, 1, 32, own, ranks=2)
def test_together(consan):
    out = np.zeros(32, np.uint32)
    consan.assert_clean(FILL, 1, 32, lambda rank: [out, rank], ranks=2)
def test_judged(consan):
    out = np.zeros(32, np.uint32)
    (finding,) = consan.launch(FILL, 1, 32, lambda rank: [out, rank], ranks=2).findings
    assert {access.rank for access in finding.pair} == {0, 1}
"""
    result = run(pytester, tests, passed=2, failed=1)
    result.stdout.fnmatch_lines(["test_it.py .R.*", "*CTA (0,0,0), rank 1"])
