"""Native programs with two devices on a machine without a GPU: work of two devices is compared as that of two streams is (R-RK6)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from planted import plant

from consan.libcuda import driver, memory_calls
from consan.native.program import NativeProgram
from consan.native.run import run_native
from consan.reports.model import Report
from consan.session.comparing import program_streams
from consan.session.planning.options import SessionOptions

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
BETWEEN, WITHIN = "no-device-edge", "no-stream-edge"


def compiled(folder: Path, *words: str) -> Path:
    made = ["nvcc", "-arch=compute_90", "-lineinfo", "-cudart", "shared", "-o", "program", *words, str(HERE / "devices_program.cu")]
    subprocess.run(made, check=True, capture_output=True, cwd=folder)
    return folder / "program"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("devices"))


def ran(program: Path, *words: str, gpus: int = 2) -> tuple[int, Report]:
    status, report, _ = run_native(NativeProgram(str(program), (program.name, *words)), SessionOptions.of({"device": "cpu", "gpus": gpus}))
    return status, report


# By program: what is found, and its steps.
PROGRAMS: dict[str, tuple[str, str]] = {
    "a kernel reads what the peer writes": (BETWEEN, "fill device1 take-peer"),
    "an event of the peer": ("", "fill record device1 wait take-peer"),
    "an event that is recorded too early": (BETWEEN, "record fill device1 wait take-peer"),
    "an event that nobody waits for": (BETWEEN, "fill record device1 take-peer"),
    "the host waits for the device": ("", "fill sync device1 take-peer"),
    "the host waits for the other device": (BETWEEN, "fill device1 sync take-peer"),
    "the host waits for the stream": ("", "fill sync-stream device1 take-peer"),
    "the host waits for the event": ("", "fill record device1 sync-event take-peer"),
    "a kernel writes what the peer reads": (BETWEEN, "take device1 fill-peer"),
    "both write": (BETWEEN, "fill device1 fill-peer"),
    "both read": ("", "take device1 take-peer"),
    "each its own memory": ("", "fill device1 fill"),
    "default streams of two devices": (BETWEEN, "fill-default device1 take-peer-default"),
    "a copy to the peer, which writes": (BETWEEN, "copy-to-peer device1 fill"),
    "the same behind an event": ("", "copy-to-peer record device1 wait fill"),
    "a copy from the peer, which writes": (BETWEEN, "fill device1 copy-from-peer"),
    "a copy behind what the peer writes": ("", "fill record device1 wait copy-from-peer"),
    "a copy without a stream": ("", "fill copy-alone device1 take"),
    "the host reads what the other device writes": (BETWEEN, "fill-peer device1 read"),
    "the host reads behind a wait": ("", "fill-peer sync-stream device1 read"),
    "variables of two devices": ("", "add device1 add"),
    "variables of one device": ("", "add sync device1 add device0 add"),
}
QUICK = ("a kernel reads what the peer writes", "an event of the peer", "the host waits for the other device", "variables of two devices",
         "a copy to the peer, which writes", "default streams of two devices")  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in PROGRAMS])
def test_two_devices(name: str, program: Path) -> None:
    found, steps = PROGRAMS[name]
    status, report = ran(program, *steps.split())
    assert status == 0, str(report)
    assert {each.situation for each in report.findings} == ({found} if found else set()), str(report)
    assert report.verdict == ("violations" if found else "clean"), str(report)


def test_the_report_names_the_devices(program: Path) -> None:
    _, report = ran(program, *PROGRAMS["a kernel reads what the peer writes"][1].split())
    text = " ".join(str(report).split())
    assert "of GPU 1 does not wait for stream" in text
    assert "of GPU 0: fill and take touch the same bytes" in text


@pytest.mark.slow
def test_managed_variables_and_others_of_two_devices(tmp_path: Path) -> None:
    """The ones are those of all devices, the others of each one: a module here has both for all."""
    managed = compiled(tmp_path, "-DMANAGED")
    _, report = ran(managed, "add", "device1", "add")
    assert (report.verdict, report.findings) == ("incomplete", ()), str(report)
    assert ran(managed, "add", "sync", "add")[1].verdict == "clean"


def test_there_is_one_device_where_nobody_asks_for_more(program: Path) -> None:
    assert ran(program, gpus=1)[0] == 3


FAULTS = {
    "the current device": (driver, "self.session.streams.places.use(self.device)", "pass", "default streams of two devices"),
    "all devices are waited for": (program_streams, "self.over_on(self.here)", "self.concurrent.timeline.everything",
                                   "the host waits for the other device"),
    "a copy without a stream": (memory_calls, "current.wait(each)", "pass", "a copy without a stream"),
}  # fmt: skip


@pytest.mark.parametrize("fault", [pytest.param(each, marks=pytest.mark.slow if number else ()) for number, each in enumerate(FAULTS)])
def test_a_planted_fault(fault: str, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, name = FAULTS[fault]
    found, steps = PROGRAMS[name]
    plant(monkeypatch, module, old, new)
    _, report = ran(program, *steps.split())
    assert {each.situation for each in report.findings} != ({found} if found else set())
