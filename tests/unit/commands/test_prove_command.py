"""`consan prove` as a command: its three answers, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from consan.__main__ import main
from consan.commands import prove
from consan.prove import solver
from consan.reports.formats.json_format import schema

OWN = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 n)
.reqntid 64, 1, 1
{
.reg .b32 %r<8>;
.reg .pred %p<2>;
.reg .b64 %rd<8>;
ld.param.u64 %rd1, [a];
ld.param.u32 %r1, [n];
cvta.to.global.u64 %rd2, %rd1;
mov.u32 %r2, %tid.x;
mov.u32 %r3, %ctaid.x;
mad.lo.s32 %r4, %r3, 64, %r2;
mul.wide.s32 %rd3, %r4, 4;
add.s64 %rd4, %rd2, %rd3;
st.global.u32 [%rd4], %r2;
ret;
}
"""
SHIFTED = OWN.replace("%r3, 64", "%r3, 63")
INDEXED = OWN.replace("mul.wide.s32", "ld.global.u32 %r4, [%rd2];\nsetp.gt.s32 %p1, %r4, 9;\n@!%p1 ret;\nmul.wide.s32")


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    pytest.importorskip("z3", reason="the solver is in the extra `prove`")
    return tmp_path / "k.ptx"


def test_a_proof_has_status_0_and_says_what_it_assumes(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.write_text(OWN)
    assert main(["prove", str(kernel), "--assume", "n > 0"]) == 0
    out = capsys.readouterr().out
    assert "k, blocks of 64 x 1 x 1: proven" in out
    assert "gridDim.y = gridDim.z = 1" in out
    assert "n > 0" in out


def test_a_counterexample_is_run_and_its_finding_shown(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.write_text(SHIFTED)
    assert main(["prove", str(kernel)]) == 66
    out = capsys.readouterr().out
    assert "error[global-race]" in out
    assert "k, blocks of 64 x 1 x 1: counterexample: a launch has a race" in out
    assert "consan check" in out


BY_ROWS = OWN.replace("mad.lo.s32 %r4, %r3, 64, %r2", "mad.lo.s32 %r4, %r3, %r1, %r2")
ATOMIC = OWN.replace("st.global.u32 [%rd4], %r2", "red.relaxed.cta.global.add.u32 [%rd2], 1")
POLLED = """
__global__ void k(int *g, int n) {
    __shared__ int line[64];
    __shared__ unsigned long long bar;
    unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(at) : "memory");
    __syncthreads();
    line[threadIdx.x] = n;
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(at) : "memory");
    asm volatile("{ .reg .pred p; A%=: mbarrier.try_wait.parity.shared.b64 p, [%0], 1; @!p bra A%=; }" ::"r"(at) : "memory");
    g[blockIdx.x * 64 + threadIdx.x] = line[threadIdx.x ^ 32];
}
"""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param(BY_ROWS, "global-race", id="other values are stored"),
        pytest.param(ATOMIC, "scope", id="atomics whose scope is too small"),
    ],
)
def test_a_counterexample_is_an_error(kernel: Path, capsys: pytest.CaptureFixture[str], text: str, kind: str) -> None:
    """Two CTAs that store one value at one place are a warning, so threads with other numbers are preferred."""
    kernel.write_text(text)
    assert main(["prove", str(kernel)]) == 66
    assert f"error[{kind}]" in capsys.readouterr().out


def test_a_race_of_unequal_data_is_an_error(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With zeros all threads store one value, which is a warning."""
    source = kernel.with_suffix(".cu")
    source.write_text("__global__ void k(int* a, const int* b) { a[blockIdx.x] = b[threadIdx.x]; }")
    assert main(["prove", str(source), "--block", "32"]) == 66
    assert "=arange" in capsys.readouterr().out


def test_a_race_of_another_schedule_is_shown(kernel: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait of a wrong parity ends at once; with seed 0 all threads have arrived before."""
    source = kernel.with_suffix(".cu")
    source.write_text(POLLED)
    assert main(["prove", str(source), "--block", "64", "--arch", "sm_90a"]) == 66
    assert "error[data-race]" in capsys.readouterr().out
    monkeypatch.setattr(prove, "EXPLORES", 0.0)
    assert main(["prove", str(source), "--block", "64", "--arch", "sm_90a"]) == 67


RING = Path(__file__).parents[2] / "kernels/twins/bulk_load_producer_phase.cu"


@pytest.mark.slow
@pytest.mark.usefixtures("kernel")
def test_a_ring_is_proven_and_its_racy_twin_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["prove", str(RING), "--block", "64", "--assume", "gridDim.x == 1"]
    assert main(words) == 0
    assert "proven" in capsys.readouterr().out
    assert main([*words, "--define", "RACY=1"]) == 66
    assert "error[missing-wait]" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "note"), [(OWN, ""), (INDEXED, "not proven for all launches: ")])
def test_a_check_says_what_holds_for_all_launches(kernel: Path, tmp_path: Path, text: str, note: str) -> None:
    kernel.write_text(text)
    words = ["check", str(kernel), "--grid", "2", "--block", "64", "--arg", "u32[128]=zeros", "--arg", "u32=1", "--device", "cpu"]
    assert main([*words, "--prove", "20s", "-o", str(tmp_path / "k.json")]) == 0
    report = json.loads((tmp_path / "k.json").read_text())
    jsonschema.validate(report, schema())
    (said,) = report["kernels"]
    assert any(each.startswith("not proven") for each in report["notes"]) == bool(note)
    assert said["coverage"].get("races") == (None if note else "proven for all launches")
    assert said.get("proof", {}).get("whole") == (None if note else True)


def test_a_counterexample_of_a_template_names_its_instance(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = kernel.with_suffix(".cu")
    source.write_text("template <class T> __global__ void k(T* a) { a[threadIdx.x] = a[threadIdx.x + 1]; }")
    assert main(["prove", str(source), "--block", "32", "--entry", "k<float>"]) == 66
    assert "--entry 'k<float>'" in capsys.readouterr().out


def test_a_counterexample_that_shows_nothing_is_no_answer(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The index is loaded: in the launch that is tried no thread writes."""
    kernel.write_text(INDEXED)
    assert main(["prove", str(kernel), "--format", "json"]) == 67
    page = json.loads(capsys.readouterr().out)
    jsonschema.validate(page, schema("consan.proof-1.json"))
    assert (page["schema"], page["answer"], page["counterexample"]) == ("consan.proof/1", "unknown", None)
    assert any("showed no race: consan check" in each["why"] for each in page["reasons"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--assume", "m < 4"], "there is no integer parameter m"),
        (["--assume", "n"], "expected a comparison"),
        (["--assume", "n < b"], "there is no integer parameter b"),
        (["--block", "2000"], "--block"),
    ],
)
def test_what_is_no_question_is_refused(kernel: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    kernel.write_text(OWN)
    assert main(["prove", str(kernel), *words]) == 2
    assert message in capsys.readouterr().err


def test_without_a_solver_the_extra_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "z3", None)
    assert main(["prove", str(tmp_path / "k.ptx"), "--block", "64"]) == 2
    assert "pip install z3-solver" in capsys.readouterr().err


PROGRAM = """
import sys
import cupy
code = r'''
extern "C" __global__ void own(int *y, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = i; }
extern "C" __global__ void folded(int *y, int n) { int i = blockIdx.x * 64 + threadIdx.x; y[i % n] = i; }
'''
y = cupy.zeros(128, "i4")
for name in sys.argv[1:]:
    cupy.RawModule(code=code).get_function(name)((2,), (64,), (y, cupy.int32(128)))
"""


@pytest.mark.parametrize(("words", "status"), [(["own"], 0), (["own", "folded"], 67), ([], 67)])
def test_a_program_is_proven_if_each_kernel_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], status: int
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    monkeypatch.setenv("CONSAN_DEVICE", "cpu")
    assert main(["prove", str(program), *words, "-o", str(tmp_path / "run.json")]) == status
    said = " ".join(capsys.readouterr().out.split())
    assert ("own: proven for all launches" in said) == ("own" in words)
    assert ("67, because there is no proof for all launches of folded" in said) == ("folded" in words)
    assert json.loads((tmp_path / "run.json").read_text())["verdict"] == ("clean" if words else "incomplete")


def test_words_and_shapes_are_for_what_takes_them(kernel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", str(tmp_path / "program.py"), "--block", "64"]) == 2
    assert "a program says how it launches its own" in capsys.readouterr().err
    assert main(["prove", str(kernel), "word"]) == 2
    assert "words are for programs" in capsys.readouterr().err


@pytest.mark.parametrize(("by", "holds"), [(64, True), (60, False)])
def test_a_check_takes_relations_that_its_launch_shows(kernel: Path, tmp_path: Path, by: int, holds: bool) -> None:
    source = kernel.with_suffix(".cu")
    source.write_text(
        'extern "C" __global__ void k(float *a, int by, int n) {\n#pragma unroll 1\nfor (int i = threadIdx.x; i < n; i += 64)\n'
        "a[(long long)blockIdx.x * by + i] = 1;\n}\n"
    )
    words = ["check", str(source), "--grid", "1", "--block", "64", "--arg", "f32[64]=zeros", "--arg", f"i32={by}", "--arg", "i32=64"]
    assert main([*words, "--device", "cpu", "--prove", "20s", "-o", str(tmp_path / "k.json")]) == 0
    (said,) = json.loads((tmp_path / "k.json").read_text())["kernels"]
    assert ("parameter 2 >= parameter 3" in said.get("proof", {}).get("assumptions", ())) == holds
