"""PTX is parsed once from `consan check` to the report: by the reader of the file, for the passes, and for what a report says of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pipeline_kernels as kernels
import pytest

import consan
from consan.__main__ import main
from consan.instrument.ptx import parser
from consan.session.modules import device as devices


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Counter[str]:
    """How often each text was parsed."""
    counts: Counter[str] = Counter()

    class Counting(parser._Reader):
        def __init__(self, source: parser.Source) -> None:
            counts[source.text] += 1
            super().__init__(source)

    monkeypatch.setattr(parser, "_Reader", Counting)
    monkeypatch.setattr(devices, "DEVICES", {})
    monkeypatch.setenv("CONSAN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return counts


@pytest.mark.parametrize("known", [False, True], ids=["the cache is empty", "the cache has it"])
def test_a_check_with_findings_parses_each_text_once(parsed: Counter[str], known: bool, capsys: pytest.CaptureFixture[str]) -> None:
    Path("k.ptx").write_text(kernels.HEAD + kernels.RACY)
    words = ["check", "k.ptx", "--device", "cpu", "--grid", "1", "--block", "64", "--arg", "u32[64]=zeros", "--arg", "u32=5"]
    for _ in range(1 + known):
        parsed.clear()
        devices.DEVICES.clear()  # as in a new process
        assert main(words) == 66
    assert "data-race" in capsys.readouterr().out
    assert sum(".entry" in text for text in parsed) == 6, "the text, with and without global memory; so with the fix"
    assert set(parsed.values()) == {1}


def test_a_kernel_of_the_python_api_is_parsed_once(parsed: Counter[str]) -> None:
    kernel = consan.Kernel(kernels.HEAD + kernels.RACY, entry="racy")
    assert consan.launch(kernel, 1, 64, [np.zeros(64, np.uint32), 5], device="cpu", shadow_memory=1 << 24).findings
    assert parsed[kernel.ptx] == 1
