"""Suppressions: findings that a user has reviewed and excluded, with a reason.

A rule needs a known kind and a reason, and covers findings by kind, kernel and file. A comment in the source is
a rule, too:

    flag = 1;  // consan: allow(data-race) every thread stores the same value

on the line of one of the two accesses or of a call inlined on the way to it, or alone on the lines directly above it. A suppressed
finding stays in the report, marked, and does not count in the verdict.

Not handled: comments in kernels without source lines (PTX without `.loc`), and `/* */` comments that begin on an earlier line.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

from consan.dataclass import dataclass
from consan.reports.catalogue.catalogue import KINDS, entry_of
from consan.reports.model import Finding, Report, Suppressed
from consan.reports.source.places import steps
from consan.reports.source.sources import Reader, read_lines
from consan.reports.verdict.conclusion import with_gaps
from consan.reports.verdict.coverage import EXCLUDED, not_checked

_COMMENT: Final = re.compile(r"(?://|#|/\*)\s*consan:\s*allow\b(?:\(([^)]*)\))?[ \t]*:?[ \t]*(.*?)\s*(?:\*/)?\s*$")
_ALONE: Final = re.compile(r"\s*(?://|#|/\*)")  # a line with only a comment (or a preprocessor directive)
_ABOVE: Final = 8  # comment lines searched above an access


class SuppressionError(ValueError):
    """An invalid suppression; the message says where and why."""


@dataclass(frozen=True)
class Rule:
    """Excludes findings of a kind, in kernels and source files that match. `by` says where the rule is written."""

    kind: str
    reason: str
    by: str
    kernel: str = "*"
    source: str = "*"
    in_source: bool = False

    def covers(self, finding: Finding, lines: Lines) -> bool:
        """Whether the rule covers this finding. One of the two accesses' source files has to match."""
        if finding.kind != self.kind or not fnmatchcase(finding.kernel, self.kernel):
            return False
        return self.source == "*" or any(_matches(file, self.source) for file in _files(finding))

    @property
    def unused(self) -> str:
        """The sentence where the rule covers no finding."""
        return f"{self}: this suppression covered no finding"

    @property
    def mark(self) -> Suppressed:
        """The mark for a finding that this rule covers."""
        return Suppressed(self.reason, self.by, self.in_source)

    def __str__(self) -> str:
        limits = [f"{name} {value!r}" for name, value in (("kernel", self.kernel), ("source", self.source)) if value != "*"]
        return ", ".join([f"{self.by}: {self.kind}", *limits])


@dataclass(frozen=True)
class ExcludedKind(Rule):
    """The user does not want to know of findings of this kind: they are dropped, and each kernel's coverage says so."""

    @property
    def unused(self) -> str:
        """Nothing: there is no finding to expect."""
        return ""


def exclude(kind: str, by: str) -> ExcludedKind:
    """Exclude a kind. Raises SuppressionError if it is unknown, or is always reported."""
    if entry_of(kind).ends_launch:
        raise SuppressionError(f"{by}: {kind} cannot be excluded: nothing behind it is checked")
    made = make_rule(kind, EXCLUDED, by)
    return ExcludedKind(made.kind, made.reason, made.by)


def excluded_but(kinds: Iterable[str], by: str) -> tuple[ExcludedKind, ...]:
    """Exclude all other kinds."""
    named = {make_rule(kind, EXCLUDED, by).kind for kind in kinds}
    return tuple(exclude(kind, by) for kind in KINDS if kind not in named and not KINDS[kind].ends_launch)


def make_rule(kind: str, reason: str, by: str, *, kernel: str = "*", source: str = "*", in_source: bool = False) -> Rule:
    """Make a rule. Raises SuppressionError if the kind is unknown or the reason is missing."""
    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"the kinds are {', '.join(KINDS)}"
        raise SuppressionError(f"{by}: there is no kind '{kind}'; {hint}")
    if not reason.strip():
        raise SuppressionError(f"{by}: suppressing {kind} needs a reason")
    return Rule(kind, reason.strip(), by, kernel, source, in_source)


def suppress(report: Report, rules: Iterable[Rule], read: Reader = read_lines) -> Report:
    """Mark the findings that a rule or a comment covers (the first rule wins), and compute the verdict again."""
    given, lines = tuple(rules), Lines(read)
    report = _without(report, tuple(dict.fromkeys(rule.kind for rule in given if isinstance(rule, ExcludedKind))))
    findings = tuple(finding if finding.suppressed else _marked(finding, given, lines) for finding in report.findings)
    ordered = tuple(sorted(findings, key=lambda finding: bool(finding.suppressed)))
    return with_gaps(report, (), findings=ordered)


def _without(report: Report, kinds: tuple[str, ...]) -> Report:
    """The report without the findings of some kinds."""
    if not kinds:
        return report
    kernels = tuple(replace(kernel, excluded=tuple(dict.fromkeys((*kernel.excluded, *kinds)))) for kernel in report.kernels)
    left = replace(report, kernels=kernels, findings=tuple(finding for finding in report.findings if finding.kind not in kinds))
    return replace(left, not_checked=not_checked(left))


def _marked(finding: Finding, rules: Iterable[Rule], lines: Lines) -> Finding:
    places = {place for access in finding.pair for place in steps(access)}
    comments = [rule for place in sorted(places) for rule in comment_rules(*place, lines)]
    covering = next((rule for rule in (*comments, *rules) if rule.covers(finding, lines)), None)
    return replace(finding, suppressed=covering.mark) if covering else finding


# --- comments ----------------------------------------------------------------------------------------------------------


class Lines:
    """Lines of source files. Each file is read once."""

    def __init__(self, read: Reader = read_lines) -> None:
        self._reader = read
        self._read: dict[str, list[str]] = {}

    def of(self, file: str) -> list[str]:
        """All lines of a file; empty if it cannot be read."""
        if file not in self._read:
            self._read[file] = self._reader(file)
        return self._read[file]

    def at(self, file: str, line: int) -> str:
        """One line; empty if there is none."""
        texts = self.of(file)
        return texts[line - 1] if 0 < line <= len(texts) else ""


def comment_rules(file: str, line: int, lines: Lines) -> Iterator[Rule]:
    """The rules of the comments for a line: on it, or alone on the lines directly above it."""
    texts = lines.of(file)
    if not 0 < line <= len(texts):
        return
    yield from _rules_of(texts[line - 1], file, line)
    for above in range(line - 1, max(0, line - 1 - _ABOVE), -1):
        if not _ALONE.match(texts[above - 1]):
            return
        yield from _rules_of(texts[above - 1], file, above)


def _rules_of(text: str, file: str, line: int) -> Iterator[Rule]:
    found = _COMMENT.search(text) if "consan:" in text else None
    if found is None:
        return
    by = f"{file}:{line}"
    if found[1] is None:
        raise SuppressionError(f"{by}: expected // consan: allow(KIND) REASON")
    for kind in found[1].split(","):
        yield make_rule(kind.strip(), found[2], by, in_source=True)


# --- globs -------------------------------------------------------------------------------------------------------------


def _files(finding: Finding) -> set[str]:
    return {file for access in finding.pair for file, _ in steps(access)}


def _matches(file: str, pattern: str) -> bool:
    """`*.cu`, `kernels/reduce.cu` and an absolute path can all match a file: a relative pattern may start at any folder."""
    path = file.replace("\\", "/")
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern}")


# --- writing -----------------------------------------------------------------------------------------------------------


def to_toml(report: Report, folder: str) -> str:
    """Suppressions for the findings that count, for pyproject.toml. The reasons are left to fill in. Paths are relative to `folder`."""
    rules = dict.fromkeys((finding.kind, finding.kernel, _first_file(finding, folder)) for finding in report.active)
    return "\n".join(_table(*rule) for rule in rules)


def _first_file(finding: Finding, folder: str) -> str:
    file = next((access.file for access in finding.pair if access.file), "").replace("\\", "/")
    start = folder.rstrip("/") + "/"
    return file[len(start) :] if file.startswith(start) else file


def _table(kind: str, kernel: str, source: str) -> str:
    rows = [f"kind = {_quoted(kind)}", f"kernel = {_quoted(_literal(kernel))}"]
    rows += [f"source = {_quoted(_literal(source))}"] if source else []
    rows.append('reason = ""  # say why: a suppression without a reason is an error')
    return "\n".join(["[[tool.consan.suppressions]]", *rows]) + "\n"


def _literal(name: str) -> str:
    """A glob that matches only this name."""
    return re.sub(r"([*?[])", r"[\1]", name)


def _quoted(text: str) -> str:
    """A TOML string. JSON's escapes are valid TOML."""
    return json.dumps(text, ensure_ascii=False)
