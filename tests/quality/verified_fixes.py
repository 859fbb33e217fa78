"""How many racy twins get a verified fix, and whether the fixes repair the kernels: `python tests/quality/verified_fixes.py [NAME...]`.

Notes need no fix, and none is sought for them. The search has its processor time, however busy the machine is.

A fix that adds whole lines is written into the source, another one into the PTX, and the racy kernel is run with it: it must be clean in
20 schedules, and for the oracle, as far as that sees what is at stake. Where the replay has no fix, runs of the changed kernel are tried.
Twins are grouped by why a replay cannot have a fix for them. What a repaired kernel leaves is compared with the header of the twin.
"""

from __future__ import annotations

import functools
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("kernels", "oracle")]

import numpy as np  # noqa: E402
import twin_file  # noqa: E402
from oracle_run import oracle  # noqa: E402
from test_twins_oracle import NOT_SEEN  # noqa: E402

import consan  # noqa: E402
from consan.reports.source.patches import fixed  # noqa: E402
from consan.reports.source.source_patches import patched  # noqa: E402
from consan.session.asking.reruns import CudaSource, Ran, Reruns  # noqa: E402
from consan.session.executing.recording import Fixes  # noqa: E402

SEEDS = range(20)
# The words of a report on a race that no synchronisation repairs: the layout is wrong, or a value is not there.
SAYS = {
    "an overlap": r"bytes of its own|an element of its own|different bytes",
    "a lane that is not there": r"let all 32 lanes of the warp come to",
}
UNFIT = {
    "fault": "the program ends itself",
    "deadlock": "the recorded launch did not end",
    "register-hazard": "found in the text, not in the replay",
    "out-of-bounds": "no synchronisation repairs it",
    "uninitialized-read": "no synchronisation repairs it",
}


def _launch(kernel: Any, spec: twin_file.KernelFile, seed: int = 0, args: Any = None) -> Any:
    values = spec.parameters(spec.fresh_args() if args is None else args)
    return consan.launch(kernel, spec.grid, spec.block, values, smem=spec.smem, device="cpu", seed=seed, policy=spec.policy)


def _results(kernel: Any, spec: twin_file.KernelFile) -> str:
    """Whether a repaired kernel leaves what the header says of the repaired twin."""
    args = spec.fresh_args()
    _launch(kernel, spec, args=args)
    references = {name: spec.reference(name) for name in spec.results}
    wrong = [name for name, right in references.items() if not np.allclose(args[name].reshape(right.shape), right, equal_nan=True)]
    return f"; other values in {', '.join(wrong)} than the twin" if wrong else ""


def _counting(report: Any) -> list[Any]:
    return [each for each in report.findings if each.severity != "note"]


def _group(report: Any) -> str:
    """Fixed, or why not."""
    found = _counting(report)
    kinds = {finding.kind for finding in found}
    if not found:
        return "unfit: notes"
    if all(finding.verified for finding in found):
        return "verified"
    if any(kernel.engine == "inline" for kernel in report.kernels):
        return "unfit: takes called hooks"
    if any(finding.situation.startswith("divergent") or "divergen" in finding.message for finding in found):
        return "unfit: the behaviour is undefined from the divergence on"
    if unfit := next((UNFIT[kind] for kind in UNFIT if kind in kinds), ""):
        return f"unfit: {unfit}"
    if said := next((what for what, words in SAYS.items() if any(re.search(words, each.fix) for each in found if not each.verified)), ""):
        return f"unfit: no synchronisation repairs it, and the report names {said}"
    return "some of its findings" if any(finding.verified for finding in found) else "none"


def _patched(path: Path, spec: twin_file.KernelFile, report: Any) -> str:
    """What the kernel with its fixes does: written into the source where they are whole lines, else into the PTX."""
    fixes = [finding.verified for finding in _counting(report)]
    source = patched(path.read_text(), fixes, str(path))
    if not source:
        return _edited(path, spec, fixes)
    return f"source: {_verdicts(path, consan.Kernel(_compiled(path, spec, source), entry='kernel'), spec)}"


def _compiled(path: Path, spec: twin_file.KernelFile, source: str) -> str:
    """The PTX of another text of a racy twin, with the places of the twin itself."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        copy = Path(folder) / path.name
        copy.write_text(f'#line 1 "{path}"\n' + source.replace('#include "../', '#include "../../'))
        return str(consan.Kernel(copy, entry="kernel", arch=spec.arch, defines={"RACY": 1}).ptx)


def _run(entry: str, spec: twin_file.KernelFile, ptx: str, seed: int) -> Any:
    return Ran(_launch(consan.Kernel(ptx, entry=entry), spec, seed))


def _edited(path: Path, spec: twin_file.KernelFile, fixes: list[Any]) -> str:
    if not all(fix.edits for fix in fixes):
        return "neither lines nor PTX"
    plain = twin_file.kernel(path, True)
    try:
        kernel = consan.Kernel(fixed(plain.ptx, fixes), entry=plain.entry)
    except consan.UsageError as error:
        return f"WRONG: {error}"
    return f"PTX: {_verdicts(path, kernel, spec)}"


def _verdicts(path: Path, kernel: Any, spec: twin_file.KernelFile) -> str:
    verdicts = {_launch(kernel, spec, seed).verdict for seed in SEEDS}
    if verdicts != {"clean"}:
        return f"WRONG: {', '.join(sorted(verdicts))}"
    if path.stem in NOT_SEEN:
        return f"clean{_results(kernel, spec)}; not the oracle's"
    judged = oracle(kernel, spec.grid, spec.block, spec.parameters(spec.fresh_args()), smem=spec.smem, global_memory=True)
    return f"clean{_results(kernel, spec)}, also for the oracle" if judged.clean else f"clean; the oracle has {judged}"


def main(names: list[str]) -> None:
    """Print a line for each twin, and the totals."""
    groups: Counter[str] = Counter()
    applied: Counter[str] = Counter()
    for path in sorted((ROOT / "tests" / "kernels" / "twins").glob("*.cu")):
        spec = twin_file.read(path)
        if (names and path.stem not in names) or "cpu" not in spec.backends:
            continue
        plain = twin_file.kernel(path, True)
        report = _launch(plain, spec)
        group = _group(report)
        if group != "verified":
            run = functools.partial(_run, plain.entry, spec)
            source = CudaSource(str(path), path.read_text(), functools.partial(_compiled, path, spec))
            with mock.patch.object(Fixes, "of", return_value={}):
                report = Reruns(plain.module, run, spec.block, (1, 1, 1), clock=lambda: 0.0, source=source).confirmed(report)
            found = _counting(report)
            if found and all(finding.verified for finding in found):
                ran = _patched(path, spec, report)
                print(f"{path.stem:<42} verified by a run; {group}; {ran}", flush=True)
                groups["verified by a run"] += 1
                applied[ran] += 1
                continue
        ran = _patched(path, spec, report) if group == "verified" else ""
        groups[group] += 1
        applied[ran] += bool(ran)
        print(f"{path.stem:<42} {group}{f'; {ran}' if ran else ''}", flush=True)
    fit = sum(count for group, count in groups.items() if not group.startswith("unfit"))
    print(f"\n{groups['verified']} of {sum(groups.values())} racy twins, {groups['verified']} of the {fit} that a replay can repair")
    for counter in (groups, applied):
        print("\n".join(f"{count:5} {name}" for name, count in counter.most_common() if name))


if __name__ == "__main__":
    main(sys.argv[1:])
