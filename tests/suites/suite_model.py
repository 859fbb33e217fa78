"""A labelled kernel, how to launch it, and how consan's verdict stands to the label.

A case is one launch of one kernel: `label` is what its suite says of it ("racy" or "clean"), `about` what the label speaks of. A racy
kernel of which that is reported is a true positive (TP), one of which it is not a false negative (FN); a clean one that is reported
for anything is a false positive (FP), else a true negative (TN). Reported means a finding of severity error or warning. A launch without
findings that is `incomplete`, or that failed, is `not judged`.

The oracle (`tests/oracle`) judges the plain kernel too where it is asked: it knows nothing of labels nor of consan's shadow memory, and
says who is right where the two differ. It does not see clusters.
"""

from __future__ import annotations

import collections
import functools
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import consan
from consan._errors import ConsanError
from consan.launching.arguments import parse_args
from consan.session.modules.device import shared_device
from consan.toolchain.nvrtc import compile_ptx

sys.path.append(str(Path(__file__).parents[1] / "oracle"))

from oracle_run import oracle

RACY, CLEAN = "racy", "clean"
RACES = ("data-race", "global-race", "scope", "missing-wait")
# What labels may be about -> whether a kind of finding bears the label "racy" out.
BEARS_OUT: dict[str, Callable[[str], bool]] = {
    "shared memory": lambda kind: kind != "uninitialized-read",
    "global memory": lambda kind: kind in RACES,
    "bounds": lambda kind: kind == "out-of-bounds",
}
COLUMNS = ("TP", "FN", "FP", "TN", "not judged")
VERDICTS = (CLEAN, "incomplete", "violations")  # the worst one last
TIMEOUT = 60.0  # seconds: kernels of the suites may spin


@functools.lru_cache(maxsize=1)
def _ptx(file: str, arch: str, defines: tuple[tuple[str, str], ...]) -> str:
    text = Path(file).read_text()
    if file.endswith(".ptx"):
        return text
    return compile_ptx(text, name=file, arch=arch, defines=dict(defines), include_dirs=(str(Path(file).parent),)).ptx


@dataclass(frozen=True)
class Case:
    """One launch. `args` as for `consan check --arg`; `group` is the line of the table that counts it."""

    group: str
    name: str
    file: str
    entry: str
    grid: int
    block: int
    args: tuple[str, ...]
    label: str
    about: str = "shared memory"
    arch: str = "sm_80"
    smem: int = 0
    defines: tuple[tuple[str, str], ...] = ()
    seeds: int = 1  # schedules: where threads take a lock, or an index, in any order, only some of them show what is wrong

    def __post_init__(self) -> None:
        assert self.label in (RACY, CLEAN), self
        assert self.about in BEARS_OUT, self

    def kernel(self) -> consan.Kernel:
        """The kernel, compiled."""
        return consan.Kernel(_ptx(self.file, self.arch, self.defines), self.entry)

    def parameters(self) -> list[Any]:
        """Fresh arguments: arrays and the bytes of values."""
        return [spec.materialise(0) for spec in parse_args(self.args)]


@dataclass
class Outcome:
    """What consan, and the oracle where asked, say of a case."""

    case: Case
    verdict: str = ""
    findings: collections.Counter[str] = field(default_factory=collections.Counter)
    oracle: str = ""
    why: str = ""
    seconds: float = 0.0

    @property
    def column(self) -> str:
        """Where the case counts."""
        if not self.findings and self.verdict != CLEAN:
            return "not judged"
        if self.case.label == CLEAN:
            return "FP" if self.findings else "TN"
        return "TP" if any(BEARS_OUT[self.case.about](what.split()[0]) for what in self.findings) else "FN"

    @property
    def strange(self) -> bool:
        """Whether a person has to look: consan and the label differ, or consan and the oracle."""
        differs = self.oracle not in ("", "racy" if self.findings else "clean")
        return differs or self.column in ("FN", "FP", "not judged")

    def line(self) -> str:
        """The case as a row of the long table."""
        found = ", ".join(f"{what} x{n}" if n > 1 else what for what, n in sorted(self.findings.items()))
        cells = (self.case.group, self.case.name, f"{self.case.label}: {self.case.about}", found or self.verdict, self.oracle, self.column)
        return "| " + " | ".join(cells) + " |" + (f" {self.why}" if self.why else "")

    def add(self, report: Any) -> None:
        """What one schedule showed."""
        found = [f for f in report.findings if f.severity in ("error", "warning")]
        self.findings |= collections.Counter(" ".join(filter(None, (f.kind, f.hazard, f.severity))) for f in found)
        if not self.verdict or VERDICTS.index(report.verdict) > VERDICTS.index(self.verdict):
            self.verdict, self.why = report.verdict, "; ".join(report.incomplete)


def judge(case: Case, *, with_oracle: bool = False) -> Outcome:
    """Launch a case through consan on the virtual machine, and through the oracle if asked."""
    outcome, start = Outcome(case), time.monotonic()
    outer: dict[str, Any] = {"engine": "record", "global_memory": "on"} if case.about == "global memory" else {"engine": "inline"}
    try:
        for seed in range(case.seeds):
            shared_device("cpu").modules.clear()  # each program begins with variables as they are initialised
            kernel, arguments = case.kernel(), case.parameters()
            how: dict[str, Any] = {"smem": case.smem, "device": "cpu", "seed": seed, "timeout": TIMEOUT, **outer}
            outcome.add(consan.launch(kernel, case.grid, case.block, arguments, **how))
        if with_oracle:
            options = {"smem": case.smem, "global_memory": case.about == "global memory"}
            verdicts = [oracle(kernel, case.grid, case.block, case.parameters(), seed=seed, **options) for seed in range(case.seeds)]
            outcome.oracle = CLEAN if all(verdict.clean and not verdict.pairs for verdict in verdicts) else RACY
    except ConsanError as error:
        outcome.verdict, outcome.why = "failed", " ".join(str(error).split()[:30])
    outcome.seconds = time.monotonic() - start
    return outcome


def judge_all(cases: Iterable[Case], *, with_oracle: bool = False) -> Iterator[Outcome]:
    """All of them in order; decoded modules are let go, 50 MB each."""
    for case in cases:
        yield judge(case, with_oracle=with_oracle)
        shared_device("cpu").modules.clear()


def read_cases(path: Path) -> list[Case]:
    """Cases from a JSON list of objects with `Case`'s fields; files are relative to the list."""
    rows = json.loads(path.read_text())
    for row in rows:
        row["file"] = str(path.parent / row["file"])
        row["args"] = tuple(row["args"])
        row["defines"] = tuple(sorted(row.get("defines", {}).items()))
    return [Case(**row) for row in rows]


def summary(outcomes: Iterable[Outcome]) -> str:
    """One row a group, and the sum."""
    counts: dict[str, collections.Counter[str]] = {}
    for outcome in outcomes:
        counts.setdefault(outcome.case.group, collections.Counter())[outcome.column] += 1
    counts["all"] = sum(counts.values(), collections.Counter())
    head = ["| kernels | launches | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
    rows = [f"| {group} | {row.total()} | " + " | ".join(str(row[c]) for c in COLUMNS) + " |" for group, row in counts.items()]
    return "\n".join(head + rows)
