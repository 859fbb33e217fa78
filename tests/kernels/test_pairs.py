"""Every kernel of pairs/ as it should be, and with each of its bugs: kernels as they are written, each with several bugs in turn.

A line `// bug N: KIND|KIND what is wrong` of the header says what `-DBUG=N` must be reported as; `clean`: a legal variant; `warn` as the
first word behind the kinds: a warning is enough. With BUG=0 the kernel is correct, and computes what `result:` says.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import twin_file

import consan

FILES = sorted((Path(__file__).parent / "pairs").glob("*.cu"))
SEEDS = range(3)
BY_QUEUE = (
    "launch_control",
    "launch_control_ring",
)  # how many clusters start at once decides whether a bug shows: other schedules have other numbers
_BUG = re.compile(r"// bug (\d+): (\S+) (.*)")


class Variant(NamedTuple):
    """A kernel with one of its bugs. `kinds`: one of these must be found; `clean`: nothing may be."""

    path: Path
    bug: int
    kinds: frozenset[str]
    severities: tuple[str, ...]


def _variants(path: Path) -> list[Variant]:
    found = [_BUG.match(line) for line in path.read_text().splitlines()]
    bugs = [(int(each[1]), frozenset(each[2].split("|")), each[3].split()[0] == "warn") for each in found if each]
    return [Variant(path, 0, frozenset({"clean"}), ())] + [
        Variant(path, bug, kinds, ("error", "warning") if warn else ("error",)) for bug, kinds, warn in bugs
    ]


VARIANTS = [variant for path in FILES for variant in _variants(path)]


@functools.cache
def _kernel(path: Path, bug: int) -> consan.Kernel:
    return consan.Kernel(path, entry="kernel", arch=twin_file.read(path).arch, defines={"BUG": bug})


def verdict_of(variant: Variant, device: str, seed: int) -> tuple[Any, dict[str, Any]]:
    """The report on a variant, and what the kernel has left in its arguments."""
    spec = twin_file.read(variant.path)
    args = spec.fresh_args()
    kernel, values = _kernel(variant.path, variant.bug), spec.parameters(args)
    how = {"explore": 60.0} if variant.kinds != {"clean"} and variant.path.stem in BY_QUEUE and device == "cpu" else {}
    return consan.launch(kernel, spec.grid, spec.block, values, smem=spec.smem, device=device, seed=seed, timeout=60, **how), args


def misses(variant: Variant, report: Any) -> str:
    """What is wrong with the report; empty if nothing is."""
    found = {finding.kind for finding in report.findings if finding.severity in variant.severities}
    if variant.kinds == {"clean"}:
        alarms = [(finding.kind, finding.severity) for finding in report.findings if finding.severity != "note"]
        return "" if report.verdict == "clean" and not alarms else f"{report.verdict}: {alarms} {report.notes}"
    return "" if found & variant.kinds else f"{sorted(variant.kinds)} not among {[(f.kind, f.severity) for f in report.findings]}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: f"{variant.path.stem}-{variant.bug}")
def test_each_bug_is_found_and_nothing_else(variant: Variant, seed: int) -> None:
    report, args = verdict_of(variant, "cpu", seed)
    assert misses(variant, report) == ""
    if variant.bug:
        return
    spec = twin_file.read(variant.path)
    for name in spec.results:
        np.testing.assert_allclose(args[name].reshape(spec.reference(name).shape), spec.reference(name), rtol=1e-5, atol=1e-5)
