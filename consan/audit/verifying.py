"""`consan.audit.verify`: one source to one verdict, for those who train models or search for kernels.

Each thread that calls it uses a server process of a pool; the source runs in a process of its own, with limits (child/limits.py says what
is contained). The score rewards what was shown: a source that no launch reached, or that was not judged to its end, gets nothing for
results.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from consan._errors import UsageError
from consan.audit import rows
from consan.audit.files import launches_of, text_of
from consan.audit.rows import FileResult, LaunchAnswers, RowFinding
from consan.audit.runner import SERVERS, AuditRequest
from consan.dataclass import dataclass
from consan.reports.model import CLEAN, INCOMPLETE, VIOLATIONS

_SCORES: Final = {
    CLEAN: 1.0,
    rows.GUESSED[CLEAN]: 0.25,
    INCOMPLETE: 0.25,
    rows.GUESSED[VIOLATIONS]: 0.15,
    rows.SMALLER: 0.15,
    VIOLATIONS: 0.2,
    rows.WRONG: 0.1,
    rows.TIMED_OUT: 0.05,
    rows.CRASHED: 0.05,
    rows.NOT_REACHED: 0.0,
    rows.NOT_COMPILED: 0.0,
}
"""The score of the gravest row: a kernel with a race, which ran, is above one with wrong results, and that is above what did not run."""
_STARTUP: Final = 60.0  # seconds: building host code is not the source's own time


@dataclass(frozen=True)
class Verdict:
    """The facts about a source. `score`: 0 to 1. `correct`: all kernels were reached and are clean, and the results are right."""

    result: FileResult

    @property
    def verdict(self) -> str:
        """The verdict of its gravest row."""
        return self.result.verdict

    @property
    def correct(self) -> bool:
        """Nothing else than clean kernels."""
        return self.verdict == CLEAN

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its findings, each once."""
        return tuple(dict.fromkeys(each.kind for each in self.places))

    @property
    def places(self) -> tuple[RowFinding, ...]:
        """Its findings, with lines of the source."""
        return tuple(each for row in self.result.rows for each in row.findings)

    @property
    def answers(self) -> dict[str, LaunchAnswers]:
        """The effects of its kernels on memory, by their names; only with `seeds`. It is no part of the verdict."""
        return {row.kernel: row.answers for row in self.result.rows if row.answers is not None}

    @property
    def error(self) -> float | None:
        """The largest difference from the reference, relative to its largest value; None: there was no reference, or no result."""
        return self.result.error

    @property
    def score(self) -> float:
        """The score of the gravest row."""
        return _SCORES[self.verdict]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**self.result.as_dict(), "kinds": self.kinds, "correct": self.correct, "score": self.score}

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(self.as_dict())

    def raise_if_wrong(self) -> None:
        """Raise AssertionError with the reasons, unless all is clean."""
        if not self.correct:
            raise AssertionError("\n".join((f"{self.result.file}: {self.verdict}", *_reasons(self.result))))


def _reasons(result: FileResult) -> Iterator[str]:
    for row in result.rows:
        if row.verdict != CLEAN:
            yield f"  {row.kernel or '-'}: {row.verdict}{f': {row.note}' if row.note else ''}"
            yield from (f"    line {each.line}: {each.message} [{each.kind}]" for each in row.findings)


def verify(
    source: str | Path,
    reference: str | Path | None = None,
    inputs: str | None = None,
    budget: float = 2.0,
    *,
    memory: int = 8 << 30,
    launches: str | None = None,
    seeds: int = 0,
) -> Verdict:
    """Run a source's kernels with its own host code on the virtual machine, and judge them.

    `source`: a path (`.cu`, `.py`), or the text of one; text with a line that defines or imports something of Python is a module.
    `reference`: a path or text of a module whose `Model` gives the right results. `inputs`: text of Python with `get_inputs` and
    `get_init_inputs`, in place of those of the reference. `budget`: seconds for each launch; the whole has thirty times as long, and time
    to build. `memory`: bytes for the process of the source. `launches`: the text of a launch file; that of a path is found next to it.
    `seeds`: the schedules of each launch, whose results are compared (`answers`).

    Raises UsageError for a file that is not there. Errors of the source never raise.
    """
    name, text = _read(source)
    other = None if reference is None else _read(reference)[1]
    if inputs is not None:
        other = f"{other or ''}\n{inputs}"
    described = launches_of(Path(name)) if launches is None else launches
    request = AuditRequest(name, text, other, _STARTUP + 30 * budget, budget, memory, described, seeds)
    return Verdict(SERVERS.result(request))


def _read(source: str | Path) -> tuple[str, str]:
    """The name and the text of a source."""
    if isinstance(source, Path) or "\n" not in source:
        path = Path(source)
        if not path.is_file():
            raise UsageError(f"{source}: there is no such file")
        return str(path.resolve()), text_of(path)
    suffix = ".py" if _is_python(source) else ".cu"
    return f"source-{hashlib.sha256(source.encode()).hexdigest()[:12]}{suffix}", source


def _is_python(text: str) -> bool:
    try:
        compile(text, "source", "exec")
    except SyntaxError:
        return False
    return True
