"""The report as one HTML page. It loads nothing, needs no other file, and is readable without JavaScript.

First the verdict and its basis, then an index, then a card for each finding: what is missing, how to fix it, both places in the
source, and the timeline as a picture with a table of the same content. A short script adds the filter and the copy
buttons. Colour never carries information alone. All text of a report is escaped, and a content security policy in the
page's head forbids loading.

The date is that of the page: a stored run has none.
"""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from string import Template
from typing import Final

from consan.reports.catalogue.pages import page
from consan.reports.counts import plural
from consan.reports.formats import accesses, highlight, phrases
from consan.reports.formats.html_style import SCRIPT, STYLE
from consan.reports.model import SEVERITIES, Access, Finding, Report
from consan.reports.source.names import kernel_name
from consan.reports.source.places import waiting_places
from consan.reports.source.sources import Excerpt, Sources
from consan.reports.timeline import build, svg
from consan.reports.timeline.picture import MEMORY_WORDS, Timeline, TimelineRow, steps
from consan.reports.verdict.coverage import installed_version
from consan.reports.verdict.speaking import consequences
from consan.reports.verdict.suppression import to_toml
from consan.reports.words.wording import KINDS, place

_PAGE: Final = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '$style_hash'; script-src '$script_hash'">
<title>consan: $verdict</title>
<style>$style</style>
</head>
<body>
<a class="skip" href="#findings">Skip to the findings</a>
<header>
<div class="verdict $verdict">
<h1><span class="brand">consan: </span><span class="word">$verdict</span></h1>
<p class="lead">$headline</p>
<p class="meta">$meta</p>
</div>
</header>
<main>
$gaps$reproduce$index<section id="findings" aria-label="Findings" tabindex="-1">
$findings
</section>
$advice<section class="panel" aria-labelledby="run"><h2 id="run">The run</h2>
<dl>$run</dl>
$tests</section>
$pages</main>
<footer><p>Written by consan $version on $date. This page is one file and loads nothing.</p></footer>
<div id="said" role="status" aria-live="polite" class="skip"></div>
<script>$script</script>
</body>
</html>
""")


def render(report: Report, now: datetime | None = None, advice: str = "") -> str:
    """The page. `now` is its date; `advice`: a section of HTML for `consan advise`."""
    sources = Sources(report)
    findings = consequences.worded(report.findings, range(1, len(report.findings) + 1))
    cards = [_finding(finding, number, report, sources) for number, finding in enumerate(findings, 1)]
    version, date = report.version or installed_version(), f"{now or datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"
    rows = list(phrases.summary(report))
    return _PAGE.substitute(
        verdict=report.verdict,
        style=STYLE,
        style_hash=_hash(STYLE),
        script=SCRIPT,
        script_hash=_hash(SCRIPT),
        headline=_text(_headline(report)),
        meta="".join(f"<span>{_text(item)}</span>" for item in _meta(report, version, date)),
        gaps=_gaps(report),
        reproduce=_reproduce(report),
        index=_index(report),
        findings="\n".join(cards) or "<p>No findings.</p>",
        run=_rows(itertools.chain(rows, (row for row in phrases.commands(report) if row[0] != "reproduce"))),
        advice=advice,
        tests=_tests(report),
        pages=_pages(report),
        version=_text(version),
        date=_text(date),
    )


def _hash(text: str) -> str:
    """The source expression that allows exactly this text (Content Security Policy Level 3, 2.3.1)."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _text(text: str) -> str:
    return html.escape(text, quote=True)


# --- the head of the page ----------------------------------------------------------------------------------------------


def _headline(report: Report) -> str:
    """`2 errors, 1 warning; 1 kernel, 3 launches on cpu; ...`."""
    facts = dict(phrases.summary(report))
    found = "Nothing found" if facts["found"] == "nothing" else facts["found"]
    return f"{found}; {facts['ran']}"


def _meta(report: Report, version: str, date: str) -> tuple[str, ...]:
    return (f"device {report.device}", f"consan {version}", f"seed {report.seed}", f"page of {date}")


def _gaps(report: Report) -> str:
    if not report.incomplete:
        return ""
    rows = "".join(f"<li>{_text(reason)}</li>" for reason in report.incomplete)
    return f'<section class="panel" aria-labelledby="gaps"><h2 id="gaps">Why it is incomplete</h2><ul>{rows}</ul></section>\n'


def _reproduce(report: Report) -> str:
    commands = [command for label, command in phrases.commands(report) if label == "reproduce"]
    if not commands:
        return ""
    return f'<section class="panel" aria-labelledby="again"><h2 id="again">Reproduce</h2>{_copied(commands[0], "Command")}</section>\n'


def _copied(text: str, what: str) -> str:
    """Text with a copy button. Only the script shows the button."""
    return (
        f'<div class="copy"><pre tabindex="0" aria-label="{what}" role="group"><code>{_text(text)}</code></pre>'
        f'<button type="button" hidden data-what="{what}" aria-label="Copy: {what}">Copy</button></div>'
    )


def _index(report: Report) -> str:
    if not report.findings:
        return ""
    rows = "\n".join(_index_row(finding, number) for number, finding in enumerate(report.findings, 1))
    return (
        f'<nav class="panel" aria-labelledby="index"><h2 id="index">{plural(len(report.findings), "finding")}</h2>\n'
        f'{_filter(report)}<ol class="index">\n{rows}\n</ol></nav>\n'
    )


def _index_row(finding: Finding, number: int) -> str:
    places = ", ".join(dict.fromkeys(place(access) for access in finding.pair or waiting_places(finding)))
    at = f"at {_text(places)}" if places else ""
    details = " ".join(filter(None, (_text(finding.hazard or ""), f"in <code>{_text(kernel_name(finding.kernel))}</code>", at)))
    state = " (suppressed)" if finding.suppressed else ""
    return (
        f'<li id="i-f{number}"><span class="badge {finding.severity}">{finding.severity}</span>'
        f'<a href="#f{number}">{_text(KINDS[finding.kind].title)}{state}</a> <span class="at">{details}</span></li>'
    )


def _filter(report: Report) -> str:
    kinds = [kind for kind in KINDS if any(finding.kind == kind for finding in report.findings)]
    levels = [level for level in SEVERITIES if any(finding.severity == level for finding in report.findings)]
    return (
        '<form id="filter" hidden><label class="search">Text <input type="search" id="by-text" autocomplete="off"></label>'
        f"{_choice('by-kind', 'Kind', kinds)}{_choice('by-severity', 'Severity', levels)}"
        '<output id="shown"></output></form>\n'
    )


def _choice(name: str, label: str, values: Iterable[str]) -> str:
    options = "".join(f'<option value="{value}">{value}</option>' for value in values)
    return f'<label>{label} <select id="{name}"><option value="">all</option>{options}</select></label>'


# --- a finding ---------------------------------------------------------------------------------------------------------


def _finding(finding: Finding, number: int, report: Report, sources: Sources) -> str:
    sides = "".join(_side(access, index, sources) for index, access in enumerate(finding.accesses, 1))
    sides += "".join(_side(access, 0, sources) for access in sources.waits(finding))
    picture = _picture(finding, number)
    two = " two" if picture else ""
    tests = [("tests", test or "outside of tests") for test in finding.tests]
    facts = [(label, text) for label, text in phrases.facts(finding) if label not in ("missing", "fix")]
    return (
        f'<article class="finding {finding.severity}" id="f{number}" data-kind="{_text(finding.kind)}" data-severity="{finding.severity}"'
        f' aria-labelledby="h{number}">\n{_title(finding, number, len(report.findings))}{_state(finding)}'
        f'<p class="message">{_text(phrases.sentence(finding.message))}</p>\n{_calls(finding)}'
        f'<div class="body{two}"><div>{sides}<dl>{_rows((*facts, *tests))}</dl></div>\n{picture}</div>\n'
        f"{_silence(finding, report)}</article>"
    )


def _title(finding: Finding, number: int, total: int) -> str:
    hazard = f" {_text(finding.hazard)}" if finding.hazard else ""
    return (
        f'<h2 class="top" id="h{number}"><span class="badge">{finding.severity}</span> '
        f'<span class="kind">{_text(finding.kind)}{hazard}</span> '
        f'<span class="in">in kernel <code>{_text(kernel_name(finding.kernel))}</code></span> '
        f'<span class="count">{number} of {total}</span></h2>\n'
    )


def _state(finding: Finding) -> str:
    if not finding.suppressed:
        return ""
    return f"<p><strong>Suppressed</strong>: {_text(finding.suppressed.reason)} ({_text(accesses.short(finding.suppressed.by))})</p>\n"


def _calls(finding: Finding) -> str:
    """The missing synchronisation, and the fix."""
    calls = (("missing", "Missing", finding.missing), ("fix", "Fix", finding.fix))
    boxes = "".join(f'<p class="call {style}"><b>{label}</b> {_text(_sentence(text))}</p>' for style, label, text in calls if text)
    return f'<div class="calls">{boxes}</div>\n' if boxes else ""


def _sentence(text: str) -> str:
    """Add a capital and a full stop; a leading instruction name stays as it is."""
    return phrases.sentence(text) if text.split(" ")[0].isalpha() else text + "."


def _side(access: Access, number: int, sources: Sources) -> str:
    excerpt = sources.excerpt(access)
    lines = "".join(f"<p>{_text(text)}</p>" for text in (accesses.who(access), accesses.what(access)) if text)
    mark = f'<span class="mark">({number})</span> ' if number else ""
    place = _text(accesses.where(access))
    return (
        f'<section class="side n{number}"><h3>{mark}{_text(access.role)} <code>{_text(access.op)}</code></h3>'
        f"<p><code>{place}</code></p>{_excerpt(excerpt, access) if excerpt else ''}{lines}{_chain(access)}</section>"
    )


def _chain(access: Access) -> str:
    """The inlined calls of the access, folded."""
    steps = list(accesses.chain(access))
    if not steps:
        return ""
    rows = "".join(f"<li><code>{_text(step)}</code></li>" for step in steps)
    return f"<details><summary>Inlined through {plural(len(access.inlined), 'call')}</summary><ol>{rows}</ol></details>"


def _excerpt(excerpt: Excerpt, access: Access) -> str:
    width = max(len(str(number)) for number, _, _ in excerpt.lines)
    file = access.file if access.file and access.line in [number for number, _, _ in excerpt.lines] else "a.ptx"
    shown = highlight.lines([text for _, text, _ in excerpt.lines], file)
    rows = (
        f'<span class="row{" hit" if hit else ""}"><span class="number">{number or "":>{width}}</span>{text}</span>'
        for (number, _, hit), text in zip(excerpt.lines, shown, strict=True)
    )
    # A scrolling region has to be reachable by keyboard, and named.
    return f'<pre class="code" tabindex="0" role="group" aria-label="Source at {_text(place(access))}">{"".join(rows)}</pre>'


_KEY: Final = "Time runs down. Solid arrows are order that is there, the dashed one is the order that is missing."


def _picture(finding: Finding, number: int) -> str:
    """The timeline: drawn for wide and for narrow windows, and as a table."""
    shown = build(finding)
    if shown is None:
        return ""
    wide, narrow = (svg.draw(shown, width) for width in (svg.WIDE, svg.NARROW))
    return (
        f'<figure aria-labelledby="c{number}"><div class="wide">{wide}</div><div class="narrow">{narrow}</div>'
        f'<figcaption id="c{number}">{_text(shown.caption)} <span class="key">{_KEY}</span></figcaption>'
        f"{_table(shown, number)}</figure>"
    )


_COLUMNS: Final = ("Step", "Who", "What", "Where", "Comes after")


def _table(shown: Timeline, number: int) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in _COLUMNS)
    rows = "".join(map(_step, steps(shown)))
    memory = "; ".join(f"{cell.mark} {MEMORY_WORDS[cell.kind]}: {cell.text}".strip() for cell in shown.strip)
    strip = f"<p>Memory, from low to high addresses: {_text(memory)}.</p>" if memory else ""
    return (
        "<details><summary>The same as a table</summary>"
        f'<div class="scroll" tabindex="0" role="group" aria-label="Timeline {number} as a table">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{strip}</div></details>"
    )


def _step(step: TimelineRow) -> str:
    if step.missing:
        return f'<tr class="missing"><td></td><td>missing</td><td colspan="3">{_text(step.what)}</td></tr>'
    return "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in (step.number, step.who, step.what, step.where, step.after)) + "</tr>"


def _silence(finding: Finding, report: Report) -> str:
    """How to suppress the finding, folded."""
    if finding.suppressed:
        return ""
    rule = to_toml(replace(report, findings=(finding,)), os.getcwd()).strip()
    comment = f"// consan: allow({finding.kind}) REASON"
    return (
        "<details><summary>Suppress this finding</summary><p>In pyproject.toml, with the reason filled in:</p>"
        f"{_copied(rule, 'Suppression')}<p>Or as a comment, at one of the lines or right above it:</p>"
        f"{_copied(comment, 'Comment')}</details>\n"
    )


# --- the end -----------------------------------------------------------------------------------------------------------


def _rows(rows: Iterable[tuple[str, str]]) -> str:
    """Terms and their texts. A repeated term is written once."""
    texts, last = [], ""
    for label, text in rows:
        if text:
            texts.append((f"<dt>{_text(label)}</dt>" if label != last else "") + f"<dd>{_text(text)}</dd>")
            last = label
    return "\n".join(texts)


def _tests(report: Report) -> str:
    if not report.tests:
        return ""
    rows = "".join(
        f"<tr><td><code>{_text(test.id or 'outside of tests')}</code></td><td>{_text(test.outcome)}</td>"
        f"<td>{test.verdict}</td><td>{test.launches:,}</td></tr>\n"
        for test in report.tests
    )
    head = "<tr>" + "".join(f'<th scope="col">{name}</th>' for name in ("Test", "Outcome", "Verdict", "Launches")) + "</tr>"
    title = plural(len({test.id for test in report.tests if test.id}), "test")
    return (
        f'<details><summary>{title}</summary><div class="scroll" tabindex="0" role="group" aria-label="Tests">'
        f"<table><thead>{head}</thead><tbody>{rows}</tbody></table></div></details>\n"
    )


def _pages(report: Report) -> str:
    """The manual pages of the kinds found, folded."""
    pages = "\n".join(_manual(report))
    return f'<section class="panel" aria-labelledby="kinds"><h2 id="kinds">What the kinds mean</h2>\n{pages}</section>\n' if pages else ""


def _manual(report: Report) -> Iterator[str]:
    for kind in dict.fromkeys(finding.kind for finding in report.findings):
        name = _text(kind)
        yield (
            f'<details><summary>{name}</summary><pre class="page" tabindex="0" role="group" aria-label="About {name}">'
            f"{_text(page(kind))}</pre></details>"
        )
