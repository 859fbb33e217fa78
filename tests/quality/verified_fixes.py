"""How many racy twins get a verified fix, and whether the fixes repair the kernels: `python tests/quality/verified_fixes.py [NAME...]`.

A fix that adds whole lines is written into the source, and the racy kernel is compiled and run with it: it must be clean. Other fixes are
counted, and not run. Twins are grouped by why a replay cannot have a fix for them.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "kernels")]

import twin_file  # noqa: E402

import consan  # noqa: E402
from consan.reports.patches import is_patch, patched  # noqa: E402

SEEDS = (0, 1, 2)
UNFIT = {
    "deadlock": "the recorded launch did not end",
    "register-hazard": "found in the text, not in the replay",
    "out-of-bounds": "no synchronisation repairs it",
    "uninitialized-read": "no synchronisation repairs it",
}


def _launch(kernel: Any, spec: twin_file.KernelFile, seed: int = 0) -> Any:
    values = spec.parameters(spec.fresh_args())
    return consan.launch(kernel, spec.grid, spec.block, values, smem=spec.smem, device="cpu", seed=seed, policy=spec.policy)


def _group(report: Any) -> str:
    """Fixed, or why not."""
    kinds = {finding.kind for finding in report.findings}
    if all(finding.verified for finding in report.findings):
        return "verified"
    if any(kernel.engine == "inline" for kernel in report.kernels):
        return "unfit: takes called hooks"
    if any(finding.situation.startswith("divergent") or "divergen" in finding.message for finding in report.findings):
        return "unfit: the behaviour is undefined from the divergence on"
    if unfit := next((UNFIT[kind] for kind in UNFIT if kind in kinds), ""):
        return f"unfit: {unfit}"
    return "some of its findings" if any(finding.verified for finding in report.findings) else "none"


def _patched(path: Path, spec: twin_file.KernelFile, report: Any) -> str:
    """What the kernel with its fixes written into the source does."""
    fixes = [finding.verified for finding in report.findings]
    if not all(is_patch(fix, str(path)) for fix in fixes):
        return "not whole lines"
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        copy = Path(folder) / path.name
        text = patched(path.read_text(), fixes).replace('#include "../', '#include "../../')
        copy.write_text(text)
        kernel = consan.Kernel(copy, entry="kernel", arch=spec.arch, defines={"RACY": 1})
        verdicts = {_launch(kernel, spec, seed).verdict for seed in SEEDS}
    return "clean" if verdicts == {"clean"} else f"WRONG: {', '.join(sorted(verdicts))}"


def main(names: list[str]) -> None:
    """Print a line for each twin, and the totals."""
    groups: Counter[str] = Counter()
    applied: Counter[str] = Counter()
    for path in sorted((ROOT / "tests" / "kernels" / "twins").glob("*.cu")):
        spec = twin_file.read(path)
        if (names and path.stem not in names) or "cpu" not in spec.backends:
            continue
        report = _launch(twin_file.kernel(path, True), spec)
        group = _group(report)
        ran = _patched(path, spec, report) if group == "verified" else ""
        groups[group] += 1
        applied[ran.partition(":")[0]] += bool(ran)
        print(f"{path.stem:<42} {group}{f'; {ran}' if ran else ''}", flush=True)
    fit = sum(count for group, count in groups.items() if not group.startswith("unfit"))
    print(f"\n{groups['verified']} of {sum(groups.values())} racy twins, {groups['verified']} of the {fit} that a replay can repair")
    for counter in (groups, applied):
        print("\n".join(f"{count:5} {name}" for name, count in counter.most_common() if name))


if __name__ == "__main__":
    main(sys.argv[1:])
