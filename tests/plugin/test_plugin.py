"""The pytest plugin on real kernels, on the virtual machine: which tests fail, how, and what the run says at its end."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from consan.reports.formats import json_format

pytest_plugins = ["pytester"]

CPU = ("--consan", "--consan-device", "cpu", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-W", "default", "-n0")

RACE = "error[[]data-race[]]: RAW in kernel racy, k.cu:4 and k.cu:5, 64 times"


def run(project: pytest.Pytester, tests: str, *words: str, **outcomes: int) -> pytest.RunResult:
    """Run a module of tests under --consan on the CPU."""
    project.makepyfile(test_it="import pytest\n" + tests)
    result = project.runpytest_inprocess(*CPU, *words)
    if outcomes:
        result.assert_outcomes(**outcomes)
    return result


def stored(path: Path) -> dict[str, Any]:
    """A report that the schema accepts."""
    data: dict[str, Any] = json.loads(path.read_text())
    jsonschema.Draft202012Validator(json_format.schema()).validate(data)
    return data


# --- findings ------------------------------------------------------------------------------------------------------------


def test_a_suite_that_knows_nothing_of_consan(project: pytest.Pytester) -> None:
    tests = """
def test_racy(shift): assert shift()[0] >= 0
def test_racy_too(shift): shift()
def test_fixed(shift): assert shift("fixed")[0] == 63
def test_no_kernel(): pass
"""
    result = run(project, tests, "--consan-report=r.json", passed=2, failed=2)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "consan: every test is sanitized on cpu, seed 0",
            "test_it.py RR..*",
            f"consan: {RACE}",
            "*- consan -*",
            "*(1) write  st.shared.f32  *thread (*",
            "*--> k.cu:*tile[[]t[]] = in[[]t[]];",
            "*reproduce: *pytest --consan --consan-device cpu test_it.py::test_racy",
            "=*= consan: violations =*",
            RACE.replace("64 times", "128 times in 2 tests"),
            "    test_it.py::test_racy",
            "    test_it.py::test_racy_too",
            "explained by: consan explain data-race",
            "consan: violations: 2 kernels, 3 launches, 1 finding in 3 tests on cpu; seed 0",
            "RACY test_it.py::test_racy - *data-race*",
        ]
    )
    data = stored(project.path / "r.json")
    assert (data["verdict"], data["exit"], len(data["findings"])) == ("violations", 1, 1)
    assert data["findings"][0]["tests"] == ["test_it.py::test_racy", "test_it.py::test_racy_too"]
    assert [(test["id"], test["outcome"], test["verdict"], test["launches"]) for test in data["tests"]] == [
        ("test_it.py::test_racy", "failed", "violations", 1),
        ("test_it.py::test_racy_too", "failed", "violations", 1),
        ("test_it.py::test_fixed", "passed", "clean", 1),
    ]


def test_the_findings_of_tests_with_parameters_are_shown_in_full_once(project: pytest.Pytester) -> None:
    """Another failure, and another place, are shown in full."""
    tests = """
@pytest.mark.parametrize("n", range(3))
def test_it(shift, n): shift()
def test_incomplete(shift): shift(); __import__("cupy").RawModule(path="unmodelled.ptx").get_function("unmodelled")((1,), (32,), ())
"""
    result = run(project, tests, "--consan-report=r.json", failed=4)
    out = result.stdout.str()
    assert out.count("(1) write  st.shared.f32") == 2  # of the first one, and of the one that has a gap beside it
    assert out.count("verdict: violations, with the findings that test_it.py::test_it[0] shows in full:\n  error[data-race]: RAW in k") == 2
    assert "reproduce: pytest --consan --consan-device cpu test_it.py::test_it[2]" in out.replace("'", "")
    assert stored(project.path / "r.json")["status"] == result.ret == 1


def test_without_the_option_nothing_is_sanitized(project: pytest.Pytester) -> None:
    project.makeconftest("")
    body = "import pytest\nfrom consan import adapters\n@pytest.mark.consan(expect='data-race')\n"
    project.makepyfile(body + "def test_it(): assert adapters._sessions == []\n")
    result = project.runpytest_inprocess("--strict-markers", "-n0", "-p", "no:hypothesispytest")
    result.assert_outcomes(passed=1)
    assert "consan:" not in result.stdout.str()


def test_a_test_that_fails_anyway_shows_what_was_found(project: pytest.Pytester) -> None:
    result = run(project, "def test_it(shift):\n    shift()\n    assert 1 == 2\n", failed=1)
    result.stdout.fnmatch_lines(["test_it.py F*", "E * assert 1 == 2", "*- consan -*", "*data-race*", f"{RACE} in 1 test"])


@pytest.mark.parametrize(
    ("tests", "outcomes"),
    [
        ("@pytest.mark.xfail\ndef test_it(shift): shift()\n", {"xfailed": 1}),
        ("@pytest.mark.xfail(strict=True)\ndef test_it(shift): shift('fixed')\n", {"failed": 1}),
        ("def test_it(shift):\n    shift()\n    pytest.skip('later')\n", {"skipped": 1}),
        ("import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.a = 1\n", {"passed": 1}),
    ],
)
def test_other_outcomes_stay(project: pytest.Pytester, tests: str, outcomes: dict[str, int]) -> None:
    run(project, tests, **outcomes)


def test_unittest(project: pytest.Pytester) -> None:
    tests = """
import unittest
import cupy as cp
class TestIt(unittest.TestCase):
    def test_racy(self):
        x, out = cp.arange(64, dtype=cp.float32), cp.zeros(64, dtype=cp.float32)
        cp.RawModule(path="k.ptx").get_function("racy")((1,), (64,), (x, out))
"""
    run(project, tests, "-W", "ignore::ResourceWarning", failed=1).stdout.fnmatch_lines(["*RACY test_it.py::TestIt::test_racy*"])


def test_fixtures_belong_to_their_tests(project: pytest.Pytester) -> None:
    tests = """
@pytest.fixture
def before(shift): return shift()
@pytest.fixture
def after(shift):
    yield
    shift()
def test_before(before): pass
def test_after(after): pass
def test_alone(): pass
"""
    result = run(project, tests, "-v", passed=2, failed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["*::test_before RACY*", "*::test_after PASSED*", "*::test_after RACY*", "*ERROR at teardown of test_after*"]
    )
    assert result.ret == 1


def test_launches_outside_of_tests_fail_the_run(project: pytest.Pytester) -> None:
    tests = """
import cupy as cp
x, out = cp.arange(64, dtype=cp.float32), cp.zeros(64, dtype=cp.float32)
cp.RawModule(path="k.ptx").get_function("racy")((1,), (64,), (x, out))
def test_it(): pass
"""
    result = run(project, tests, "--consan-report=r.json", passed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines([RACE, "    outside of tests"])
    assert stored(project.path / "r.json")["tests"] == [
        {"id": "", "outcome": "passed", "verdict": "violations", "launches": 1, "incomplete": []}
    ]


# --- markers -------------------------------------------------------------------------------------------------------------


def test_expected_findings(project: pytest.Pytester) -> None:
    tests = """
@pytest.mark.consan(expect="data-race")
def test_found(shift): shift()
@pytest.mark.consan(expect="data-race")
def test_not_found(shift): shift("fixed")
@pytest.mark.consan(expect=("data-race", "deadlock"))
def test_one_of_two(shift): shift()
@pytest.mark.consan(expect="deadlock")
def test_another(shift): shift()
@pytest.mark.consan(expect="data-race")
class TestAll:
    def test_in_class(self, shift): shift()
"""
    result = run(project, tests, "--strict-markers", passed=2, failed=3)
    result.stdout.fnmatch_lines(
        [
            "test_it.py .FFR.*",
            "consan: expected data-race, found nothing",
            "consan: expected deadlock, found data-race",
            f"consan: {RACE}",
            "suppressed error[[]data-race[]]*: expected by this test (marker consan)",
        ]
    )


def test_allowed_findings(project: pytest.Pytester) -> None:
    tests = """
@pytest.mark.consan_allow("data-race", reason="known")
def test_known(shift): shift()
@pytest.mark.consan_allow("data-race", reason="known", kernel="other*")
def test_other_kernel(shift): shift()
@pytest.mark.consan_allow("deadlock", reason="never")
def test_unused(shift): shift("fixed")
"""
    result = run(project, tests, "--consan-report=r.json", passed=2, failed=1, warnings=1)
    result.stdout.fnmatch_lines(
        ["*ConsanWarning: marker consan_allow: deadlock: covered no finding of this test", "suppressed *: known (marker*"]
    )
    first, second = stored(project.path / "r.json")["findings"]
    assert (first["suppressed"], second["suppressed"]["reason"]) == (None, "known")


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("consan(expect='race')", "marker consan: there is no kind 'race'; did you mean data-race?"),
        ("consan", "marker consan: write consan(expect=KIND)"),
        ("consan('data-race')", "marker consan: write consan(expect=KIND)"),
        ("consan_allow('data-race')", "marker consan_allow: suppressing data-race needs a reason"),
        ("consan_allow(reason='r')", "marker consan_allow: write consan_allow(KIND, reason=...)"),
        ("consan_allow('deadlock', reason='r', kind=1)", "marker consan_allow: write consan_allow(KIND, reason=...)"),
    ],
)
def test_markers_that_mean_nothing_end_the_run(project: pytest.Pytester, marker: str, message: str) -> None:
    result = run(project, f"@pytest.mark.{marker}\ndef test_it(): pass\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"test_it.py::test_it: {message}" in result.stderr.str()


# --- what cannot be checked ----------------------------------------------------------------------------------------------

GAP = "incomplete: unmodelled contains fence.proxy.alias*"
UNMODELLED = """
import cupy as cp
def test_it(): cp.RawModule(path="unmodelled.ptx").get_function("unmodelled")((1,), (1,), ())
"""


def test_a_gap_is_shown_and_fails_a_test_under_strict(project: pytest.Pytester) -> None:
    shown = run(project, UNMODELLED, passed=1)
    shown.stdout.fnmatch_lines(["test_it.py I*", "=*= consan: incomplete =*", GAP, "* in 1 test (1 incomplete) on cpu; *"])
    assert shown.ret == 0
    allowed = run(project, UNMODELLED, "--consan-strict", "--consan-allow-incomplete", passed=1)
    allowed.stdout.fnmatch_lines(["test_it.py .*", "=*= consan: incomplete =*", GAP])
    assert allowed.ret == 0
    result = run(project, UNMODELLED, "--consan-strict", failed=1)
    result.stdout.fnmatch_lines(
        ["consan: *, strict", "test_it.py I*", "consan: incomplete: unmodelled contains *", "INCOMPLETE test_it.py::test_it*"]
    )


NOTHING = "consan: incomplete: 0 kernels, 0 launches, 0 findings in 0 tests on cpu; seed 0*"
BY_ITSELF = """
import consan as api
def kernel(entry): return api.Kernel("k.ptx", entry=entry)
def arrays(): import numpy as np; return np.zeros(64, np.float32), np.zeros(64, np.float32)
"""


@pytest.mark.parametrize("tests", ["def test_it(): pass\n", "import pytest\ndef test_it(): pytest.skip('no GPU')\n"])
def test_a_run_without_a_kernel_is_incomplete_and_fails_under_strict(project: pytest.Pytester, tests: str) -> None:
    outcome = {"skipped": 1} if "skip" in tests else {"passed": 1}
    result = run(project, tests, **outcome)
    result.stdout.fnmatch_lines(["=*= consan: incomplete =*", "incomplete: no instrumented kernel was launched", NOTHING])
    assert result.ret == 0
    assert run(project, tests, "--consan-strict", **outcome).ret == 67


def test_what_is_not_a_run_is_not_incomplete(project: pytest.Pytester) -> None:
    result = run(project, "def test_it(): pass\n", "--consan-strict", "--collect-only")
    assert (result.ret, "consan: incomplete" in result.stdout.str()) == (0, False)
    assert run(project, "", "--consan-strict").ret == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.slow)])
def test_a_clean_run_says_so_in_one_line(project: pytest.Pytester, workers: str) -> None:
    tests = "def test_a(shift): shift('fixed')\ndef test_b(shift): shift('fixed'); shift('fixed')\n"
    project.makepyfile(tests)
    result = project.runpytest_subprocess(*CPU[:-1], workers, "--consan-strict")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["consan: clean: 1 kernel, 3 launches, 0 findings in 2 tests on cpu; seed 0"])
    assert result.ret == 0


def test_under_xdist_a_run_without_a_kernel_fails_under_strict(project: pytest.Pytester) -> None:
    project.makepyfile("def test_a(): pass\ndef test_b(): pass\n")
    result = project.runpytest_subprocess(*CPU[:-1], "-n2", "--consan-strict")
    result.stdout.fnmatch_lines([NOTHING])
    assert result.ret == 67


@pytest.mark.parametrize(
    "body",
    [
        "api.launch(kernel('fixed'), 1, 64, arrays(), device='cpu')",
        "consan.launch(kernel('fixed'), 1, 64, arrays())",
        "with api.check(device='cpu'): api.launch(kernel('fixed'), 1, 64, arrays(), device='cpu')",
        "with consan.check(): shift('fixed')",
        "consan.assert_clean(kernel('fixed'), 1, 64, arrays())",
        "assert consan.launch(kernel('racy'), 1, 64, arrays()).verdict == 'violations'",
        "with pytest.raises(AssertionError): consan.assert_clean(kernel('racy'), 1, 64, arrays())",
    ],
)
def test_what_tests_judge_by_themselves_counts_as_launched_once(project: pytest.Pytester, body: str) -> None:
    result = run(project, f"import pytest\n{BY_ITSELF}\ndef test_it(consan, shift):\n    {body}\n", "--consan-strict", passed=1)
    result.stdout.fnmatch_lines(["consan: clean: 1 kernel, 1 launch, 0 findings in 1 test on cpu; seed 0*"])
    assert result.ret == 0


# --- suppressions of the project -----------------------------------------------------------------------------------------


def test_suppressions_of_the_project(project: pytest.Pytester) -> None:
    project.makepyprojecttoml(
        "[tool.consan]\nseed = 3\nsede = 4\n[[tool.consan.suppressions]]\nkind = 'data-race'\nkernel = 'ra*'\nreason = 'known'\n"
        "[[tool.consan.suppressions]]\nkind = 'deadlock'\nreason = 'never'\n"
    )
    result = run(project, "def test_it(shift): shift()\n", passed=1, warnings=1)
    result.stdout.fnmatch_lines(
        [
            "consan: every test is sanitized on cpu, seed 3",
            "*ConsanWarning: *pyproject.toml: tool.consan.sede: nothing reads this key; did you mean seed?",
            "=*= consan: clean =*",
            "suppressed error[[]data-race[]]*: known (*pyproject.toml, suppression 1)",
            "warning: *pyproject.toml, suppression 2: deadlock: this suppression covered no finding",
        ]
    )


def test_comments_in_the_source(project: pytest.Pytester) -> None:
    lines = (project.path / "k.cu").read_text().splitlines()
    lines[3] += "  // consan: allow(data-race) known"
    lines[4] += "  // consan: allow(deadlock) never"
    (project.path / "k.cu").write_text("\n".join(lines))
    result = run(project, "def test_it(shift): shift()\ndef test_fixed(shift): shift('fixed')\n", passed=2)
    result.stdout.fnmatch_lines(["suppressed *: known (*k.cu:4)", "warning: *k.cu:5: deadlock: this suppression covered no finding"])
    assert "k.cu:4: data-race: this suppression" not in result.stdout.str()


# --- where it goes -------------------------------------------------------------------------------------------------------


def test_junit_carries_findings(project: pytest.Pytester) -> None:
    run(
        project,
        "def test_it(shift): shift()\ndef test_gap():\n    pass\n" + UNMODELLED.replace("test_it", "test_ptx"),
        "--junitxml=j.xml",
        passed=2,
        failed=1,
    )
    cases = {case.attrib["name"]: case for case in ET.parse(project.path / "j.xml").iter("testcase")}
    found = {name: [(p.attrib["name"], p.attrib["value"]) for p in case.iter("property")] for name, case in cases.items()}
    race = "error[data-race]: RAW in kernel racy, k.cu:4 and k.cu:5, 64 times"
    assert found["test_it"] == [("consan", "violations"), ("consan.finding", race)]
    assert found["test_gap"] == []
    assert [name for name, _ in found["test_ptx"]] == ["consan", "consan.incomplete"]
    assert race in cases["test_it"][-1].attrib["message"]


def test_a_report_of_no_kernels_at_all_is_incomplete(project: pytest.Pytester) -> None:
    run(project, "def test_it(): pass\n", "--consan-report=r.json", passed=1)
    data = stored(project.path / "r.json")
    assert (data["verdict"], data["incomplete"]) == ("incomplete", ["no instrumented kernel was launched"])


SAME_VALUE = """extern "C" __global__ void racy(const float* in, float* out) {
    __shared__ int flag;
    if (in[threadIdx.x] >= 0) flag = (int)in[5];
    __syncthreads();
    out[threadIdx.x] = flag;
}
"""


def test_notes_pass_strictly_and_are_printed_on_request(project: pytest.Pytester) -> None:
    from consan.toolchain.nvrtc import compile_ptx

    (project.path / "k.ptx").write_text(compile_ptx(SAME_VALUE, name="k.cu", arch="sm_90").ptx)
    result = run(project, "def test_it(shift): shift()\n", "--consan-strict", passed=1)
    result.stdout.fnmatch_lines(["*= consan: clean =*", "1 note (--consan-notes shows it)"])
    result.stdout.no_fnmatch_line("*data-race*")
    result = run(project, "def test_it(shift): shift()\n", "--consan-strict", "--consan-notes", passed=1)
    result.stdout.fnmatch_lines(["note[[]data-race[]]: WAW in kernel racy, *k.cu:3*", "explained by: consan explain data-race"])
    result.stdout.no_fnmatch_line("*shows it*")


@pytest.mark.parametrize(
    ("suffix", "piece"),
    [
        ("txt", "== error[data-race]: RAW in kernel racy ="),
        ("sarif", '"ruleId": "data-race"'),
        ("html", 'data-kind="data-race" data-severity="error"'),
    ],
)
def test_reports_in_other_formats(project: pytest.Pytester, suffix: str, piece: str) -> None:
    run(project, "def test_it(shift): shift()\n", f"--consan-report=r.{suffix}", failed=1)
    text = (project.path / f"r.{suffix}").read_text()
    assert piece in text
    assert suffix == "txt" or "test_it.py::test_it" in text


def test_a_report_with_nowhere_to_go(project: pytest.Pytester) -> None:
    result = run(project, "def test_it(): pass\n", "--consan-report=none/r.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "consan: --consan-report: there is no folder" in result.stderr.str()


def test_under_xdist_workers_send_what_they_find(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_a="import cupy as cp\nx = cp.zeros(64, dtype=cp.float32)\n"
        "cp.RawModule(path='k.ptx').get_function('racy')((1,), (64,), (x, x))\n"
        "def test_racy(shift): shift()\ndef test_fixed(shift): shift('fixed')\n",
        test_b="def test_racy(shift): shift()\n",
    )
    result = project.runpytest_subprocess(*CPU[:-1], "-n2", "--dist=loadfile", "--consan-report=r.json", "--junitxml=j.xml")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            RACE.replace("64 times", "256 times in 2 tests"),
            "    outside of tests",
            "consan: violations: 2 kernels, 5 launches, 1 finding in 3 tests on cpu; *",
        ]
    )
    data = stored(project.path / "r.json")
    assert sorted(test["id"] for test in data["tests"]) == ["", "", "test_a.py::test_fixed", "test_a.py::test_racy", "test_b.py::test_racy"]
    assert [finding["count"] for finding in data["findings"]] == [4 * 64]
    assert (project.path / "j.xml").read_text().count('name="consan.finding"') == 2


# --- settings ------------------------------------------------------------------------------------------------------------


def test_every_option_has_a_twin_in_the_ini_file(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\nconsan = true\nconsan_device = cpu\nconsan_seed = 5\nconsan_strict = true\nconsan_report = r.json\n")
    project.makepyfile(UNMODELLED)
    result = project.runpytest_inprocess("-n0", "-p", "no:hypothesispytest")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["consan: every test is sanitized on cpu, seed 5, strict"])
    assert stored(project.path / "r.json")["seed"] == 5
    result = project.runpytest_inprocess("-n0", "-p", "no:hypothesispytest", "--consan-seed=6")
    result.stdout.fnmatch_lines(["consan: every test is sanitized on cpu, seed 6, strict"])


def test_settings_in_rising_order(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    project.makeini("[pytest]\nconsan_seed = 2\n")
    project.makepyprojecttoml("[tool.consan]\nseed = 1\npolicy = 'isa'\n")
    steps: list[tuple[dict[str, str], tuple[str, ...], int]] = [
        ({}, (), 2),
        ({"CONSAN_OPTIONS": "--seed 3"}, (), 3),
        ({"CONSAN_SEED": "4"}, (), 4),
        ({}, ("--consan-seed=5",), 5),
    ]
    for environ, words, seed in steps:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        result = run(project, "def test_it(shift): shift('fixed')\n", *words, passed=1)
        result.stdout.fnmatch_lines([f"consan: every test is sanitized on cpu, seed {seed}"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--consan-device=tpu",), "ERROR: consan: --consan-device: expected one of auto, gpu, cpu, got 'tpu'; did you mean gpu?"),
        (("--consan-seed=x",), "ERROR: consan: --consan-seed: expected a whole number, got 'x'"),
    ],
)
def test_wrong_settings_are_one_line(project: pytest.Pytester, words: tuple[str, ...], message: str) -> None:
    result = run(project, "def test_it(): pass\n", *words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.stderr.str().splitlines() if line] == [message]


def test_a_device_that_is_not_there_is_one_line(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    from consan._errors import EnvironmentFailure
    from consan.session import session

    def missing(device: str, shadow_memory: int | None) -> None:
        raise EnvironmentFailure("--device gpu: no NVIDIA driver was found")

    monkeypatch.setattr(session, "shared_device", missing)
    result = run(project, "def test_it(): pass\n", "--consan-device=gpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.str().strip() == "ERROR: consan: --device gpu: no NVIDIA driver was found"
