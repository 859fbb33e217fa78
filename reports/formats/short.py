"""The report in one line a finding, as compilers write: `k.cu:12:5: error: ... [data-race]`. Editors and CI systems read these lines.

The place is that of the access that comes last in the finding, which its message names with the other one.
"""

from __future__ import annotations

from collections.abc import Iterator

from consan.reports.counts import plural
from consan.reports.formats.accesses import short
from consan.reports.formats.visible import visible_item
from consan.reports.model import Access, Finding, Report
from consan.reports.source.names import kernel_name


def render(report: Report, *, notes: bool = False, timeline: bool = False, details: bool = False) -> str:
    """The lines: findings, why the run is incomplete, the verdict. `notes`: findings of severity note, too. The rest changes nothing."""
    return "".join(f"{line}\n" for line in _lines(visible_item(report), notes))


def _lines(report: Report, notes: bool) -> Iterator[str]:
    yield from map(_line, report.shown(notes=notes))
    yield from (f"consan: incomplete: {reason}" for reason in report.incomplete)
    counts = [plural(count, severity) for severity in ("error", "warning", "note") if (count := report.count(severity))]
    yield f"consan: verdict: {report.verdict} ({', '.join(counts) or 'nothing found'})"


def _line(finding: Finding) -> str:
    hazard = f"{finding.hazard} in " if finding.hazard else ""
    fix = f"; {finding.fix}" if finding.fix else ""
    return f"{_place(finding)}: {finding.severity}: {hazard}{kernel_name(finding.kernel)}: {finding.message}{fix} [{finding.kind}]"


def _place(finding: Finding) -> str:
    access = next((each for each in (*finding.pair[::-1], *finding.accesses) if each.line or each.ptx_line), None)
    return _of(access) if access else kernel_name(finding.kernel)


def _of(access: Access) -> str:
    if not access.line:
        return f"PTX:{access.ptx_line}"
    return ":".join(str(part) for part in (short(access.file), access.line, access.column) if part)
