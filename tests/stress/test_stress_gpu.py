"""Stress on a GPU: seeded delays in what is assembled, one assembly for all seeds. On a chip where there is one; else the same path up
to the driver, with the virtual machine for a chip that runs the text which would have been assembled.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from stress_support import FLAKY, LAUNCH, PROGRAM, consan, stress, write_kernel

from consan._errors import UsageError
from consan.backends.cpu import LoadedModule
from consan.backends.virtual import VirtualBackend
from consan.instrument import SEED
from consan.session.modules import device as devices
from consan.toolchain import assemble
from consan.triage import run

KERNEL = ["flaky.cu", *LAUNCH]


class Chip(VirtualBackend):
    """Loads as cubins what was given to the assembler, and notes the seed of each launch."""

    device_name, choice = "a chip", "gpu"
    seeded = False
    assembles = True
    modules_kept = None

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.seeds: list[int] = []

    def load_cubin(self, cubin: bytes) -> LoadedModule:
        self.loads.append(cubin.decode())
        return self.load(cubin.decode())

    def launch(self, handle: LoadedModule, *arguments: Any, **options: Any) -> Any:
        with contextlib.suppress(UsageError):  # the form that records has no delays
            address, nbytes = self.symbol(handle, SEED)
            self.seeds.append(int.from_bytes(self.read(address, nbytes), "little"))
        return super().launch(handle, *arguments, **options)


@pytest.fixture
def chip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Chip:
    def assembled(text: str, *_: Any, **__: Any) -> Any:
        return SimpleNamespace(cubin=text.encode(), info={}, warnings=(), log="")

    monkeypatch.setattr(assemble, "assemble_cached", assembled)
    backend = Chip()
    monkeypatch.setitem(devices.DEVICES, ("gpu", None), devices.Device(backend))
    monkeypatch.chdir(tmp_path)
    write_kernel(tmp_path)
    monkeypatch.setattr(run, "_latest", None)  # put back afterwards: it will hold this device
    return backend


def test_one_assembly_serves_all_seeds(chip: Chip) -> None:
    document = stress("--seeds", "4", "--confirm", "1", "--device", "gpu", *KERNEL, out=Path("s.json"))
    assert (document["device"], document["subject"]["device"]) == ("a chip", "gpu")
    assert document["runs"]["with_errors"]["runs"] == 4
    assert len(chip.loads) == 1, "one for all seeds"
    assert chip.loads[0].count("__consan_z2 nanosleep.u32") == 1, "where the kernel starts"
    assert chip.seeds[:4] == [1, 2, 3, 4]


def test_the_delays_stand_in_what_is_assembled(chip: Chip) -> None:
    words = ["--seeds", "2", "--confirm", "0", "--device", "gpu", "--define", "FIXED"]
    stress(*words, *KERNEL, out=Path("s.json"), status=0)
    text = chip.loads[0]
    before = text[: text.index("bar.sync \t0;")].rstrip()
    assert before.endswith("}"), "right before the barrier"
    assert "nanosleep.u32" in before[-200:]


def test_what_a_gpu_did_is_not_reduced(chip: Chip, capfd: pytest.CaptureFixture[str]) -> None:
    stress("--seeds", "2", "--confirm", "0", "--device", "gpu", *KERNEL, out=Path("s.json"))
    for command in (["reduce", "s.json", "--workers", "0"], ["replay", "s.json"]):
        assert consan(*command) == 2
        assert "s.json is of a GPU, whose schedules cannot be repeated: run consan stress --device cpu" in capfd.readouterr().err


@pytest.fixture
def gpu(gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cupy", reason="CuPy is not installed")
    monkeypatch.chdir(tmp_path)
    write_kernel(tmp_path)


@pytest.mark.gpu
def test_a_kernel_on_a_gpu(gpu: None) -> None:
    np.save("right.npy", np.arange(64, dtype=np.int32) ^ 32)
    words = ["--device", "gpu", "--expect", "2=right.npy"]
    document = stress("--seeds", "20", *words, *KERNEL, out=Path("s.json"), status=66)
    assert document["runs"]["ok"] == document["runs"]["with_errors"]["runs"] == 20
    document = stress("--seeds", "20", *words, "--define", "FIXED", *KERNEL, out=Path("s.json"), status=0)
    assert document["runs"]["right"] == 20


@pytest.mark.gpu
def test_delays_show_a_race_that_is_hidden_without_them(gpu: None) -> None:
    """Two warps with a barrier of their own each: a delay before it lets the other one run ahead.

    Shared memory keeps what the launch before has left, which would be the right values: so each one clears it."""
    text = FLAKY.replace("#ifdef", 'asm volatile("bar.sync %0, 32;" :: "r"(1 + t / 32) : "memory");\n#ifdef')
    text = text.replace("32];\n}", "32];\n    __syncthreads();\n    *(volatile int*)&s[t] = -1;\n}")
    assert "= -1" in text
    write_kernel(Path(), "delayed.cu", text)
    document = stress("--seeds", "40", "--device", "gpu", "delayed.cu", *LAUNCH, out=Path("s.json"), status=66)
    assert document["runs"]["wrong"]["runs"] > 0


@pytest.mark.gpu
def test_a_program_on_a_gpu(gpu: None) -> None:
    Path("flaky.py").write_text(PROGRAM)
    document = stress("--seeds", "3", "--device", "gpu", "flaky.py", out=Path("s.json"), status=66)
    assert document["runs"]["with_errors"]["runs"] == 3
