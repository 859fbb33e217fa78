"""The style sheet and the script of the HTML page.

Colours are variables, once for the light and once for the dark scheme; a test computes their contrast (4.5 to 1 for text, 3 to 1 for
lines). The script filters findings and copies commands; a page without it shows everything, and text can be selected by hand.
"""

from __future__ import annotations

from typing import Final

#: The colours, which the page and a picture on its own share.
PALETTE: Final = """
:root { color-scheme: light dark; --ink: #1a1f26; --paper: #fbfbfc; --card: #fff; --soft: #f1f3f6; --line: #d5dae1; --rule: #7b8591;
  --quiet: #55606d; --error: #b3261e; --warning: #7a4d00; --note: #0b57a4; --clean: #116329; --one: #0b6270; --two: #87288a;
  --bad: #fdecea; --good: #e9f5ec; --first: #e4f3f5; --second: #f7eaf8; --keyword: #0b57a4; --string: #116329; --number: #8a3b00;
  --builtin: #6b3fa0; --link: #0b57a4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaee; --paper: #0f1216; --card: #171b20; --soft: #20262d; --line: #38414b;
  --rule: #7d8894; --quiet: #a9b3bf; --error: #ff9188; --warning: #f2c063; --note: #8cc2ff; --clean: #7ee2a0; --one: #6fd3e3;
  --two: #e5a3e8; --bad: #33191a; --good: #14291b; --first: #10292e; --second: #2b1a2d; --keyword: #8cc2ff; --string: #8fdca8;
  --number: #f5b27a; --builtin: #cdb0f5; --link: #8cc2ff; } }
"""

_PAGE: Final = """
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
header, main, footer { margin: 0 auto; max-width: 84rem; padding: 0 clamp(.75rem, 3vw, 2rem); }
h1, h2, h3, p { margin: 0; } h2 { font-size: 1.2rem; line-height: 1.35; } h3 { font-size: 1rem; }
a { color: var(--link); } code, pre, .mono { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .85rem; }
code { overflow-wrap: anywhere; } pre { margin: 0; overflow-x: auto; }
.skip { position: absolute; left: -999rem; } .skip:focus { left: 1rem; top: .5rem; background: var(--card); padding: .25rem .75rem; }
:focus-visible { outline: 2px solid var(--note); outline-offset: 2px; } [hidden] { display: none !important; }
.error { --tone: var(--error); } .warning { --tone: var(--warning); } .note { --tone: var(--note); }
.violations { --tone: var(--error); } .incomplete { --tone: var(--warning); } .clean { --tone: var(--clean); }
header { padding-top: 2rem; padding-bottom: .5rem; }
.verdict { border-left: .4rem solid var(--tone); padding: .1rem 0 .1rem 1.1rem; }
h1 { font-size: clamp(1.7rem, 5vw, 2.5rem); line-height: 1.15; letter-spacing: -.02em; } h1 .brand { color: var(--quiet); font-weight:
  400; }
h1 .word { color: var(--tone); } .lead { font-size: 1.1rem; margin-top: .3rem; } .meta { color: var(--quiet); font-size: .9rem;
  margin-top: .3rem; }
.meta span + span::before { content: "\\00b7"; margin: 0 .5em; }
.panel, .finding { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: clamp(.85rem, 2.5vw, 1.4rem);
  margin: 1rem 0; }
.finding { border-top: .25rem solid var(--tone); } .finding:target { box-shadow: 0 0 0 3px var(--line); }
.top { display: flex; flex-wrap: wrap; gap: .3rem .6rem; align-items: baseline; }
.badge { color: var(--tone); border: 1px solid currentColor; border-radius: 1rem; padding: 0 .6rem; font-size: .8rem; font-weight: 600; }
.top .kind { font-weight: 650; } .top .in { color: var(--quiet); font-weight: 400; } .top .count { margin-left: auto; font-size: .85rem; }
.count { color: var(--quiet); font-weight: 400; } .message { font-size: 1.05rem; margin: .5rem 0 .9rem; max-width: 62rem;
  overflow-wrap: anywhere; }
.calls { display: grid; gap: .6rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); margin-bottom: 1.1rem; }
.call { border-radius: .4rem; padding: .55rem .8rem; overflow-wrap: anywhere; } .call b { display: block; font-size: .8rem;
  letter-spacing: .02em; }
.call.missing { background: var(--bad); } .call.missing b { color: var(--error); } .call.fix { background: var(--good); }
.call.fix b { color: var(--clean); }
.body { display: grid; gap: 1.25rem 1.75rem; grid-template-columns: minmax(0, 1fr); }
@media (min-width: 70rem) { .body.two { grid-template-columns: minmax(0, 1fr) minmax(0, 35rem); } .body > figure { position: sticky;
  top: 1rem;
  align-self: start; } }
.side { min-width: 0; margin-bottom: 1.1rem; } .side.n1 { --mark: var(--one); --tint: var(--first); }
.side.n2 { --mark: var(--two); --tint: var(--second); } .side { --mark: var(--warning); --tint: var(--soft); }
.side h3 .mark { color: var(--mark); } .side h3 code { font-weight: 400; } .side p { color: var(--quiet); font-size: .9rem;
  overflow-wrap: anywhere; }
.code { margin: .35rem 0; padding: .45rem 0; background: var(--soft); border-radius: .4rem; line-height: 1.5; }
.code .row { display: block; padding: 0 .75rem 0 .5rem; border-left: .25rem solid transparent; white-space: pre; min-width: max-content; }
.code .hit { border-left-color: var(--mark); background: var(--tint); } .code .number { color: var(--quiet); padding-right: 1rem;
  user-select: none; }
.k { color: var(--keyword); } .s { color: var(--string); } .n { color: var(--number); } .b { color: var(--builtin); }
.c { color: var(--quiet); font-style: italic; } .p { color: var(--builtin); }
figure { margin: 0; min-width: 0; } figcaption { font-size: .92rem; margin-top: .5rem; } .key { color: var(--quiet); font-size: .85rem; }
svg { display: block; max-width: 100%; height: auto; margin: 0 auto; } .narrow { display: none; }
@media (max-width: 40rem) { .wide { display: none; } .narrow { display: block; } }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .5rem 0; font-size: .92rem; } dt { color:
  var(--quiet); }
dd { margin: 0; grid-column: 2; overflow-wrap: anywhere; min-width: 0; }
details { margin: .35rem 0; } summary { cursor: pointer; width: fit-content; color: var(--link); font-size: .92rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .88rem; margin: .4rem 0; } th, td { text-align: left;
  vertical-align: top; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid var(--line); } tr.missing td { color: var(--error); }
.copy { display: flex; gap: .5rem; align-items: flex-start; margin: .35rem 0; } .copy pre { flex: 1; min-width: 0;
  background: var(--soft); border-radius: .4rem; padding: .5rem .75rem; white-space: pre-wrap; }
button, input[type=search], select { font: inherit; font-size: .9rem; color: var(--ink); background: var(--card);
  border: 1px solid var(--rule); border-radius: .4rem; padding: .3rem .7rem; min-height: 2.1rem; max-width: 100%; }
button { cursor: pointer; } button:hover { background: var(--soft); }
#filter { display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: end; } #filter label { display: grid; font-size: .82rem;
  color: var(--quiet); }
#filter .search { flex: 1 1 12rem; } #shown { font-size: .9rem; color: var(--quiet); padding-bottom: .35rem; }
.index { list-style: none; margin: 0; padding: 0; } .index li { display: flex; flex-wrap: wrap; gap: .1rem .6rem; padding: .3rem 0;
  border-bottom: 1px solid var(--line); align-items: baseline; } .index li:last-child { border: 0; } .index .badge { min-width: 5rem;
  text-align: center; }
.index .at { color: var(--quiet); font-size: .88rem; overflow-wrap: anywhere; }
.page { background: var(--soft); border-radius: .4rem; padding: .75rem; white-space: pre; }
footer { color: var(--quiet); font-size: .85rem; padding-top: 1rem; padding-bottom: 2.5rem; }
@media print { #filter, button, .skip { display: none !important; } .finding { break-inside: avoid; } }
"""

#: What a timeline is drawn with.
PICTURE: Final = """
svg text { font: 12.5px system-ui, -apple-system, "Segoe UI", sans-serif; fill: var(--ink); text-anchor: middle; }
svg .title { font-weight: 650; } svg .detail, svg .group { fill: var(--quiet); font-size: 11.5px; } svg .left { text-anchor: start; }
svg .op, svg .place { font: 11px ui-monospace, "SF Mono", Menlo, Consolas, monospace; } svg .place { fill: var(--quiet); }
svg .label { fill: var(--quiet); font-size: 11.5px; paint-order: stroke; stroke: var(--card); stroke-width: 4px; stroke-linejoin: round; }
svg .life { stroke: var(--line); stroke-width: 1.5; fill: none; } svg .life.engine { stroke-dasharray: 2 3; }
svg .life.barrier, svg .life.cta { stroke-dasharray: 9 4; } svg .wall { stroke: var(--rule); stroke-dasharray: 1 5; stroke-width: 2;
  stroke-linecap: round; }
svg .box rect { fill: var(--card); stroke: var(--rule); stroke-width: 1.25; } svg .box .text { font-weight: 600; }
svg .one rect { fill: var(--first); stroke: var(--one); stroke-width: 2; } svg .one .text { fill: var(--one); }
svg .two rect { fill: var(--second); stroke: var(--two); stroke-width: 2; } svg .two .text { fill: var(--two); }
svg .flight rect, svg .lands rect, svg .state rect, svg .wait rect, svg .edge rect, svg .lifetime rect { fill: var(--soft); }
svg .flight .text, svg .lands .text, svg .state .text, svg .wait .text, svg .edge .text, svg .lifetime .text { font-weight: 500; }
svg .gap .culprit { fill: var(--warning); font-weight: 600; }
svg .span { fill: var(--rule); opacity: .55; } svg .edge { fill: none; stroke: var(--quiet); stroke-width: 1.5; } svg g.edge { stroke:
  none; }
svg .edge.missing { stroke: var(--error); stroke-width: 2; stroke-dasharray: 6 4; } svg .edge.tip { stroke-dasharray: none; }
svg .gap rect { fill: var(--bad); stroke: var(--error); stroke-width: 1.5; stroke-dasharray: 6 4; } svg .gap text { fill: var(--error); }
svg .cross { stroke: var(--error); stroke-width: 2.5; stroke-linecap: round; fill: none; }
svg .cell rect { fill: var(--soft); stroke: var(--rule); } svg .outside rect, svg .unwritten rect { fill: var(--bad); stroke:
  var(--error);
  stroke-dasharray: 5 3; } svg .cell.hit rect { fill: var(--first); stroke: var(--one); stroke-width: 2; } svg .cell .text {
  font-weight: 600; }
"""

STYLE: Final = PALETTE + _PAGE + PICTURE

SCRIPT: Final = """
const one = id => document.getElementById(id), all = query => [...document.querySelectorAll(query)];
const filter = one("filter"), shown = one("shown"), said = one("said"), findings = all(".finding");
function apply() {
  const kind = one("by-kind").value, severity = one("by-severity").value, words = one("by-text").value.toLowerCase().split(/\\s+/);
  let count = 0;
  for (const finding of findings) {
    const text = finding.textContent.toLowerCase();
    const fits = (!kind || finding.dataset.kind === kind) && (!severity || finding.dataset.severity === severity)
      && words.every(word => text.includes(word));
    finding.hidden = !fits;
    one("i-" + finding.id).hidden = !fits;
    count += fits ? 1 : 0;
  }
  shown.textContent = count + " of " + findings.length + " shown";
}
if (filter) {
  filter.hidden = findings.length < 2;
  filter.addEventListener("input", apply);
  filter.addEventListener("submit", event => event.preventDefault());
  apply();
}
async function copy(button) {
  const code = button.parentElement.querySelector("code"), range = document.createRange();
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  said.textContent = button.dataset.what + " copied";
  setTimeout(() => { button.textContent = "Copy"; said.textContent = ""; }, 1500);
}
for (const button of all("button[data-what]")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}
"""
