"""Each kernel of tests/kernels/blackwell with its fault and repaired, and legal patterns that look wrong (clean_*).

By the recording engine: called hooks do not know tensor memory. All of them are assembled; none of them has run on a chip.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twin_file
from planted import plant
from sampled import one_in

import consan
from consan.instrument.record import record
from consan.reports.words import wording
from consan.toolchain.assemble import assemble_cached

KERNELS = Path(__file__).parents[1] / "kernels" / "blackwell"
FILES = sorted(KERNELS.glob("*.cu"))
TWINS = [path for path in FILES if not path.stem.startswith("clean_")]


def _name(path: Path) -> str:
    return path.stem


def _launch(path: Path, racy: bool) -> tuple[Any, dict[str, Any]]:
    spec = twin_file.read(path)
    args = spec.fresh_args()
    kernel = twin_file.kernel(path, racy)
    how: dict[str, Any] = {"smem": spec.smem, "device": "cpu", "engine": "record", "policy": spec.policy}
    report = consan.launch(kernel, spec.grid, spec.block, spec.parameters(args), **how)
    assert {each.engine for each in report.kernels} == {"record"}
    return report, args


def _fits(finding: Any, expected: twin_file.Expectation, spec: twin_file.KernelFile) -> bool:
    lines = {frame.line for access in finding.accesses for frame in (access, *access.inlined) if Path(frame.file).name == spec.path.name}
    return finding.kind in expected.kinds and all(spec.markers[each] & lines for each in expected.markers)


@pytest.mark.parametrize("path", TWINS, ids=_name)
def test_the_racy_twin_is_reported(path: Path) -> None:
    spec = twin_file.read(path)
    report, _ = _launch(path, True)
    for expected in spec.expected:
        assert any(_fits(each, expected, spec) and each.severity == expected.severity for each in report.findings), report.findings
    known = spec.expected + spec.allowed
    others = [each for each in report.findings if not any(_fits(each, expected, spec) for expected in known)]
    assert not others, [(each.kind, each.message) for each in others]
    if "culprit" in spec.markers:
        assert report.findings[0].culprit is not None
        assert {frame.line for frame in report.findings[0].culprit.inlined} & spec.markers["culprit"]


@pytest.mark.parametrize("path", one_in(2, FILES, _name))
def test_the_correct_kernel_is_clean_and_computes_the_result(path: Path) -> None:
    spec = twin_file.read(path)
    report, args = _launch(path, False)
    assert (report.verdict, [each.message for each in report.findings]) == ("clean", [])
    for name in spec.results:
        expected = spec.reference(name)
        np.testing.assert_array_equal(args[name].reshape(expected.shape), expected)


@pytest.mark.parametrize("path", one_in(3, FILES, _name))
def test_the_recorded_kernel_assembles(path: Path) -> None:
    info = assemble_cached(record(twin_file.kernel(path, False).ptx).ptx, twin_file.read(path).arch).info["kernel"]
    assert (info.spill_stores, info.spill_loads) == (0, 0)


def test_who_cannot_wait_at_the_mbarrier_of_a_commit_is_to_be_named_by_it() -> None:
    report, _ = _launch(KERNELS / "pair_commit_to_one.cu", True)
    assert report.findings[0].situation == "tensor-peer-not-waited"
    assert "a thread can wait at the mbarriers of its own CTA only" in report.findings[0].fix


@pytest.mark.parametrize(
    ("old", "new"),
    [("if situation in UNSEEN and", 'if situation == "not-waited" and'), ("return UNSEEN[situation]", 'return "peer-not-waited"')],
)
def test_words_of_copies_do_not_name_the_cta_of_a_commit(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, wording, old, new)
    with pytest.raises(AssertionError):
        test_who_cannot_wait_at_the_mbarrier_of_a_commit_is_to_be_named_by_it()
