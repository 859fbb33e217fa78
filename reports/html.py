"""The report as one HTML page: no network, nothing beside it, readable without JavaScript.

Findings come first, each with both places in the source side by side, then what the verdict stands on. A script of a few lines adds
checkboxes that filter by kind; without it everything is shown. Colours have a contrast of at least 4.5 to 1 on their backgrounds, in the
light and the dark scheme, and nothing is said by colour alone. Everything that comes from a report is escaped, and a policy in the page's
head forbids it to load anything.

Not done: sorting, and syntax colours in excerpts.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Iterator
from string import Template
from typing import Final

from consan.reports import phrases
from consan.reports.kinds import KINDS
from consan.reports.model import Access, Finding, Report, plural
from consan.reports.pages import page
from consan.reports.sources import Excerpt, Sources

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #f3f4f6; --line: #c9ced6; --quiet: #57606a;
  --error: #b3261e; --warning: #7a4d00; --note: #0b57a4; --clean: #116329; --one: #0f6674; --two: #87288a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --paper: #15181c; --soft: #20252b; --line: #474f59; --quiet: #a7b0ba;
  --error: #ff8a80; --warning: #f2c063; --note: #8cc2ff; --clean: #7ee2a0; --one: #6fd3e3; --two: #e5a3e8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 90rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 0; } h3 { font-size: 1rem; margin: 0; font-weight: 600; }
code, pre { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .875rem; overflow-wrap: anywhere; }
pre { margin: .5rem 0; padding: .5rem 0; overflow-x: auto; background: var(--paper); border: 1px solid var(--line); border-radius: .3rem; }
pre span { display: block; padding: 0 .75rem; white-space: pre; overflow-wrap: normal; } pre .number { display: inline; padding: 0 1rem 0 0;
  color: var(--quiet); user-select: none; } pre .hit { font-weight: 700; border-left: .25rem solid var(--mark); padding-left: .5rem; }
.error { color: var(--error); } .warning { color: var(--warning); } .note { color: var(--note); }
.violations { color: var(--error); } .incomplete { color: var(--warning); } .clean { color: var(--clean); }
.finding { border: 1px solid var(--line); border-radius: .4rem; padding: 1rem; margin: 1rem 0; background: var(--soft); }
.sides { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)); margin: .75rem 0; }
.side { min-width: 0; } .side:first-child { --mark: var(--one); } .side + .side { --mark: var(--two); }
.side + .side + .side { --mark: var(--warning); }
.side h3 span { color: var(--mark); } .side p { margin: .1rem 0; color: var(--quiet); font-size: .9rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .5rem 0; } dt { color: var(--quiet); }
dd { margin: 0; grid-column: 2; overflow-wrap: anywhere; }
fieldset { border: 1px solid var(--line); border-radius: .4rem; margin: 1rem 0; } label { margin-right: 1.2rem; white-space: nowrap; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid var(--line); }
summary { cursor: pointer; } [hidden] { display: none !important; } :focus-visible { outline: 2px solid var(--note); outline-offset: 2px; }
"""

_SCRIPT: Final = """
const filter = document.getElementById("filter"), shown = document.getElementById("shown");
const findings = [...document.querySelectorAll(".finding")];
function apply() {
  const kinds = new Set([...filter.querySelectorAll("input:checked")].map(box => box.value));
  let count = 0;
  for (const finding of findings) {
    finding.hidden = !kinds.has(finding.dataset.kind);
    count += finding.hidden ? 0 : 1;
  }
  shown.textContent = count + " of " + findings.length + " shown";
}
filter.hidden = findings.length < 2;
filter.addEventListener("change", apply);
apply();
"""

_PAGE: Final = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>consan: $verdict</title>
<style>$style</style>
</head>
<body>
<header>
<h1>consan: <span class="$verdict">$verdict</span></h1>
<p>$headline</p>
</header>
<main>
$gaps<form id="filter" hidden><fieldset><legend>Show findings of kind</legend>$boxes<output id="shown"></output></fieldset></form>
$findings
<section aria-labelledby="run"><h2 id="run">The run</h2>
<dl>$run</dl>
$tests</section>
<section aria-labelledby="kinds"><h2 id="kinds">What the kinds mean</h2>
$pages</section>
</main>
<script>$script</script>
</body>
</html>
""")


def render(report: Report) -> str:
    """The page."""
    sources = Sources(report)
    articles = [_finding(finding, number, sources) for number, finding in enumerate(report.findings, 1)]
    return _PAGE.substitute(
        verdict=report.verdict,
        style=_STYLE,
        script=_SCRIPT,
        headline=_text("; ".join(text for label, text in phrases.summary(report) if label in ("found", "ran"))),
        gaps=_gaps(report),
        boxes="".join(_boxes(report)),
        findings="\n".join(articles) or "<p>No findings.</p>",
        run=_rows(itertools.chain(phrases.summary(report), ((label, command) for label, command in phrases.commands(report)))),
        tests=_tests(report),
        pages="\n".join(_pages(report)) or "<p>None was found.</p>",
    )


def _text(text: str) -> str:
    return html.escape(text, quote=True)


def _gaps(report: Report) -> str:
    if not report.incomplete:
        return ""
    rows = "".join(f"<li>{_text(reason)}</li>" for reason in report.incomplete)
    return f'<section aria-labelledby="gaps"><h2 id="gaps">Not checked</h2><ul>{rows}</ul></section>\n'


def _boxes(report: Report) -> Iterator[str]:
    counts = {kind: sum(finding.kind == kind for finding in report.findings) for kind in KINDS}
    for kind, count in counts.items():
        if count:
            yield f'<label><input type="checkbox" value="{kind}" checked> {kind} ({count})</label>'


def _finding(finding: Finding, number: int, sources: Sources) -> str:
    hazard = f" {_text(finding.hazard)}" if finding.hazard else ""
    state = "<p><strong>Suppressed</strong>: {reason} ({by})</p>"
    suppressed = finding.suppressed
    told = state.format(reason=_text(suppressed.reason), by=_text(phrases.short(suppressed.by))) if suppressed else ""
    sides = "".join(_side(access, index, sources) for index, access in enumerate(finding.accesses, 1))
    tests = [("tests", test or "outside of tests") for test in finding.tests]
    return (
        f'<article class="finding" data-kind="{_text(finding.kind)}" aria-labelledby="f{number}">\n'
        f'<h2 id="f{number}"><span class="{finding.severity}">{finding.severity}</span>: {_text(finding.kind)}{hazard} in kernel '
        f"<code>{_text(finding.kernel)}</code></h2>\n{told}<p>{_text(phrases.sentence(finding.message))}</p>\n"
        f'<div class="sides">{sides}</div>\n<dl>{_rows((*phrases.facts(finding), *tests))}</dl>\n</article>'
    )


def _side(access: Access, number: int, sources: Sources) -> str:
    excerpt = sources.excerpt(access)
    told = (phrases.who(access), phrases.what(access), *map(phrases.inlined_at, access.inlined))
    lines = "".join(f"<p>{_text(text)}</p>" for text in told if text)
    return (
        f'<section class="side"><h3><span>({number})</span> {_text(access.role)} <code>{_text(access.op)}</code></h3>'
        f"<p><code>{_text(phrases.where(access))}</code></p>{_excerpt(excerpt) if excerpt else ''}{lines}</section>"
    )


def _excerpt(excerpt: Excerpt) -> str:
    width = max(len(str(number)) for number, _, _ in excerpt.lines)
    rows = (
        f'<span{" class=hit" if hit else ""}><span class="number">{number:>{width}}</span>{_text(text)}</span>'
        for number, text, hit in excerpt.lines
    )
    # A scrolling region has to be reachable by keyboard.
    return f'<pre tabindex="0">{"".join(rows)}</pre>'


def _rows(rows: Iterable[tuple[str, str]]) -> str:
    """Terms and what is said of them; a repeated term is written once."""
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
        f'<td class="{test.verdict}">{test.verdict}</td><td>{test.launches:,}</td></tr>\n'
        for test in report.tests
    )
    head = "<tr><th scope=col>Test</th><th scope=col>Outcome</th><th scope=col>Verdict</th><th scope=col>Launches</th></tr>"
    title = plural(len({test.id for test in report.tests if test.id}), "test")
    return f"<details><summary>{title}</summary><table><thead>{head}</thead><tbody>{rows}</tbody></table></details>\n"


def _pages(report: Report) -> Iterator[str]:
    for kind in dict.fromkeys(finding.kind for finding in report.findings):
        yield f'<details><summary>{_text(kind)}</summary><pre tabindex="0"><span>{_text(page(kind))}</span></pre></details>'
