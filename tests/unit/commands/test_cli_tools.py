"""`consan report`, `explain`, `doctor` and `ptx`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import report_samples as samples
from packaging.requirements import Requirement

from consan import late
from consan.__main__ import main
from consan.commands import doctor
from consan.native.build import INTERPOSER
from consan.reports.formats import text
from consan.reports.formats.json_format import dumps, loads
from consan.toolchain import find
from consan.toolchain.extras import install

KERNEL = """extern "C" __global__ void k(const float* in, float* out) {
    __shared__ float tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
"""

needs_nvrtc = pytest.mark.skipif(find.locate(find.NVRTC) is None, reason="NVRTC is not installed")


@pytest.fixture
def run_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_text(dumps(samples.violations()))
    return "run.json"


def test_report_renders_a_stored_run(run_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", run_file]) == 0
    assert capsys.readouterr().out == text.render(samples.violations(), stored=run_file)


def test_report_as_json_is_the_same_run(run_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", run_file, "--format", "json"]) == 0
    assert loads(capsys.readouterr().out) == samples.violations()


def test_report_to_a_file(run_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", run_file, "-o", "out.txt"]) == 0
    assert Path("out.txt").read_text() == text.render(samples.violations())
    assert capsys.readouterr().out == "verdict: violations, 4 findings; text report in out.txt\n"


@pytest.mark.parametrize("content", ["", "{}", '{"schema": "consan.report/9"}', "\x00", "[1]"])
def test_report_of_something_else(content: str, run_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.json").write_text(content)
    assert main(["report", "x.json"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("consan: error: x.json is not ")
    assert err.count("\n") == 1


def test_a_source_in_latin_1_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_bytes(b"// caf\xe9\n__global__ void k(float* x) { x[threadIdx.x] = 1; }\n")
    assert main(["check", "k.cu", "--device", "cpu", "--grid", "1", "--block", "32", "--arg", "f32[32]=zeros"]) == 0


def test_a_misaligned_access_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text("__global__ void k(float* x, float4* y) { y[0] = *(float4*)(x + 10 * (threadIdx.x + 1)); }\n")
    launch = ["--device", "cpu", "--grid", "1", "--block", "1", "--arg", "f32[64]=zeros", "--arg", "f32[64]=zeros"]
    assert main(["check", "k.cu", *launch]) == 66
    shown = " ".join(capsys.readouterr().out.split())
    assert "is misaligned: the address is 8 bytes beyond a multiple of 16" in shown
    assert "larger" not in shown


def test_report_of_a_binary_file(run_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.json").write_bytes(b"\xff\xfe\x00")
    assert main(["report", "x.json"]) == 2
    assert capsys.readouterr().err == "consan: error: x.json is not a text file\n"


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    assert "missing-wait" in capsys.readouterr().out
    assert main(["explain", "missing-wait"]) == 0
    assert "__pipeline_wait_prior(0)" in capsys.readouterr().out


def test_doctor_describes_every_part(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CONSAN_SEED", "7")
    status = main(["doctor"])
    out = capsys.readouterr().out
    assert status == (0 if find.locate(find.NVRTC) else 2)
    sections = ["versions", "devices", "backends", "toolchain", "adapters", "shadow memory", "recording engine"]
    sections += ["other programs", "cache", "environment", "configuration"]
    assert [line for line in out.splitlines() if not line.startswith(" ")] == sections
    for name in ("python", "numpy", "cupy", "driver", "nvrtc", "trace memory", "CONSAN_SEED"):
        assert f"  {name} " in out


def test_doctor_lists_devices_and_their_peers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = [doctor.Gpu("H100", 80 << 30, (1,)), doctor.Gpu("H100", 80 << 30, (0, 2)), doctor.Gpu("L4", 24 << 30)]
    monkeypatch.setattr(doctor, "gpus", lambda: ("CUDA 13.0", found))
    main(["doctor"])
    lines = [line.split("ok")[-1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  GPU ")]
    assert lines == ["H100, 80 GiB; reaches the memory of GPU 1", "H100, 80 GiB; reaches the memory of GPU 0, 2", "L4, 24 GiB"]


class ThreeDevices:
    """A driver of three devices: 0 and 1 reach each other, 2 reaches 0 and is reached by none. A query of device 1 about 2 fails."""

    reaches = ((0, 1), (1, 0), (1, 2), (2, 0))

    def cuInit(self, _: int) -> int:
        return 0

    def cuDriverGetVersion(self, _: Any) -> int:
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 3
        return 0

    def cuDeviceGet(self, device: Any, index: int) -> int:
        device._obj.value = 10 + index
        return 0

    def cuDeviceGetName(self, name: Any, _: int, device: Any) -> int:
        name.value = f"GPU of handle {device.value}".encode()
        return 0

    def cuDeviceTotalMem_v2(self, memory: Any, _: Any) -> int:
        memory._obj.value = 80 << 30
        return 0

    def cuDeviceCanAccessPeer(self, able: Any, device: Any, peer: Any) -> int:
        pair = device.value - 10, peer.value - 10
        able._obj.value = pair in self.reaches
        return int(pair == (1, 2))


def test_doctor_queries_the_driver_for_each_pair(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(doctor.ctypes, "CDLL", lambda _: ThreeDevices())
        found = doctor.gpus()[1]
    monkeypatch.setattr(doctor, "gpus", lambda: ("CUDA 13.0", found))
    main(["doctor"])
    lines = [line.split("ok")[-1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  GPU ")]
    assert lines == [
        "GPU of handle 10, 80 GiB; reaches the memory of GPU 1",
        "GPU of handle 11, 80 GiB; reaches the memory of GPU 0",
        "GPU of handle 12, 80 GiB; reaches the memory of GPU 0",
    ]


def test_doctor_says_how_to_get_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(find, "locate", lambda library: None)
    monkeypatch.setattr(find, "ptxas", lambda: None)
    assert main(["doctor"]) == 2
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  nvrtc")]
    assert lines
    assert "missing" in lines[0]
    assert install("cpu") in lines[0]


def _advice(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """All that doctor advises on a machine that has nothing."""
    monkeypatch.setattr(find, "locate", lambda library: None)
    monkeypatch.setattr(find, "ptxas", lambda: None)
    monkeypatch.setattr(doctor.metadata, "version", lambda name: (_ for _ in ()).throw(doctor.metadata.PackageNotFoundError(name)))
    monkeypatch.setattr(late.recording, "describe", lambda memory: ("", ""))
    monkeypatch.setattr(type(INTERPOSER), "origin", lambda library: "")
    monkeypatch.setattr(doctor.os, "access", lambda *_: False)
    monkeypatch.setenv("CONSAN_DEVISE", "gpu")
    assert main(["doctor"]) == 2
    missing = [line for line in capsys.readouterr().out.splitlines() if "  missing  " in line]
    return [line.rpartition(" - ")[2] for line in missing]


def test_what_doctor_advises_can_be_pasted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Each piece of advice is one command: of the shell, or of pip with requirements that are written as pip reads them."""
    advice = _advice(monkeypatch, capsys)
    assert {line.split()[0] for line in advice} == {"pip", "export", "unset"}
    for line in advice:
        done = subprocess.run(["bash", "-uec", f"pip() {{ printf '%s\\n' \"$@\"; }}; {line}"], capture_output=True, text=True, check=True)
        words = done.stdout.splitlines()
        if line.startswith("pip"):
            assert words[0] == "install"
            assert all(Requirement(word).name for word in words[1:])


def test_doctor_survives_a_probe_that_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> object:
        raise OSError("no such device")

    monkeypatch.setattr(doctor, "PROBES", (doctor.PROBES[0], broken))
    assert main(["doctor"]) == 2
    assert "OSError: no such device" in capsys.readouterr().out


def test_doctor_lists_misspelt_variables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CONSAN_DEVISE", "gpu")
    main(["doctor"])
    assert "CONSAN_DEVISE" in capsys.readouterr().out


@needs_nvrtc
@pytest.mark.parametrize(
    ("view", "parts"),
    [
        ("sites", ["st.shared", "ld.shared", "k.cu:3:", "k.cu:5:", "write shared"]),
        ("instrumented", [".visible .entry k(", "__consan_ctl"]),
        ("unmodelled", ["everything is modelled"]),
        ("stats", ["function", "k         entry  2"]),
    ],
)
def test_ptx_views(
    view: str, parts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(KERNEL)
    assert main(["ptx", "k.cu", "--show", view, "-o", "out.txt"]) == 0
    out = Path("out.txt").read_text()
    for part in parts:
        assert part in out
    assert capsys.readouterr().out == "written: out.txt\n"


@needs_nvrtc
def test_ptx_lists_what_is_not_modelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.ptx"
    body = "    tcgen05.wait::ld.sync.aligned;\n    ret;\n"
    file.write_text(f".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k() {{\n{body}}}\n")
    assert main(["ptx", str(file), "--show", "unmodelled"]) == 0
    _header, line = capsys.readouterr().out.splitlines()
    assert line.split() == ["tcgen05.wait::ld.sync.aligned", "5", "k"]


@needs_nvrtc
def test_host_code_with_headers_of_the_host_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.cu"
    kernel = "__shared__ T tile[64];\n  tile[threadIdx.x] = x[threadIdx.x];\n  *out = std::max(float(tile[63 - threadIdx.x]), -INFINITY);\n"
    host = "torch::Tensor run(torch::Tensor x) { k<float><<<1, 64>>>(x.data_ptr<float>(), nullptr); return x; }\n"
    file.write_text(f"#include <torch/extension.h>\n{host}template <class T> __global__ void k(const T *x, float *out) {{\n  {kernel}}}\n")
    launch = ["--grid", "1", "--block", "64", "--arg", "f16[64]=zeros", "--arg", "f32[1]=zeros"]
    assert main(["check", str(file), "--entry", "k<at::Half>", *launch, "--device", "cpu", "--format", "short"]) == 66
    assert "k.cu:6:3: " in capsys.readouterr().out


@needs_nvrtc
def test_cuda_that_does_not_compile_shows_the_compilers_own_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.cu"
    file.write_text("__global__ void k() { nonsense; }\n")
    assert main(["check", str(file), "--grid", "1", "--block", "1", "--device", "cpu"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"consan: error: {file} does not compile:")
    assert f'{file}:1: error: identifier "nonsense" is undefined' in err


def test_the_stored_example_is_json(run_file: str) -> None:
    assert json.loads(Path(run_file).read_text())["schema"] == "consan.report/1"


@pytest.mark.parametrize("more", ["", ', "failure": 5', ', "subject": [], "decisions": 5, "summary": 7, "seeds": [[1]]'])
@pytest.mark.parametrize("schema", ["consan.schedule/1", "consan.stress/1"])
def test_a_made_up_document_of_triage_is_bad_input(schema: str, more: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "made.json"
    file.write_text(f'{{"schema": "{schema}"{more}}}')
    assert main(["report", str(file)]) == 2
    assert f"made.json is not a valid {schema}: " in capsys.readouterr().err


def test_deep_nesting_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "deep.json"
    file.write_text(100_000 * "[" + 100_000 * "]")
    assert main(["report", str(file)]) == 2
    assert "deep.json is not a stored run: its values are nested too deeply" in capsys.readouterr().err
