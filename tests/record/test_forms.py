"""A launch assembles and loads the form of its module that it takes, and no other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import consan
from consan.backends.virtual import VirtualBackend
from consan.session.executing import loading

NAME = "copies_of_test_forms"
SOURCE = f"""
extern "C" __global__ void {NAME}(int* data, int from) {{ int at = blockIdx.x * 32 + threadIdx.x; data[at] = data[from + at]; }}
"""
WORDS = 4096


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are assembled, and those that are loaded, for a device that wants machine code: here the text serves as such.

    The patches are those of the process: a thread that checks a launch of an earlier test may assemble its own kernel meanwhile.
    """
    steps = list[str]()

    def note(step: str, text: str) -> None:
        if NAME in text:
            steps.append(step)

    def assembled(_: str, recorded: str, __: str) -> Any:
        note("assembled", recorded)
        return SimpleNamespace(cubin=recorded.encode())

    def loads(backend: VirtualBackend, cubin: bytes) -> Any:
        note("loaded", cubin.decode())
        return backend.load(cubin.decode(), name=NAME)

    monkeypatch.setattr(VirtualBackend, "assembles", True)
    monkeypatch.setattr(VirtualBackend, "load_cubin", loads)
    monkeypatch.setattr(loading, "assemble_cached", lambda *_: None)
    monkeypatch.setattr(loading, "assemble_recorded", assembled)
    return steps


@pytest.mark.parametrize(("offset", "proven"), [(128, True), (127, False)])
def test_one_form_is_made(made: list[str], offset: int, proven: bool) -> None:
    kernel = consan.Kernel(SOURCE, arch="sm_80")
    report = consan.launch(kernel, 4, 32, [np.zeros(WORDS, np.int32), np.int32(offset)], device="cpu", engine="record", global_memory="on")
    assert (report.kernels[0].global_proven > 0, report.verdict) == (proven, "clean" if proven else "violations")
    assert made == ["assembled", "loaded"]


def test_a_second_form_is_made_where_a_launch_needs_it(made: list[str]) -> None:
    text = SOURCE.replace(NAME, f"{NAME}_again")  # the device keeps forms that an earlier test has made
    kernel, data = consan.Kernel(text, arch="sm_80"), np.zeros(WORDS, np.int32)
    with consan.check(device="cpu", engine="record", global_memory="on") as block:
        for offset in (128, 128, 127, 128):
            consan.launch(kernel, 4, 32, [data, np.int32(offset)])
    assert [(each.launches, each.global_proven) for each in block.report.kernels] == [(4, 3 * 256)]
    assert made == ["assembled", "loaded"] * 2
